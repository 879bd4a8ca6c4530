//! From the bytes of a program to text that steers nothing.

/// Bytes as text, whatever they are; a letter may come in several pieces. An empty piece is the end.
#[derive(Debug, Default)]
pub struct Utf8Decoder {
    begun: Vec<u8>,
}

impl Utf8Decoder {
    pub fn read(&mut self, piece: &[u8]) -> String {
        let mut bytes = std::mem::take(&mut self.begun);
        bytes.extend_from_slice(piece);
        let whole = if piece.is_empty() { bytes.len() } else { bytes.len() - unfinished(&bytes) };
        self.begun = bytes.split_off(whole);
        String::from_utf8_lossy(&bytes).into_owned()
    }
}

/// How many bytes at the end may be the beginning of a letter.
fn unfinished(bytes: &[u8]) -> usize {
    match std::str::from_utf8(bytes).err() {
        Some(error) if error.error_len().is_none() => bytes.len() - error.valid_up_to(),
        Some(_) => {
            // Something before it was no text; only the last letter is of interest.
            let tail = bytes.len().saturating_sub(3);
            let begun = (tail..bytes.len()).rev().find(|at| bytes[*at] >= 0xc0);
            begun.map_or(0, |at| match std::str::from_utf8(&bytes[at..]) {
                Err(error) if error.error_len().is_none() => bytes.len() - at,
                _ => 0,
            })
        }
        None => 0,
    }
}

/// Leaves out what is meant for a terminal: colours, moves, titles, links, the clipboard.
#[derive(Debug, Default)]
pub struct EscapeStripper {
    state: State,
    returned: bool,
}

#[derive(Debug, Default, Clone, Copy, PartialEq)]
enum State {
    #[default]
    Text,
    Escape,
    Control,
    /// Up to BEL or ST.
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
            (State::Text, '\n') if self.returned => (State::Text, None),
            (State::Text, '\r' | '\n') => (State::Text, Some('\n')),
            (State::Text, '\t') => (State::Text, Some('\t')),
            (State::Text, c) => (State::Text, Some(c).filter(|c| !c.is_control())),
        };
        self.state = state;
        self.returned = c == '\r';
        shown
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_what_is_read_is_left() {
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
            let mut plain = EscapeStripper::default();
            let one_by_one: String = bytes.chars().map(|c| plain.pass(&c.to_string())).collect();
            assert_eq!(one_by_one, expected, "{bytes:?} in pieces");
        }
    }

    #[test]
    fn a_letter_may_come_in_pieces_and_what_is_none_is_marked() {
        let cases: [(&[u8], &str); 4] = [
            ("aé日😀".as_bytes(), "aé日😀"),
            (b"a\xffb\xf0\x9f", "a\u{fffd}b\u{fffd}"),
            (b"\xff\xe6\x97\xa5", "\u{fffd}日"),
            (b"\xc3", "\u{fffd}"),
        ];
        for (bytes, expected) in cases {
            for size in 1..=bytes.len() {
                let mut utf8 = Utf8Decoder::default();
                let mut text: String = bytes.chunks(size).map(|piece| utf8.read(piece)).collect();
                text += &utf8.read(&[]);
                assert_eq!(text, expected, "{bytes:?} by {size}");
            }
        }
    }
}
