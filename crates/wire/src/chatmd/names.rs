//! Aliases: a reversible encoding of any name into the characters that the grammar allows.
//!
//! `decode(encode(name)) == name` for every name, and a name that the grammar allows and that decodes to
//! itself stays unchanged. The tokens of an alias are:
//!
//! ```text
//! __        /
//! _uHEX_    the character with this code point, in lower-case hexadecimal digits
//! _u_       the empty name, if it is the whole alias
//! ```

use super::grammar::is_name_byte;
use std::fmt::{self, Write};

/// Alias of the empty name.
const EMPTY: &str = "_u_";

/// Returns the alias of a name. No alias contains `-to-`, starts with `to-` or is `all`, so a line with
/// two aliases has one meaning and `all` stays reserved.
pub fn encode(name: &str) -> String {
    if name.is_empty() {
        return EMPTY.to_owned();
    }
    let alias = encode_with(name, Underscore::Plain);
    if decode(&alias) == name { alias } else { encode_with(name, Underscore::Escaped) }
}

/// Returns the name of an alias. Text without a token of the encoding is returned unchanged.
pub fn decode(alias: &str) -> String {
    if alias == EMPTY {
        return String::new();
    }
    let mut name = String::with_capacity(alias.len());
    let mut rest = alias;
    while let Some(at) = rest.find('_') {
        name.push_str(&rest[..at]);
        rest = &rest[at..];
        let (decoded, length) = match escape(rest) {
            Some(token) => token,
            None if rest.starts_with("__") => ('/', 2),
            None => ('_', 1),
        };
        name.push(decoded);
        rest = &rest[length..];
    }
    name + rest
}

/// Checks that a name can be written as the sender or the recipient of a line without a second meaning.
pub fn check(name: &str) -> Result<(), NameError> {
    let problem = if name.is_empty() {
        NameProblem::Empty
    } else if let Some(character) = name.chars().find(|c| !c.is_ascii() || !is_name_byte(*c as u8)) {
        NameProblem::Character(character)
    } else if name.contains("-to-") {
        NameProblem::Separator
    } else if name.starts_with("to-") {
        NameProblem::LeadingSeparator
    } else {
        return Ok(());
    };
    Err(NameError { name: name.to_owned(), problem })
}

/// A name that a line cannot contain.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NameError {
    name: String,
    problem: NameProblem,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum NameProblem {
    Empty,
    Character(char),
    Separator,
    LeadingSeparator,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let shown: String = self.name.chars().take(64).collect();
        match self.problem {
            NameProblem::Empty => return f.write_str("a name must not be empty"),
            NameProblem::Character(character) => write!(
                f,
                "{shown:?} is not a valid name: {character:?} is not allowed, only letters A-Z and a-z, digits, `_` and `-`"
            )?,
            NameProblem::Separator => {
                write!(f, "{shown:?} is not a valid name: `-to-` separates sender and recipient")?
            }
            NameProblem::LeadingSeparator => write!(
                f,
                "{shown:?} is not a valid name: it starts with `to-`, which makes the line ambiguous"
            )?,
        }
        match self.name.len() {
            0..=64 => write!(f, " (use the alias {})", encode(&self.name)),
            _ => Ok(()),
        }
    }
}

impl std::error::Error for NameError {}

#[derive(Clone, Copy, PartialEq)]
enum Underscore {
    Plain,
    Escaped,
}

fn encode_with(name: &str, underscore: Underscore) -> String {
    let mut alias = String::with_capacity(name.len());
    let is_reserved = name.eq_ignore_ascii_case("all") || name.starts_with("to-");
    for (at, character) in name.char_indices() {
        let allowed = match character {
            '_' => underscore == Underscore::Plain,
            '-' => !name[at..].starts_with("-to-"),
            _ => character.is_ascii_alphanumeric(),
        };
        match character {
            '/' => alias.push_str("__"),
            _ if allowed && !(at == 0 && is_reserved) => alias.push(character),
            _ => write!(alias, "_u{:x}_", character as u32).expect("a String accepts every write"),
        }
    }
    alias
}

/// Parses `_uHEX_` at the start of `text`. Returns the character and the length of the token.
fn escape(text: &str) -> Option<(char, usize)> {
    let digits = text.strip_prefix("_u")?;
    let length = digits.bytes().take(7).position(|byte| byte == b'_')?;
    let digits = &digits[..length];
    let canonical = digits.bytes().all(|byte| matches!(byte, b'0'..=b'9' | b'a'..=b'f'))
        && (digits == "0" || !digits.starts_with('0'));
    let character = canonical.then(|| u32::from_str_radix(digits, 16).ok().and_then(char::from_u32))??;
    Some((character, 2 + length + 1))
}

#[cfg(test)]
mod tests {
    use super::super::grammar;
    use super::*;
    use proptest::prelude::*;
    use std::collections::HashSet;

    #[test]
    fn names_have_the_documented_aliases() {
        for (name, alias) in [
            ("coder", "coder"),
            ("qa-2_", "qa-2_"),
            ("a_b", "a_b"),
            ("researcher/analyzer", "researcher__analyzer"),
            ("a__b", "a_u5f__u5f_b"),
            ("a_/b", "a_u5f___b"),
            ("Zoë K.", "Zo_ueb__u20_K_u2e_"),
            ("parent:child", "parent_u3a_child"),
            ("_u41_", "_u5f_u41_u5f_"),
            ("_u_", "_u5f_u_u5f_"),
            ("a_u_b", "a_u_b"),
            ("", "_u_"),
            ("all", "_u61_ll"),
            ("ALL", "_u41_LL"),
            ("allan", "allan"),
            ("a-to-b", "a_u2d_to-b"),
            ("a-to-to-b", "a_u2d_to_u2d_to-b"),
            ("to-do", "_u74_o-do"),
            ("up-to", "up-to"),
            ("🎉", "_u1f389_"),
            ("\0", "_u0_"),
        ] {
            assert_eq!(encode(name), alias, "{name:?}");
            assert_eq!(decode(alias), name, "{alias:?}");
        }
    }

    #[test]
    fn text_that_is_no_token_decodes_to_itself() {
        for text in ["_u", "_ug_", "_u041_", "_u00_", "_uD800_", "_ud800_", "_u110000_", "_u1234567_", "a_"] {
            assert_eq!(decode(text), text);
        }
    }

    #[test]
    fn a_forbidden_name_is_refused_with_a_hint() {
        for (name, parts) in [
            ("", &["empty"][..]),
            ("a b", &["' '", "a_u20_b"]),
            ("köder", &["'ö'", "k_uf6_der"]),
            ("x]y", &["']'"]),
            ("a\nb", &["'\\n'", "\"a\\nb\""]),
            ("a-to-b", &["-to-", "a_u2d_to-b"]),
            ("to-b", &["to-", "_u74_o-b"]),
        ] {
            let error = check(name).unwrap_err().to_string();
            for part in parts {
                assert!(error.contains(part), "{name:?}: no {part} in {error}");
            }
        }
        for name in ["a", "all", "a_b-c", "-", "up-to"] {
            assert_eq!(check(name), Ok(()));
        }
        assert!(check(&"é".repeat(100_000)).unwrap_err().to_string().len() < 300);
    }

    fn any_name() -> impl Strategy<Value = String> {
        prop_oneof![
            any::<String>(),
            // Dense in the tokens of the encoding and of the grammar.
            "([-_u/taol0-9f]|-to-|to-|__|_u|all|é| ){0,12}",
        ]
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn every_name_survives_its_alias(name in any_name()) {
            let alias = encode(&name);
            prop_assert_eq!(decode(&alias), name.as_str());
            prop_assert_eq!(check(&alias), Ok(()));
            prop_assert!(!alias.eq_ignore_ascii_case("all"));
            if check(&name).is_ok() && decode(&name) == name && !name.eq_ignore_ascii_case("all") {
                prop_assert_eq!(alias, name);
            }
        }

        #[test]
        fn two_aliases_on_a_line_have_one_meaning(sender in any_name(), recipient in any_name()) {
            let (sender, recipient) = (encode(&sender), encode(&recipient));
            let line = format!("[{sender}-to-{recipient}]: x");
            for known in [HashSet::new(), HashSet::from([sender.clone(), recipient.clone()])] {
                let message = grammar::parse(&line, &known).unwrap();
                prop_assert_eq!((&message.sender, &message.recipient), (&sender, &recipient));
            }
        }
    }
}
