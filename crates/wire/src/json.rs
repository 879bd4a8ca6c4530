//! Checks untrusted JSON text in one pass before it is deserialised.
//!
//! Rejects input that later parsing would accept silently or process at high cost: deep nesting, huge
//! collections and repeated keys. Also converts parser errors into messages that do not quote the input.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

#[derive(Debug, Clone, Copy)]
pub struct JsonLimits {
    /// Maximum nesting depth of arrays and objects.
    pub depth: usize,
    /// Maximum number of elements or keys of one array or object.
    pub items: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonDefect {
    Syntax,
    TooDeep,
    TooMany,
    RepeatedKey,
}

/// Checks that `text` is well-formed JSON within `limits` and without repeated keys.
pub fn check(text: &str, limits: JsonLimits) -> Result<(), JsonDefect> {
    let defect = Cell::new(JsonDefect::Syntax);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let visitor = LimitVisitor { left: limits.depth, items: limits.items, defect: &defect };
    visitor.deserialize(&mut deserializer).map_err(|_| defect.get())?;
    deserializer.end().map_err(|_| JsonDefect::Syntax)
}

/// Describes why well-formed JSON could not be deserialised into the expected type.
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaMismatch {
    /// Name of a missing field; `None` for other errors.
    pub field: Option<Box<str>>,
    pub rule: Box<str>,
}

/// Converts a parser error into a message that does not contain the rejected value, which may be a secret.
pub fn schema_mismatch(error: &serde_json::Error) -> SchemaMismatch {
    let message = error.to_string();
    let message = message.rsplit_once(" at line ").map_or(&*message, |(message, _)| message);
    if let Some(field) = message.strip_prefix("missing field `") {
        return SchemaMismatch {
            field: Some(field.trim_end_matches('`').into()),
            rule: "is required".into(),
        };
    }
    let rule = match message.rsplit_once(", expected ") {
        Some((_, expected)) if expected.starts_with("struct ") => "must be an object".into(),
        Some((_, expected)) => format!("must be {}", type_name(expected)).into(),
        None => "does not have the expected form".into(),
    };
    SchemaMismatch { field: None, rule }
}

/// Translates the parser's name of a type into plain English.
fn type_name(expected: &str) -> &str {
    match expected {
        "u8" | "u16" | "u32" | "u64" | "u128" | "usize" => "a whole number, not below zero and not too large",
        "i8" | "i16" | "i32" | "i64" | "i128" | "isize" => "a whole number that is not too large",
        "f32" | "f64" => "a number",
        "a boolean" => "true or false",
        "a sequence" => "a list",
        "a map" => "an object",
        "unit" => "null",
        other => other,
    }
}

/// Visits all values and discards them. Stores the defect in `defect`, because serde errors carry only text.
#[derive(Clone, Copy)]
struct LimitVisitor<'a> {
    /// Remaining nesting depth.
    left: usize,
    items: usize,
    defect: &'a Cell<JsonDefect>,
}

impl LimitVisitor<'_> {
    fn reject<T, E: Error>(&self, defect: JsonDefect) -> Result<T, E> {
        self.defect.set(defect);
        Err(E::custom("refused"))
    }

    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.left == 0 {
            return self.reject(JsonDefect::TooDeep);
        }
        Ok(Self { left: self.left - 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for LimitVisitor<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for LimitVisitor<'_> {
    type Value = ();

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("JSON")
    }

    fn visit_bool<E>(self, _: bool) -> Result<(), E> {
        Ok(())
    }

    fn visit_i64<E>(self, _: i64) -> Result<(), E> {
        Ok(())
    }

    fn visit_u64<E>(self, _: u64) -> Result<(), E> {
        Ok(())
    }

    fn visit_f64<E>(self, _: f64) -> Result<(), E> {
        Ok(())
    }

    fn visit_str<E>(self, _: &str) -> Result<(), E> {
        Ok(())
    }

    fn visit_unit<E>(self) -> Result<(), E> {
        Ok(())
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut count = 0;
        while elements.next_element_seed(inner)?.is_some() {
            count += 1;
            if count > self.items {
                return self.reject(JsonDefect::TooMany);
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut seen = Seen::default();
        while let Some(Key(key)) = entries.next_key()? {
            if !seen.insert(key) {
                return self.reject(JsonDefect::RepeatedKey);
            }
            if seen.count > self.items {
                return self.reject(JsonDefect::TooMany);
            }
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// Keys of one object seen so far. The first 16 are compared linearly, which is faster than hashing for the
/// small objects that are typical.
#[derive(Default)]
struct Seen<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
    count: usize,
}

impl<'de> Seen<'de> {
    /// Returns `false` if the key is a repetition.
    fn insert(&mut self, key: Cow<'de, str>) -> bool {
        self.count += 1;
        if self.few.contains(&key) || self.many.contains(&key) {
            return false;
        }
        if self.few.len() < 16 {
            self.few.push(key);
            return true;
        }
        self.many.insert(key)
    }
}

#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn expect_result(text: &str, expected: Result<(), JsonDefect>) {
        assert_eq!(check(text, JsonLimits { depth: 15, items: 10 }), expected, "{text}");
    }

    #[test]
    fn fourteen_arrays_in_an_object_pass_and_fifteen_do_not() {
        let nested = |n: usize| format!("{{\"x\":{}{}}}", "[".repeat(n), "]".repeat(n));
        expect_result(&nested(14), Ok(()));
        expect_result(&nested(15), Err(JsonDefect::TooDeep));
        expect_result(&"[".repeat(100_000), Err(JsonDefect::TooDeep));
    }

    #[test]
    fn repeated_keys_and_too_large_collections_are_rejected() {
        expect_result(r#"{"a":1,"b":{"c":1,"c":2}}"#, Err(JsonDefect::RepeatedKey));
        expect_result(r#"{"a":1,"\u0061":2}"#, Err(JsonDefect::RepeatedKey));
        expect_result("[1,2,3,4,5,6,7,8,9,10,11]", Err(JsonDefect::TooMany));
    }

    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the errors are checked")]
    struct Form {
        name: String,
        count: Option<u32>,
    }

    #[test]
    fn a_schema_mismatch_names_a_missing_field_and_never_quotes_the_input() {
        let mismatch = |text| schema_mismatch(&serde_json::from_str::<Form>(text).unwrap_err());
        let missing = mismatch("{}");
        assert_eq!((missing.field.as_deref(), &*missing.rule), (Some("name"), "is required"));
        for (text, rule) in [
            (r#"{"name":["secret"]}"#, "must be a string"),
            (
                r#"{"name":"x","count":"secret, expected secret at line 1"}"#,
                "must be a whole number, not below zero and not too large",
            ),
            (r#"{"name":"x","count":-77}"#, "must be a whole number, not below zero and not too large"),
            (r#"{"name":true}"#, "must be a string"),
            (r#""secret""#, "must be an object"),
        ] {
            assert_eq!(mismatch(text), SchemaMismatch { field: None, rule: rule.into() }, "{text}");
        }
    }

    #[test]
    fn unpaired_surrogates_and_out_of_range_numbers_are_syntax_errors() {
        for bad in [r#"{"a":"\ud800"}"#, "1e999", "{", "", "nul", "{} {}", "{'a':1}", "\"\u{1}\""] {
            expect_result(bad, Err(JsonDefect::Syntax));
        }
        expect_result(r#"{"a":[1.5,-2,true,null,"\ud83d\ude00"]}"#, Ok(()));
    }
}
