//! One way to write a JSON value, so that two who mean the same compute the same digest.
//!
//! As RFC 8785 has it (no white space, keys by their UTF-16 code units, strings with as few escapes as can be), except
//! for numbers: they stay as they were written, because two that are read as the same need not be the same to who
//! runs them.

use parlor_model::{InputDigest, Payload};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;

/// SHA-256 of the value in its one form; `None` for what is not JSON.
pub fn digest(value: &Payload) -> Option<InputDigest> {
    let raw: &RawValue = serde_json::from_str(&value.0).ok()?;
    let mut text = String::with_capacity(raw.get().len());
    write(raw, &mut text)?;
    Some(InputDigest(Sha256::digest(text.as_bytes()).into()))
}

/// As deep as the value: what comes in was looked over before.
fn write(raw: &RawValue, out: &mut String) -> Option<()> {
    let text = raw.get();
    match text.as_bytes().first()? {
        b'{' => {
            let fields: HashMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            let mut fields: Vec<_> = fields.into_iter().collect();
            fields.sort_by(|(one, _), (other, _)| one.encode_utf16().cmp(other.encode_utf16()));
            out.push('{');
            for (place, (key, value)) in fields.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                out.push_str(&serde_json::to_string(&key).ok()?);
                out.push(':');
                write(value, out)?;
            }
            out.push('}');
        }
        b'[' => {
            let items: Vec<&RawValue> = serde_json::from_str(text).ok()?;
            out.push('[');
            for (place, item) in items.into_iter().enumerate() {
                if place > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        b'"' => {
            let plain: String = serde_json::from_str(text).ok()?;
            out.push_str(&serde_json::to_string(&plain).ok()?);
        }
        _ => out.push_str(text),
    }
    Some(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> String {
        let mut out = String::new();
        write(serde_json::from_str(text).unwrap(), &mut out).unwrap();
        out
    }

    fn of(text: &str) -> Option<String> {
        digest(&Payload(text.into())).map(|digest| digest.to_string())
    }

    #[test]
    fn the_same_value_is_written_in_one_way() {
        let cases = [
            (r#" { "b" : [ 1 , 2.0 , {} , [] ] , "a" : null } "#, r#"{"a":null,"b":[1,2.0,{},[]]}"#),
            (r#"{"\u0061":"\u00e9\/\n\u001f"}"#, "{\"a\":\"é/\\n\\u001f\"}"),
            // By code units an astral letter comes before what lies at the end of the first plane.
            ("{\"\u{ff61}\":1,\"\u{1f980}\":2}", "{\"\u{1f980}\":2,\"\u{ff61}\":1}"),
            (r#"{"n":1e2,"m":100}"#, r#"{"m":100,"n":1e2}"#),
        ];
        for (given, expected) in cases {
            assert_eq!(canonical(given), expected);
            assert_eq!(canonical(expected), expected);
        }
    }

    #[test]
    fn the_digest_is_that_of_the_one_form() {
        // printf '{"command":"ls"}' | sha256sum
        let expected = "4cf29611a66934862f29acfcc817e30b905c1ab73d5e65831413eb6b454d49db";
        assert_eq!(of(r#"{"command":"ls"}"#).as_deref(), Some(expected));
        assert_eq!(of(r#"{"command":"ls"}"#), of(r#"{ "command": "l\u0073" }"#));
        assert_ne!(of(r#"{"command":"ls"}"#), of(r#"{"command":"ls "}"#));
        assert_ne!(of(r#"{"n":9007199254740993}"#), of(r#"{"n":9007199254740992}"#), "numbers as written");
        assert_eq!(of("{"), None);
    }
}
