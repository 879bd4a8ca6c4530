//! The first look at a JSON text from outside: one walk, before anything is built from it.
//!
//! Refuses what later parsing would silently accept or choke on: nesting, huge collections, repeated keys.

use serde::Deserialize;
use serde::de::{DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::HashSet;
use std::fmt;

#[derive(Debug, Clone, Copy)]
pub struct JsonLimits {
    /// How many containers may lie within one another.
    pub depth: usize,
    /// How many elements or keys one container may have.
    pub items: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JsonDefect {
    Syntax,
    TooDeep,
    TooMany,
    RepeatedKey,
}

pub fn check(text: &str, bounds: JsonLimits) -> Result<(), JsonDefect> {
    let flaw = Cell::new(JsonDefect::Syntax);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let walk = LimitVisitor { left: bounds.depth, items: bounds.items, flaw: &flaw };
    walk.deserialize(&mut deserializer).map_err(|_| flaw.get())?;
    deserializer.end().map_err(|_| JsonDefect::Syntax)
}

/// What is wrong with a text that is JSON, but not of the form wanted.
#[derive(Debug, PartialEq, Eq)]
pub struct SchemaMismatch {
    /// Known where a field is missing.
    pub field: Option<Box<str>>,
    pub rule: Box<str>,
}

/// The parser's own words quote the value that did not fit, which may be a secret: these do not.
pub fn schema_mismatch(error: &serde_json::Error) -> SchemaMismatch {
    let words = error.to_string();
    let words = words.rsplit_once(" at line ").map_or(&*words, |(words, _)| words);
    if let Some(field) = words.strip_prefix("missing field `") {
        return SchemaMismatch {
            field: Some(field.trim_end_matches('`').into()),
            rule: "is required".into(),
        };
    }
    let rule = match words.rsplit_once(", expected ") {
        Some((_, form)) if form.starts_with("struct ") => "must be an object".into(),
        Some((_, form)) => format!("must be {}", type_name(form)).into(),
        None => "is not of the form wanted".into(),
    };
    SchemaMismatch { field: None, rule }
}

/// The parser's names of forms, as people call them.
fn type_name(form: &str) -> &str {
    match form {
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

#[derive(Clone, Copy)]
struct LimitVisitor<'a> {
    left: usize,
    items: usize,
    flaw: &'a Cell<JsonDefect>,
}

impl LimitVisitor<'_> {
    fn refuse<T, E: Error>(&self, flaw: JsonDefect) -> Result<T, E> {
        self.flaw.set(flaw);
        Err(E::custom("refused"))
    }

    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.left == 0 {
            return self.refuse(JsonDefect::TooDeep);
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
                return self.refuse(JsonDefect::TooMany);
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut seen = Seen::default();
        while let Some(Key(key)) = entries.next_key()? {
            if !seen.insert(key) {
                return self.refuse(JsonDefect::RepeatedKey);
            }
            if seen.count > self.items {
                return self.refuse(JsonDefect::TooMany);
            }
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

/// The keys of one object. Most have a handful, and looking through a handful is quicker than hashing.
#[derive(Default)]
struct Seen<'de> {
    few: Vec<Cow<'de, str>>,
    many: HashSet<Cow<'de, str>>,
    count: usize,
}

impl<'de> Seen<'de> {
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
    fn verdict(text: &str, expected: Result<(), JsonDefect>) {
        assert_eq!(check(text, JsonLimits { depth: 15, items: 10 }), expected, "{text}");
    }

    #[test]
    fn fourteen_arrays_in_an_object_pass_and_fifteen_do_not() {
        let nested = |n: usize| format!("{{\"x\":{}{}}}", "[".repeat(n), "]".repeat(n));
        verdict(&nested(14), Ok(()));
        verdict(&nested(15), Err(JsonDefect::TooDeep));
        verdict(&"[".repeat(100_000), Err(JsonDefect::TooDeep));
    }

    #[test]
    fn repeated_keys_and_crowds_are_refused() {
        verdict(r#"{"a":1,"b":{"c":1,"c":2}}"#, Err(JsonDefect::RepeatedKey));
        verdict(r#"{"a":1,"\u0061":2}"#, Err(JsonDefect::RepeatedKey));
        verdict("[1,2,3,4,5,6,7,8,9,10,11]", Err(JsonDefect::TooMany));
    }

    #[derive(Deserialize, Debug)]
    #[expect(dead_code, reason = "only the errors are looked at")]
    struct Form {
        name: String,
        count: Option<u32>,
    }

    #[test]
    fn a_misfit_names_what_is_missing_and_repeats_nothing() {
        let misfit = |text| schema_mismatch(&serde_json::from_str::<Form>(text).unwrap_err());
        let missing = misfit("{}");
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
            assert_eq!(misfit(text), SchemaMismatch { field: None, rule: rule.into() }, "{text}");
        }
    }

    #[test]
    fn half_characters_and_impossible_numbers_are_no_json() {
        for bad in [r#"{"a":"\ud800"}"#, "1e999", "{", "", "nul", "{} {}", "{'a':1}", "\"\u{1}\""] {
            verdict(bad, Err(JsonDefect::Syntax));
        }
        verdict(r#"{"a":[1.5,-2,true,null,"\ud83d\ude00"]}"#, Ok(()));
    }
}
