//! A model as people write it down: its address, its name, and where its key is.

use super::{Dialect, Endpoint, Key, Model};
use crate::kinds::AgentConfig;
use crate::outbound::{self, AddressPolicy};
use serde_json::{Map, Value};
use std::path::Path;

/// Of the agent, besides what there is to say of its model.
const OWN: [&str; 2] = ["instructions", "fallback"];
const OF_A_MODEL: [&str; 6] = ["base_url", "model", "api", "key_env", "key_file", "max_tokens"];

type Wrong = Box<str>;

impl Model {
    pub fn new(agent_config: &AgentConfig) -> Result<Self, Wrong> {
        agent_config.reject_unknown_keys(&[&OWN[..], &OF_A_MODEL].concat())?;
        let first = endpoint(&agent_config.extra, None)?;
        let second = match agent_config.extra.get("fallback") {
            None => None,
            // Another model of the same server.
            Some(Value::String(model)) => Some(first.with_model(model)),
            Some(Value::Object(fields)) => {
                if let Some(odd) = fields.keys().find(|field| !OF_A_MODEL.contains(&field.as_str())) {
                    return Err(format!("{odd} is nothing that the fallback of a model knows").into());
                }
                Some(endpoint(fields, Some(&first))?)
            }
            Some(_) => return Err("fallback must be the name of a model, or a table".into()),
        };
        Ok(Self { first, second, instructions: text(&agent_config.extra, "instructions")?.map(Into::into) })
    }
}

/// What is left out is as with the other one, but not its key, which is for its own server.
fn endpoint(fields: &Map<String, Value>, other: Option<&Endpoint>) -> Result<Endpoint, Wrong> {
    let model = text(fields, "model")?.ok_or("a model agent needs model, the name of the model")?;
    let base = match (text(fields, "base_url")?, other) {
        // The word of whoever runs this program.
        (Some(url), _) => outbound::address(url, AddressPolicy::Everywhere)
            .map_err(|barred| format!("base_url {}", barred.rule()))?,
        (None, Some(other)) => other.base.clone(),
        (None, None) => return Err("a model agent needs base_url, such as http://localhost:11434/v1".into()),
    };
    let dialect = match (text(fields, "api")?, other) {
        (Some(word), _) => Dialect::parse(word).ok_or("api must be openai or anthropic")?,
        (None, Some(other)) if other.base == base => other.dialect,
        // By their own server they can be known.
        (None, _) if base.host_str() == Some("api.anthropic.com") => Dialect::Anthropic,
        (None, _) => Dialect::OpenAi,
    };
    let key = match (text(fields, "key_env")?, text(fields, "key_file")?) {
        (Some(_), Some(_)) => return Err("give key_env or key_file, not both".into()),
        (Some(name), None) => {
            let key = Key::from_environment(name);
            Some(key.ok_or_else(|| format!("the environment variable {name} holds no key"))?)
        }
        (None, Some(file)) => {
            let key = Key::from_file(Path::new(file));
            Some(key.map_err(|error| format!("the key in {file} cannot be read: {error}"))?)
        }
        (None, None) => other.filter(|other| other.base == base).and_then(|other| other.key.clone()),
    };
    let most_tokens = match fields.get("max_tokens") {
        None => None,
        Some(value) => {
            let number =
                value.as_u64().and_then(|number| u32::try_from(number).ok()).filter(|number| *number > 0);
            Some(number.ok_or("max_tokens must be a number above 0")?)
        }
    };
    let mut endpoint = Endpoint::new(dialect, base, key, model, AddressPolicy::Everywhere);
    endpoint.most_tokens = most_tokens;
    Ok(endpoint)
}

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, Wrong> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
        Some(_) => Err(format!("{name} must be a text").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn model(fields: Value) -> Result<Model, Wrong> {
        let Value::Object(further) = fields else { panic!("{fields}") };
        Model::new(&AgentConfig { kind: "model".into(), extra: further, ..AgentConfig::default() })
    }

    #[test]
    fn a_local_model_needs_an_address_and_a_name() {
        let made = model(json!({ "base_url": "http://localhost:11434/v1", "model": "llama" })).unwrap();
        assert_eq!((made.first.dialect, &*made.first.model), (Dialect::OpenAi, "llama"));
        assert!(made.second.is_none() && made.first.key.is_none());
        let made = model(json!({ "base_url": "https://api.anthropic.com", "model": "c", "max_tokens": 9 }));
        let first = made.unwrap().first;
        assert_eq!((first.dialect, first.most_tokens), (Dialect::Anthropic, Some(9)));
    }

    #[test]
    fn a_key_goes_to_its_own_server_only() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "sk-canary\n").unwrap();
        let made = |fallback: Value| {
            model(json!({ "base_url": "https://a.example", "model": "m", "key_file": file.path(), "fallback": fallback }))
                .unwrap()
        };
        let same = made(json!("small"));
        assert_eq!(same.first.key.as_ref().unwrap().expose(), "sk-canary");
        assert_eq!(same.second.as_ref().unwrap().key, same.first.key);
        let other = made(json!({ "base_url": "https://b.example", "model": "small" }));
        assert_eq!(other.second.as_ref().unwrap().key, None);
        assert!(!format!("{other:?}").contains("canary"));
    }

    #[test]
    fn what_is_wrong_is_said_in_words() {
        for (fields, words) in [
            (json!({ "model": "m" }), "base_url"),
            (json!({ "base_url": "https://a.example" }), "the name of the model"),
            (json!({ "base_url": "ftp://a.example", "model": "m" }), "https://"),
            (json!({ "base_url": "https://a.example", "model": "m", "api": "other" }), "anthropic"),
            (json!({ "base_url": "https://a.example", "model": "m", "modle": 1 }), "modle"),
            (json!({ "base_url": "https://a.example", "model": "m", "fallback": 1 }), "fallback"),
            (json!({ "base_url": "https://a.example", "model": "m", "max_tokens": 0 }), "max_tokens"),
            (
                json!({ "base_url": "https://a.example", "model": "m", "key_env": "PARLOR_NO_SUCH_KEY" }),
                "PARLOR_NO_SUCH_KEY",
            ),
        ] {
            let wrong = model(fields.clone()).unwrap_err();
            assert!(wrong.contains(words), "{fields}: {wrong}");
        }
    }
}
