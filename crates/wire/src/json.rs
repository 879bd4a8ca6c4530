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
pub struct Bounds {
    /// How many containers may lie within one another.
    pub depth: usize,
    /// How many elements or keys one container may have.
    pub items: usize,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Flaw {
    Syntax,
    TooDeep,
    TooMany,
    RepeatedKey,
}

pub fn check(text: &str, bounds: Bounds) -> Result<(), Flaw> {
    let flaw = Cell::new(Flaw::Syntax);
    let mut deserializer = serde_json::Deserializer::from_str(text);
    let walk = Walk { left: bounds.depth, items: bounds.items, flaw: &flaw };
    walk.deserialize(&mut deserializer).map_err(|_| flaw.get())?;
    deserializer.end().map_err(|_| Flaw::Syntax)
}

#[derive(Clone, Copy)]
struct Walk<'a> {
    left: usize,
    items: usize,
    flaw: &'a Cell<Flaw>,
}

impl Walk<'_> {
    fn refuse<T, E: Error>(&self, flaw: Flaw) -> Result<T, E> {
        self.flaw.set(flaw);
        Err(E::custom("refused"))
    }

    fn deeper<E: Error>(self) -> Result<Self, E> {
        if self.left == 0 {
            return self.refuse(Flaw::TooDeep);
        }
        Ok(Self { left: self.left - 1, ..self })
    }
}

impl<'de> DeserializeSeed<'de> for Walk<'_> {
    type Value = ();

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<(), D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Walk<'_> {
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
                return self.refuse(Flaw::TooMany);
            }
        }
        Ok(())
    }

    fn visit_map<A: MapAccess<'de>>(self, mut entries: A) -> Result<(), A::Error> {
        let inner = self.deeper()?;
        let mut seen: HashSet<Cow<'de, str>> = HashSet::new();
        while let Some(Key(key)) = entries.next_key()? {
            if !seen.insert(key) {
                return self.refuse(Flaw::RepeatedKey);
            }
            if seen.len() > self.items {
                return self.refuse(Flaw::TooMany);
            }
            entries.next_value_seed(inner)?;
        }
        Ok(())
    }
}

#[derive(Deserialize, PartialEq, Eq, Hash)]
struct Key<'a>(#[serde(borrow)] Cow<'a, str>);

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn verdict(text: &str, expected: Result<(), Flaw>) {
        assert_eq!(check(text, Bounds { depth: 15, items: 10 }), expected, "{text}");
    }

    #[test]
    fn fourteen_arrays_in_an_object_pass_and_fifteen_do_not() {
        let nested = |n: usize| format!("{{\"x\":{}{}}}", "[".repeat(n), "]".repeat(n));
        verdict(&nested(14), Ok(()));
        verdict(&nested(15), Err(Flaw::TooDeep));
        verdict(&"[".repeat(100_000), Err(Flaw::TooDeep));
    }

    #[test]
    fn repeated_keys_and_crowds_are_refused() {
        verdict(r#"{"a":1,"b":{"c":1,"c":2}}"#, Err(Flaw::RepeatedKey));
        verdict(r#"{"a":1,"\u0061":2}"#, Err(Flaw::RepeatedKey));
        verdict("[1,2,3,4,5,6,7,8,9,10,11]", Err(Flaw::TooMany));
    }

    #[test]
    fn half_characters_and_impossible_numbers_are_no_json() {
        for bad in [r#"{"a":"\ud800"}"#, "1e999", "{", "", "nul", "{} {}", "{'a':1}", "\"\u{1}\""] {
            verdict(bad, Err(Flaw::Syntax));
        }
        verdict(r#"{"a":[1.5,-2,true,null,"\ud83d\ude00"]}"#, Ok(()));
    }
}
