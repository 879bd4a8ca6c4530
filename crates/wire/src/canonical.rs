//! Canonical JSON, so that equal values have equal digests.
//!
//! Follows RFC 8785 (no white space, keys sorted by UTF-16 code units, minimal escapes) except for numbers.
//! Numbers keep their original text, because numbers that parse as equal here may differ for the program that
//! receives them.

use parlor_model::{InputDigest, Payload};
use serde_json::value::RawValue;
use sha2::{Digest as _, Sha256};
use std::collections::HashMap;

/// Returns the SHA-256 of the canonical form of `value`, or `None` if it is not valid JSON.
pub fn digest(value: &Payload) -> Option<InputDigest> {
    let raw: &RawValue = serde_json::from_str(&value.0).ok()?;
    let mut text = String::with_capacity(raw.get().len());
    write(raw, &mut text)?;
    Some(InputDigest(Sha256::digest(text.as_bytes()).into()))
}

/// Writes the canonical form of `raw`. Recurses as deep as the value; callers have checked its depth before.
fn write(raw: &RawValue, out: &mut String) -> Option<()> {
    let text = raw.get();
    match text.as_bytes().first()? {
        b'{' => {
            let fields: HashMap<String, &RawValue> = serde_json::from_str(text).ok()?;
            let mut fields: Vec<_> = fields.into_iter().collect();
            fields.sort_by(|(left, _), (right, _)| left.encode_utf16().cmp(right.encode_utf16()));
            out.push('{');
            for (index, (key, value)) in fields.into_iter().enumerate() {
                if index > 0 {
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
            for (index, item) in items.into_iter().enumerate() {
                if index > 0 {
                    out.push(',');
                }
                write(item, out)?;
            }
            out.push(']');
        }
        b'"' => {
            let unescaped: String = serde_json::from_str(text).ok()?;
            out.push_str(&serde_json::to_string(&unescaped).ok()?);
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

    fn digest_of(text: &str) -> Option<String> {
        digest(&Payload(text.into())).map(|digest| digest.to_string())
    }

    #[test]
    fn equal_values_have_one_canonical_form() {
        let cases = [
            (r#" { "b" : [ 1 , 2.0 , {} , [] ] , "a" : null } "#, r#"{"a":null,"b":[1,2.0,{},[]]}"#),
            (r#"{"\u0061":"\u00e9\/\n\u001f"}"#, "{\"a\":\"é/\\n\\u001f\"}"),
            // In UTF-16 code units, U+1F980 (a surrogate pair) sorts before U+FF61.
            ("{\"\u{ff61}\":1,\"\u{1f980}\":2}", "{\"\u{1f980}\":2,\"\u{ff61}\":1}"),
            (r#"{"n":1e2,"m":100}"#, r#"{"m":100,"n":1e2}"#),
        ];
        for (given, expected) in cases {
            assert_eq!(canonical(given), expected);
            assert_eq!(canonical(expected), expected);
        }
    }

    #[test]
    fn the_digest_is_that_of_the_canonical_form() {
        // printf '{"command":"ls"}' | sha256sum
        let expected = "4cf29611a66934862f29acfcc817e30b905c1ab73d5e65831413eb6b454d49db";
        assert_eq!(digest_of(r#"{"command":"ls"}"#).as_deref(), Some(expected));
        assert_eq!(digest_of(r#"{"command":"ls"}"#), digest_of(r#"{ "command": "l\u0073" }"#));
        assert_ne!(digest_of(r#"{"command":"ls"}"#), digest_of(r#"{"command":"ls "}"#));
        assert_ne!(
            digest_of(r#"{"n":9007199254740993}"#),
            digest_of(r#"{"n":9007199254740992}"#),
            "numbers keep their text"
        );
        assert_eq!(digest_of("{"), None);
    }
}
