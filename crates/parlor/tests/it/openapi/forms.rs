//! From a form to values of it.

use proptest::prelude::*;
use proptest::sample::{Index, select};
use serde_json::{Number, Value, json};

use crate::scene::PASSWORD;

/// `known:replyToId:7` stands for an id that the hub has told, fit for a field of that name; see `fuzz`.
pub const KNOWN: &str = "known:";

/// A value of this form with everything in it that can be, which fits the usual rules for names, ids and
/// passwords as well.
pub fn sample(form: &Value) -> Value {
    if let Some(example) = form.get("example").or_else(|| form["examples"].get(0)) {
        return example.clone();
    }
    if let Some(words) = form["enum"].as_array() {
        return words[0].clone();
    }
    if let Some(forms) = form["oneOf"].as_array() {
        return sample(&forms[0]);
    }
    match kind(form) {
        "object" => {
            let fields = form["properties"].as_object().into_iter().flatten();
            Value::Object(fields.map(|(name, form)| (name.clone(), sample(form))).collect())
        }
        "array" => Value::Array(vec![sample(&form["items"])]),
        "integer" | "number" => 1.into(),
        "boolean" => true.into(),
        _ => {
            let most = form["maxLength"].as_u64().unwrap_or(u64::MAX) as usize;
            "Sample-text-1".chars().take(most).collect::<String>().into()
        }
    }
}

/// The type of a value, and not that it may be `null` too.
pub fn kind(form: &Value) -> &str {
    match &form["type"] {
        Value::Array(kinds) => {
            kinds.iter().filter_map(Value::as_str).find(|kind| *kind != "null").unwrap_or("")
        }
        kind => kind.as_str().unwrap_or(""),
    }
}

/// Values of this form; a field's name says something about its texts.
pub fn values(form: &Value, name: &str) -> BoxedStrategy<Value> {
    if let Some(words) = form["enum"].as_array() {
        return select(words.clone()).boxed();
    }
    if let Some(forms) = form["oneOf"].as_array() {
        return proptest::strategy::Union::new(forms.iter().map(|form| values(form, name))).boxed();
    }
    let some = match kind(form) {
        "object" => object(form),
        "array" => prop::collection::vec(values(&form["items"], name), 0..4).prop_map(Value::from).boxed(),
        "integer" | "number" => numbers(),
        "boolean" => any::<bool>().prop_map(Value::from).boxed(),
        "null" => Just(Value::Null).boxed(),
        _ => texts(name).prop_map(Value::from).boxed(),
    };
    let nullable = form["type"].as_array().is_some_and(|kinds| kinds.contains(&json!("null")));
    if nullable { prop_oneof![5 => some, 1 => Just(Value::Null)].boxed() } else { some }
}

fn object(form: &Value) -> BoxedStrategy<Value> {
    let required = form["required"].as_array().cloned().unwrap_or_default();
    let fields = form["properties"].as_object().into_iter().flatten().map(|(name, form)| {
        let name = name.clone();
        let always = required.contains(&json!(name));
        let value = values(form, &name);
        (Just(name), if always { value.prop_map(Some).boxed() } else { prop::option::of(value).boxed() })
            .boxed()
    });
    let fields: Vec<_> = fields.collect();
    let filled = |fields: Vec<(String, Option<Value>)>| {
        Value::Object(fields.into_iter().filter_map(|(name, value)| Some((name, value?))).collect())
    };
    fields.prop_map(filled).boxed()
}

fn numbers() -> BoxedStrategy<Value> {
    prop_oneof![0u64..10, Just(u64::MAX), any::<u64>()].prop_map(|number| Number::from(number).into()).boxed()
}

pub fn texts(name: &str) -> BoxedStrategy<String> {
    let any_text = prop_oneof!["\\PC{0,40}", "[a-z ]{1,20}", "[\\x00-\\x20\u{202e}]{0,9}"];
    let field = name.to_owned();
    let known = (0..200usize).prop_map(move |number| format!("{KNOWN}{field}:{number}"));
    match name {
        "username" => select(["admin", "ada", "bob", "eve", "mallory"].map(String::from).to_vec()).boxed(),
        _ if name.to_lowercase().contains("password") => {
            prop_oneof![4 => Just(PASSWORD.to_owned()), 1 => any_text].boxed()
        }
        _ if name.ends_with("Id") || name.ends_with("Ids") => {
            prop_oneof![4 => known, 1 => "[A-Za-z0-9_-]{1,64}", 1 => any_text].boxed()
        }
        "content" => prop_oneof![8 => any_text, 1 => Just("x".repeat(100_001))].boxed(),
        _ => any_text.boxed(),
    }
}

/// What is done to a value on its way.
#[derive(Debug, Clone)]
pub enum Harm {
    Nothing,
    LeaveOut(Index),
    Replace(Index, Value),
    Add(Value),
    /// The text of it ends before its end.
    Cut(Index),
}

pub fn harms() -> impl Strategy<Value = Harm> {
    let odd = select(vec![
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
        8 => Just(Harm::Nothing),
        1 => any::<Index>().prop_map(Harm::LeaveOut),
        3 => (any::<Index>(), odd.clone()).prop_map(|(place, value)| Harm::Replace(place, value)),
        1 => odd.prop_map(Harm::Add),
        1 => any::<Index>().prop_map(Harm::Cut),
    ]
}

/// The body as it is sent.
pub fn harmed(mut value: Value, harm: &Harm) -> String {
    if let (Value::Object(fields), Harm::LeaveOut(_) | Harm::Replace(..) | Harm::Add(_)) = (&mut value, harm)
    {
        let names: Vec<String> = fields.keys().cloned().collect();
        match harm {
            Harm::LeaveOut(place) if !names.is_empty() => drop(fields.remove(place.get(&names))),
            Harm::Replace(place, odd) if !names.is_empty() => {
                fields.insert(place.get(&names).clone(), odd.clone());
            }
            Harm::Add(odd) => drop(fields.insert("unheardOf".into(), odd.clone())),
            _ => {}
        }
    }
    let mut text = value.to_string();
    if let Harm::Cut(place) = harm {
        let end = (0..=place.index(text.len())).rev().find(|end| text.is_char_boundary(*end));
        text.truncate(end.unwrap_or_default());
    }
    text
}
