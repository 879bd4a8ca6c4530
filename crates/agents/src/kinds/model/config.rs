//! Reads the configuration of a model agent: address, model name, key, fallback.

use super::{Dialect, Endpoint, Key, Model};
use crate::kinds::AgentConfig;
use parlor_outbound::{self as outbound, AddressPolicy};
use serde_json::{Map, Value};
use std::path::Path;

/// Settings of the agent itself.
const AGENT_SETTINGS: [&str; 2] = ["instructions", "fallback"];
/// Settings of a model, for the agent and for its `fallback` table.
const MODEL_SETTINGS: [&str; 6] = ["base_url", "model", "api", "key_env", "key_file", "max_tokens"];

type ConfigError = Box<str>;

impl Model {
    pub fn new(agent_config: &AgentConfig) -> Result<Self, ConfigError> {
        agent_config.reject_unknown_keys(&[&AGENT_SETTINGS[..], &MODEL_SETTINGS].concat())?;
        let first = endpoint(&agent_config.extra, None)?;
        let second = match agent_config.extra.get("fallback") {
            None => None,
            // A string names another model on the same server.
            Some(Value::String(model)) => Some(first.with_model(model)),
            Some(Value::Object(fields)) => {
                if let Some(unknown) = fields.keys().find(|field| !MODEL_SETTINGS.contains(&field.as_str())) {
                    return Err(format!("{unknown} is not a setting of a model's fallback").into());
                }
                Some(endpoint(fields, Some(&first))?)
            }
            Some(_) => return Err("fallback must be the name of a model, or a table".into()),
        };
        Ok(Self { first, second, instructions: text(&agent_config.extra, "instructions")?.map(Into::into) })
    }
}

/// Builds an endpoint from settings. Missing settings are taken from `other`, except the key if the server
/// differs: a key is only sent to its own server.
fn endpoint(fields: &Map<String, Value>, other: Option<&Endpoint>) -> Result<Endpoint, ConfigError> {
    let model = text(fields, "model")?.ok_or("a model agent needs model, the name of the model")?;
    let base = match (text(fields, "base_url")?, other) {
        // The operator wrote this configuration, so private addresses are allowed.
        (Some(url), _) => outbound::address(url, AddressPolicy::Everywhere)
            .map_err(|rejected| format!("base_url {}", rejected.rule()))?,
        (None, Some(other)) => other.base.clone(),
        (None, None) => return Err("a model agent needs base_url, such as http://localhost:11434/v1".into()),
    };
    let dialect = match (text(fields, "api")?, other) {
        (Some(word), _) => Dialect::parse(word).ok_or("api must be openai or anthropic")?,
        (None, Some(other)) if other.base == base => other.dialect,
        // The host name identifies Anthropic's own server.
        (None, _) if base.host_str() == Some("api.anthropic.com") => Dialect::Anthropic,
        (None, _) => Dialect::OpenAi,
    };
    let key = match (text(fields, "key_env")?, text(fields, "key_file")?) {
        (Some(_), Some(_)) => return Err("give key_env or key_file, not both".into()),
        (Some(name), None) => {
            let key = Key::from_environment(name);
            Some(key.ok_or_else(|| format!("the environment variable {name} does not contain a valid key"))?)
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

fn text<'a>(fields: &'a Map<String, Value>, name: &str) -> Result<Option<&'a str>, ConfigError> {
    match fields.get(name) {
        None => Ok(None),
        Some(Value::String(text)) if !text.trim().is_empty() => Ok(Some(text)),
        Some(_) => Err(format!("{name} must be a non-empty string").into()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn model(fields: Value) -> Result<Model, ConfigError> {
        let Value::Object(extra) = fields else { panic!("{fields}") };
        Model::new(&AgentConfig { kind: "model".into(), extra, ..AgentConfig::default() })
    }

    #[test]
    fn a_local_model_needs_an_address_and_a_name() {
        let local = model(json!({ "base_url": "http://localhost:11434/v1", "model": "llama" })).unwrap();
        assert_eq!((local.first.dialect, &*local.first.model), (Dialect::OpenAi, "llama"));
        assert!(local.second.is_none() && local.first.key.is_none());
        let remote = model(json!({ "base_url": "https://api.anthropic.com", "model": "c", "max_tokens": 9 }));
        let first = remote.unwrap().first;
        assert_eq!((first.dialect, first.most_tokens), (Dialect::Anthropic, Some(9)));
    }

    #[test]
    fn a_key_goes_to_its_own_server_only() {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), "sk-canary\n").unwrap();
        let with_fallback = |fallback: Value| {
            model(json!({ "base_url": "https://a.example", "model": "m", "key_file": file.path(), "fallback": fallback }))
                .unwrap()
        };
        let same = with_fallback(json!("small"));
        assert_eq!(same.first.key.as_ref().unwrap().expose(), "sk-canary");
        assert_eq!(same.second.as_ref().unwrap().key, same.first.key);
        let other = with_fallback(json!({ "base_url": "https://b.example", "model": "small" }));
        assert_eq!(other.second.as_ref().unwrap().key, None);
        assert!(!format!("{other:?}").contains("canary"));
    }

    #[test]
    fn an_error_names_the_invalid_setting() {
        for (fields, expected) in [
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
            let error = model(fields.clone()).unwrap_err();
            assert!(error.contains(expected), "{fields}: {error}");
        }
    }
}
