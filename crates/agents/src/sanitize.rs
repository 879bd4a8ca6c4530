//! Converts the output of a program to plain text: lossy UTF-8 decoding and removal of terminal escape
//! sequences.

/// Incremental lossy UTF-8 decoder. A character may be split over several chunks; an empty chunk marks the
/// end.
#[derive(Debug, Default)]
pub struct Utf8Decoder {
    incomplete: Vec<u8>,
}

impl Utf8Decoder {
    pub fn read(&mut self, chunk: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.incomplete);
        bytes.extend_from_slice(chunk);
        let complete = if chunk.is_empty() { bytes.len() } else { bytes.len() - incomplete_bytes(&bytes) };
        self.incomplete = bytes.split_off(complete);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// Number of trailing bytes that may be the start of a character whose rest has not arrived.
fn incomplete_bytes(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes).err() {
        Some(error) if error.error_len().is_none() => bytes.len() - error.valid_up_to(),
        Some(_) => {
            // Earlier bytes are invalid UTF-8; only the last character can be incomplete.
            let tail = bytes.len().saturating_sub(3);
            let start = (tail..bytes.len()).rev().find(|at| bytes[*at] >= 0xc0);
            start.map_or(0, |at| match std::str::from_utf8(&bytes[at..]) {
                Err(error) if error.error_len().is_none() => bytes.len() - at,
                _ => 0,
            })
        }
        None => 0,
    }
}

/// Removes terminal control sequences: colours, cursor movement, titles, links, clipboard access.
#[derive(Debug, Default)]
pub struct EscapeStripper {
    state: State,
    after_carriage_return: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Text,
    Escape,
    Control,
    /// Inside an OSC, DCS or similar string, which ends with BEL or ST.
    Command,
    CommandEscape,
}

impl EscapeStripper {
    pub fn pass(&mut self, text: &str) -> String {
        text.chars().filter_map(|c| self.next(c)).collect()
    }

    fn next(&mut self, c: char) -> Option<char> {
        let (state, shown) = match (self.state, c) {
            (State::Command, '\u{7}' | '\u{9c}') => (State::Text, None),
            (State::Command, '\u{1b}') => (State::CommandEscape, None),
            (State::CommandEscape, '\\') => (State::Text, None),
            (State::Command | State::CommandEscape, _) => (State::Command, None),
            (_, '\u{1b}') => (State::Escape, None),
            (State::Escape, '[') | (State::Text, '\u{9b}') => (State::Control, None),
            (State::Escape, ']' | 'P' | 'X' | '^' | '_')
            | (State::Text, '\u{90}' | '\u{98}' | '\u{9d}' | '\u{9e}' | '\u{9f}') => (State::Command, None),
            (State::Escape, ' '..='/') => (State::Escape, None),
            (State::Escape, _) => (State::Text, None),
            (State::Control, '@'..='~') => (State::Text, None),
            (State::Control, ' '..='?') => (State::Control, None),
            (State::Control, _) => (State::Text, None),
            (State::Text, '\n') if self.after_carriage_return => (State::Text, None),
            (State::Text, '\r' | '\n') => (State::Text, Some('\n')),
            (State::Text, '\t') => (State::Text, Some('\t')),
            (State::Text, c) => (State::Text, Some(c).filter(|c| !c.is_control())),
        };
        self.state = state;
        self.after_carriage_return = c == '\r';
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_visible_text_remains() {
        let cases = [
            ("plain\ttext\n", "plain\ttext\n"),
            ("a\r\nb\rc", "a\nb\nc"),
            ("\u{1b}[1;32mgreen\u{1b}[0m", "green"),
            ("\u{1b}]0;title\u{7}x\u{1b}]8;;http://e\u{1b}\\link", "xlink"),
            ("\u{1b}(B\u{1b}=x\u{9b}31my", "xy"),
            ("\u{1b}Pq#0\u{1b}\\x\u{8}\u{0}", "x"),
            ("日本語 \u{1b}[", "日本語 "),
        ];
        for (bytes, expected) in cases {
            assert_eq!(EscapeStripper::default().pass(bytes), expected, "{bytes:?}");
            let mut stripper = EscapeStripper::default();
            let one_by_one: String = bytes.chars().map(|c| stripper.pass(&c.to_string())).collect();
            assert_eq!(one_by_one, expected, "{bytes:?} in chunks");
        }
    }

    #[test]
    fn a_character_may_be_split_over_chunks_and_invalid_bytes_are_replaced() {
        let cases: [(&[u8], &str); 4] = [
            ("aé日😀".as_bytes(), "aé日😀"),
            (b"a\xffb\xf0\x9f", "a\u{fffd}b\u{fffd}"),
            (b"\xff\xe6\x97\xa5", "\u{fffd}日"),
            (b"\xc3", "\u{fffd}"),
        ];
        for (bytes, expected) in cases {
            for size in 1..=bytes.len() {
                let mut utf8 = Utf8Decoder::default();
                let mut text: String = bytes.chunks(size).map(|chunk| utf8.read(chunk)).collect();
                text += &utf8.read(&[]);
                assert_eq!(text, expected, "{bytes:?} by {size}");
            }
        }
    }
}
