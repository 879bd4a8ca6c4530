//! Generates sample and random values for JSON schemas, and mutations that may make them invalid.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Number, Value, json};

use crate::scene::PASSWORD;

/// Prefix of placeholders such as `known:replyToId:7`: an id that the hub returned earlier and that suits a
/// field of that name. `fuzz` replaces them.
pub const KNOWN_ID_PREFIX: &str = "known:";

/// A value of this schema with all optional fields, which also satisfies the rules for names, ids and
/// passwords.
pub fn sample(schema: &Value) -> Value {
    if let Some(example) = schema.get("example").or_else(|| schema["examples"].get(0)) {
        return example.clone();
    }
    if let Some(values) = schema["enum"].as_array() {
        return values[0].clone();
    }
    if let Some(schemas) = schema["oneOf"].as_array() {
        return sample(&schemas[0]);
    }
    match kind(schema) {
        "object" => {
            let fields = schema["properties"].as_object().into_iter().flatten();
            Value::Object(fields.map(|(name, schema)| (name.clone(), sample(schema))).collect())
        }
        "array" => Value::Array(vec![sample(&schema["items"])]),
        "integer" | "number" => 1.into(),
        "boolean" => true.into(),
        _ => {
            let max_chars = schema["maxLength"].as_u64().unwrap_or(u64::MAX) as usize;
            "Sample-text-1".chars().take(max_chars).collect::<String>().into()
        }
    }
}

/// The type of a schema, ignoring that it may also be `null`.
pub fn kind(schema: &Value) -> &str {
    match &schema["type"] {
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("")
        }
        kind => kind.as_str().unwrap_or(""),
    }
}

/// Strategy for values of this schema; the field name decides which texts are generated.
pub fn values(schema: &Value, name: &str) -> BoxedStrategy<Value> {
    if let Some(values) = schema["enum"].as_array() {
        return select(values.clone()).boxed();
    }
    if let Some(schemas) = schema["oneOf"].as_array() {
        return proptest::strategy::Union::new(schemas.iter().map(|schema| values(schema, name))).boxed();
    }
    let value = match kind(schema) {
        "object" => object(schema),
        "array" => prop::collection::vec(values(&schema["items"], name), 0..4).prop_map(Value::from).boxed(),
        "integer" | "number" => numbers(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "null" => Just(Value::Null).boxed(),
        _ => texts(name).prop_map(Value::from).boxed(),
    };
    let nullable = schema["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("null")));
    if nullable { prop_oneof![5 => value, 1 => Just(Value::Null)].boxed() } else { value }
}

fn object(schema: &Value) -> BoxedStrategy<Value> {
    let required = schema["required"].as_array().cloned().unwrap_or_default();
    let fields = schema["properties"].as_object().into_iter().flatten().map(|(name, schema)| {
        let name = name.clone();
        let is_required = required.contains(&json!(name));
        let value = values(schema, &name);
        (Just(name), if is_required { value.prop_map(Some).boxed() } else { prop::option::of(value).boxed() })
            .boxed()
    });
    let fields: Vec<_> = fields.collect();
    let to_object = |fields: Vec<(String, Option<Value>)>| {
        Value::Object(fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    };
    fields.prop_map(to_object).boxed()
}

fn numbers() -> BoxedStrategy<Value> {
    prop_oneof![0u64..10, Just(u64::MAX), any::<u64>()].prop_map(|number| Number::from(number).into()).boxed()
}

pub fn texts(name: &str) -> BoxedStrategy<String> {
    let any_text = prop_oneof!["\\PC{0,40}", "[a-z ]{1,20}", "[\\x00-\\x20\u{202e}]{0,9}"];
    let field = name.to_owned();
    let known_id = (0..200usize).prop_map(move |number| format!("{KNOWN_ID_PREFIX}{field}:{number}"));
    match name {
        "username" => select(["admin", "ada", "bob", "eve", "mallory"].map(String::from).to_vec()).boxed(),
        _ if name.to_lowercase().contains("password") => {
            prop_oneof![4 => Just(PASSWORD.to_owned()), 1 => any_text].boxed()
        }
        _ if name.ends_with("Id") || name.ends_with("Ids") => {
            prop_oneof![4 => known_id, 1 => "[A-Za-z0-9_-]{1,64}", 1 => any_text].boxed()
        }
        "content" => prop_oneof![8 => any_text, 1 => Just("x".repeat(100_001))].boxed(),
        _ => any_text.boxed(),
    }
}

/// Mutation of a request body before it is sent.
#[derive(Debug, Clone)]
pub enum Mutation {
    Nothing,
    LeaveOut(Index),
    Replace(Index, Value),
    Add(Value),
    /// Truncates the JSON text.
    Cut(Index),
}

pub fn mutations() -> impl Strategy<Value = Mutation> {
    let unexpected = select(vec![
        Value::Null,
        json!(-1),
        json!(1.5e300),
        json!([]),
        json!({}),
        json!([[[[]]]]),
        json!(true),
        json!(""),
        json!("x".repeat(5000)),
        json!("\u{0}\u{202e}\n"),
    ]);
    prop_oneof![
        8 => Just(Mutation::Nothing),
        1 => any::<Index>().prop_map(Mutation::LeaveOut),
        3 => (any::<Index>(), unexpected.clone()).prop_map(|(index, value)| Mutation::Replace(index, value)),
        1 => unexpected.prop_map(Mutation::Add),
        1 => any::<Index>().prop_map(Mutation::Cut),
    ]
}

/// The mutated body as JSON text.
pub fn mutated(mut value: Value, mutation: &Mutation) -> String {
    if let (Value::Object(fields), Mutation::LeaveOut(_) | Mutation::Replace(..) | Mutation::Add(_)) =
        (&mut value, mutation)
    {
        let names: Vec<String> = fields.keys().cloned().collect();
        match mutation {
            Mutation::LeaveOut(index) if !names.is_empty() => drop(fields.remove(index.get(&names))),
            Mutation::Replace(index, unexpected) if !names.is_empty() => {
                fields.insert(index.get(&names).clone(), unexpected.clone());
            }
            Mutation::Add(unexpected) => drop(fields.insert("unknownField".into(), unexpected.clone())),
            _ => {}
        }
    }
    let mut text = value.to_string();
    if let Mutation::Cut(index) = mutation {
        let end = (0..=index.index(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
    }
    text
}
