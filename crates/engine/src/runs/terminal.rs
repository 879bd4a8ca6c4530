//! Filter for terminal output: text, colours and cursor movement pass. All other escape sequences are
//! dropped, because they can write to the clipboard, fake links or type on behalf of the reader.

/// Filter of one terminal. It keeps state between calls, because a sequence may be split over several chunks.
#[derive(Debug, Default)]
pub struct TerminalFilter {
    state: State,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    #[default]
    Text,
    Escape,
    /// Between ESC and the final letter of a two-letter sequence such as `ESC ( B`.
    Designation,
    /// Parameters of a control sequence so far; `None` if the sequence is going to be dropped.
    Control(Option<String>),
    /// String for the terminal itself (OSC, DCS, SOS, PM, APC), up to its terminator.
    Command,
    CommandEscape,
}

/// Final bytes of the control sequences that pass: colours, cursor movement and erasing.
const HARMLESS: &str = "mABCDEFGHfdJK";
/// Maximum bytes of the parameters of a control sequence; a longer sequence is dropped, to bound memory.
const MAX_PARAMETERS_BYTES: usize = 64;

impl TerminalFilter {
    pub fn pass(&mut self, data: &str) -> String {
        let mut shown = String::with_capacity(data.len());
        for c in data.chars() {
            self.state = match std::mem::take(&mut self.state) {
                State::Text => self.text(c, &mut shown),
                State::Escape => match c {
                    '[' => State::Control(Some(String::new())),
                    ']' | 'P' | 'X' | '^' | '_' => State::Command,
                    '\u{20}'..='\u{2f}' => State::Designation,
                    '\u{1b}' => State::Escape,
                    _ => State::Text,
                },
                State::Designation => match c {
                    '\u{20}'..='\u{2f}' => State::Designation,
                    '\u{1b}' => State::Escape,
                    _ => State::Text,
                },
                State::Control(parameters) => control(c, parameters, &mut shown),
                State::Command => match c {
                    '\u{7}' | '\u{9c}' | '\u{18}' | '\u{1a}' => State::Text,
                    '\u{1b}' => State::CommandEscape,
                    _ => State::Command,
                },
                State::CommandEscape => match c {
                    '\\' => State::Text,
                    '\u{1b}' => State::CommandEscape,
                    _ => State::Command,
                },
            };
        }
        shown
    }

    fn text(&self, c: char, shown: &mut String) -> State {
        match c {
            '\u{1b}' => State::Escape,
            // The same introducers as single C1 characters.
            '\u{9b}' => State::Control(Some(String::new())),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => State::Command,
            '\n' | '\r' | '\t' | '\u{8}' => {
                shown.push(c);
                State::Text
            }
            c if c.is_control() => State::Text,
            c => {
                shown.push(c);
                State::Text
            }
        }
    }
}

fn control(c: char, parameters: Option<String>, shown: &mut String) -> State {
    match c {
        '0'..='9' | ';' | ':' => State::Control(
            parameters.filter(|parameters| parameters.len() < MAX_PARAMETERS_BYTES).map(|mut parameters| {
                parameters.push(c);
                parameters
            }),
        ),
        // Private and intermediate bytes give the sequence another meaning, so it is dropped.
        '\u{20}'..='\u{3f}' => State::Control(None),
        '\u{1b}' => State::Escape,
        '\u{40}'..='\u{7e}' => {
            if let Some(parameters) = parameters.filter(|_| HARMLESS.contains(c)) {
                shown.push_str("\u{1b}[");
                shown.push_str(&parameters);
                shown.push(c);
            }
            State::Text
        }
        _ => State::Text,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn shown(data: &str) -> String {
        TerminalFilter::default().pass(data)
    }

    #[test]
    fn colours_and_cursor_movement_pass() {
        for plain in [
            "$ npm test\r\n",
            "\u{1b}[32mok\u{1b}[0m",
            "\u{1b}[1;31;48:2:1:2:3mx",
            "50%\u{1b}[2K\u{1b}[1G",
            "日本\t语",
        ] {
            assert_eq!(shown(plain), plain);
        }
    }

    #[test]
    fn other_escape_sequences_are_dropped() {
        let cases = [
            ("\u{1b}]52;c;aGVsbG8=\u{7}x", "x"),
            ("\u{1b}]8;;http://evil\u{1b}\\connection\u{1b}]8;;\u{1b}\\", "connection"),
            ("\u{1b}P$q\"p\u{1b}\\x", "x"),
            ("\u{1b}_apc\u{9c}x", "x"),
            ("\u{9d}0;title\u{7}x", "x"),
            ("\u{9b}31mred", "\u{1b}[31mred"),
            ("\u{1b}[6nx", "x"),
            ("\u{1b}[?1049hx", "x"),
            ("\u{1b}[>cx", "x"),
            ("\u{1b}cx", "x"),
            ("\u{1b}(0x", "x"),
            ("a\u{7}\u{0}\u{7f}\u{85}b", "ab"),
            ("\u{1b}]never ended \u{1b}[31m", ""),
        ];
        for (data, expected) in cases {
            assert_eq!(shown(data), expected, "{data:?}");
        }
        assert_eq!(shown(&format!("\u{1b}[{}mx", "1;".repeat(500))), "x");
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn the_output_does_not_depend_on_where_the_data_is_split(data in "(\u{1b}|\\[|\\]|[0-9;m?P_\\\\]|\u{7}|\u{9b}|[a-z]){0,40}", cut in 0usize..40) {
            let cut = data.char_indices().nth(cut).map_or(data.len(), |(at, _)| at);
            let mut filter = TerminalFilter::default();
            let split = filter.pass(&data[..cut]) + &filter.pass(&data[cut..]);
            prop_assert_eq!(split, shown(&data));
        }

        #[test]
        fn only_colours_and_cursor_movement_are_passed_through(data in "\\PC{0,60}|(\u{1b}|\\[|\\]|[0-9;m?P_\\\\]|\u{7}|\u{9b}|\u{90}|[a-z]){0,60}") {
            let out = shown(&data);
            let mut rest = out.as_str();
            while let Some(at) = rest.find('\u{1b}') {
                rest = &rest[at + 1..];
                let end = rest.find(|c: char| c.is_ascii_alphabetic()).expect("a sequence ends with a letter");
                let harmless = rest.starts_with('[') && HARMLESS.contains(&rest[end..=end]);
                prop_assert!(harmless, "{:?}", out);
            }
            let c1 = out.chars().any(|c| ('\u{80}'..='\u{9f}').contains(&c));
            prop_assert!(!c1);
        }
    }
}
