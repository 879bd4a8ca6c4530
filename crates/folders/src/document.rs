//! A JSON object whose fields keep their order and their exact text, so that a file that the hub changes differs only in the
//! changed fields.

use parlor_wire::json::{self, JsonDefect, JsonLimits};
use serde::de::{Deserialize, Deserializer, Error, MapAccess, Visitor};
use serde_json::value::RawValue;
use std::fmt;

const LIMITS: JsonLimits = JsonLimits { depth: 64, items: 10_000 };

#[derive(Debug, Clone, Default)]
pub struct Document {
    fields: Vec<(Box<str>, Box<RawValue>)>,
}

impl Document {
    /// Parses a file. The error is a sentence for the person who wrote the file; it does not quote the content.
    pub fn parse(bytes: &[u8]) -> Result<Self, String> {
        let text = std::str::from_utf8(bytes).map_err(|_| "it is not UTF-8 text".to_owned())?;
        let text = text.strip_prefix('\u{feff}').unwrap_or(text);
        json::check(text, LIMITS).map_err(|defect| {
            match defect {
                JsonDefect::Syntax => "it is not valid JSON",
                JsonDefect::TooDeep => "its JSON is nested too deeply",
                JsonDefect::TooMany => "an object or a list has more than 10000 entries",
                JsonDefect::RepeatedKey => "a field occurs twice",
            }
            .to_owned()
        })?;
        serde_json::from_str(text).map_err(|_| "it is not a JSON object".to_owned())
    }

    pub fn fields(&self) -> impl Iterator<Item = (&str, &str)> {
        self.fields.iter().map(|(name, value)| (&**name, value.get()))
    }

    /// The JSON of a field; `None` if it is absent or `null`.
    pub fn get(&self, name: &str) -> Option<&str> {
        self.fields().find(|(field, _)| *field == name).map(|(_, value)| value).filter(|json| *json != "null")
    }

    /// The text of a field; an error if it is no text.
    pub fn text(&self, name: &str) -> Result<Option<Box<str>>, String> {
        let Some(json) = self.get(name) else { return Ok(None) };
        serde_json::from_str(json).map(Some).map_err(|_| format!("the field {name} must be a text"))
    }

    /// Sets a field. A field with an equal value keeps its text.
    pub fn set(&mut self, name: &str, json: &str) {
        let Ok(value) = RawValue::from_string(json.to_owned()) else { return };
        match self.fields.iter_mut().find(|(field, _)| **field == *name) {
            Some((_, old)) if compact(old.get()) == compact(json) => {}
            Some((_, old)) => *old = value,
            None => self.fields.push((name.into(), value)),
        }
    }

    pub fn set_text(&mut self, name: &str, text: &str) {
        self.set(name, &serde_json::to_string(text).expect("a string always serialises to JSON"));
    }

    /// Removes all fields except those for which `keep` returns `true`.
    pub fn retain(&mut self, keep: impl Fn(&str) -> bool) {
        self.fields.retain(|(name, _)| keep(name));
    }

    /// The content of the file: one field per line.
    pub fn render(&self) -> String {
        let mut text = String::from("{");
        for (index, (name, value)) in self.fields.iter().enumerate() {
            let name = serde_json::to_string(name).expect("a string always serialises to JSON");
            text.push_str(if index == 0 { "\n  " } else { ",\n  " });
            text.push_str(&name);
            text.push_str(": ");
            text.push_str(value.get());
        }
        text.push_str("\n}\n");
        text
    }
}

/// The JSON without white space between its tokens, so that two texts of one value can be compared. Numbers and strings keep
/// their exact form.
pub fn compact(json: &str) -> String {
    let (mut result, mut in_string, mut escaped) = (String::with_capacity(json.len()), false, false);
    for c in json.chars() {
        if in_string {
            in_string = escaped || c != '"';
            escaped = c == '\\' && !escaped;
            result.push(c);
        } else if !c.is_ascii_whitespace() {
            in_string = c == '"';
            result.push(c);
        }
    }
    result
}

impl<'de> Deserialize<'de> for Document {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Fields;

        impl<'de> Visitor<'de> for Fields {
            type Value = Document;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Document, A::Error> {
                let mut fields = Vec::new();
                while let Some(name) = map.next_key::<String>()? {
                    let value: Box<RawValue> = map.next_value().map_err(A::Error::custom)?;
                    fields.push((name.into(), value));
                }
                Ok(Document { fields })
            }
        }

        deserializer.deserialize_map(Fields)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_changed_field_leaves_all_others_as_they_were() {
        let text = r#"{"z": 1.50, "big": 123456789012345678901234567890, "list": [ 1,
            2 ], "name": "A", "nothing": null}"#;
        let mut document = Document::parse(text.as_bytes()).unwrap();
        document.set("list", "[1,2]");
        document.set_text("name", "B \"C\"");
        document.set("new", "{\"a\":1}");
        document.retain(|name| name != "z");
        let expected = "{\n  \"big\": 123456789012345678901234567890,\n  \"list\": [ 1,\n            2 ],\n  \
                        \"name\": \"B \\\"C\\\"\",\n  \"nothing\": null,\n  \"new\": {\"a\":1}\n}\n";
        assert_eq!(document.render(), expected);
        assert_eq!(document.get("nothing"), None);
    }

    #[test]
    fn invalid_files_are_rejected_with_a_reason() {
        let check = |bytes: &[u8], reason: &str| {
            let error = Document::parse(bytes).unwrap_err();
            assert!(error.contains(reason), "{error}");
        };
        check(b"", "not valid JSON");
        check(b"{\"a\":1", "not valid JSON");
        check(b"[1]", "not a JSON object");
        check(b"\xff{}", "UTF-8");
        check(b"{\"a\":1,\"a\":2}", "twice");
        check("[".repeat(100).as_bytes(), "nested");
    }

    #[test]
    fn white_space_is_removed_only_between_tokens() {
        assert_eq!(compact("{ \"a b\" : [ \"\\\" x\" , 1 ] }"), "{\"a b\":[\"\\\" x\",1]}");
    }
}
