//! Bodies of `/api/service-agents`: models that answer as agents inside the hub.

use super::given;
use crate::time::iso;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Placeholder that responses contain instead of an API key. In a request, it means that the key stays
/// unchanged.
pub const HIDDEN_KEY: &str = "********";

/// Properties of a service agent. `name` and `config.model` are required for a new one.
#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ServiceAgentBody {
    pub name: Option<Box<str>>,
    /// API of the model. Default: `openai-chat`.
    #[serde(rename = "type")]
    #[schema(value_type = Option<ServiceAgentType>)]
    #[cfg_attr(test, ts(as = "Option<ServiceAgentType>"))]
    pub kind: Option<Box<str>>,
    pub description: Option<Box<str>>,
    #[schema(value_type = Option<ServiceAgentStatus>)]
    #[cfg_attr(test, ts(as = "Option<ServiceAgentStatus>"))]
    pub status: Option<Box<str>>,
    #[serde(default)]
    pub config: Option<ServiceAgentSettings>,
}

#[derive(Deserialize, ToSchema, Default)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ServiceAgentSettings {
    /// Base URL of the API. Default: the URL of the provider.
    pub base_url: Option<Box<str>>,
    /// `null` removes the key. A new `baseUrl` requires the key to be sent again.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub api_key: Option<Option<Box<str>>>,
    pub model: Option<Box<str>>,
    /// Another model of the same server, used if the first does not answer. `null` removes it.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub fallback_model: Option<Option<Box<str>>>,
    /// Instructions for the agent. `null` removes them.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub system_prompt: Option<Option<Box<str>>>,
    /// Maximum tokens of one reply. `null` removes the limit.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<u32>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<u32>"))]
    pub max_tokens: Option<Option<u32>>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "kebab-case")]
pub enum ServiceAgentType {
    OpenaiChat,
    AnthropicChat,
}

impl ServiceAgentType {
    pub fn parse(text: &str) -> Option<parlor_model::ModelApi> {
        match text {
            "openai-chat" => Some(parlor_model::ModelApi::OpenAi),
            "anthropic-chat" => Some(parlor_model::ModelApi::Anthropic),
            _ => None,
        }
    }
}

impl From<parlor_model::ModelApi> for ServiceAgentType {
    fn from(api: parlor_model::ModelApi) -> Self {
        match api {
            parlor_model::ModelApi::OpenAi => Self::OpenaiChat,
            parlor_model::ModelApi::Anthropic => Self::AnthropicChat,
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum ServiceAgentStatus {
    Active,
    Inactive,
}

/// Category of a service agent.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum ServiceAgentCategory {
    Chat,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ServiceAgent<'a> {
    /// Id of the agent.
    pub id: &'a str,
    pub name: &'a str,
    #[serde(rename = "type")]
    pub kind: ServiceAgentType,
    pub category: ServiceAgentCategory,
    pub description: &'a str,
    pub status: ServiceAgentStatus,
    pub config: ServiceAgentConfig<'a>,
    pub created_by_id: &'a str,
    pub created_at: String,
    pub updated_at: String,
}

/// Configuration of a service agent. Fields that are not set are omitted.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ServiceAgentConfig<'a> {
    pub base_url: &'a str,
    /// Asterisks if a key is set; the key itself is never returned.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub api_key: Option<&'a str>,
    pub model: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub fallback_model: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub system_prompt: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub max_tokens: Option<u32>,
}

impl<'a> ServiceAgent<'a> {
    pub fn new(agent: &'a parlor_model::Agent, service: &'a parlor_model::Service) -> Self {
        Self {
            id: agent.id.as_str(),
            name: &agent.name,
            kind: service.model.api.into(),
            category: ServiceAgentCategory::Chat,
            description: &agent.description,
            status: match service.active {
                true => ServiceAgentStatus::Active,
                false => ServiceAgentStatus::Inactive,
            },
            config: ServiceAgentConfig {
                base_url: &service.model.base_url,
                api_key: service.model.key.as_ref().map(|_| HIDDEN_KEY),
                model: &service.model.model,
                fallback_model: service.fallback.as_deref(),
                system_prompt: service.instructions.as_deref(),
                max_tokens: service.most_tokens,
            },
            created_by_id: agent.owner.as_str(),
            created_at: iso(agent.created_at),
            updated_at: iso(service.updated_at),
        }
    }
}

/// A supported model API and its configuration.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ServiceProvider {
    #[serde(rename = "type")]
    pub kind: ServiceAgentType,
    pub display_name: &'static str,
    pub category: ServiceAgentCategory,
    pub description: &'static str,
    /// JSON Schema of `config`.
    #[schema(value_type = Object)]
    #[cfg_attr(test, ts(type = "unknown"))]
    pub config_schema: Value,
}

impl ServiceProvider {
    /// Returns the default base URL of an API.
    pub fn base_url(api: parlor_model::ModelApi) -> &'static str {
        match api {
            parlor_model::ModelApi::OpenAi => "https://api.openai.com/v1",
            parlor_model::ModelApi::Anthropic => "https://api.anthropic.com/v1",
        }
    }

    pub fn all() -> [Self; 2] {
        use parlor_model::ModelApi::{Anthropic, OpenAi};
        let provider = |api, display_name, description| Self {
            kind: ServiceAgentType::from(api),
            display_name,
            category: ServiceAgentCategory::Chat,
            description,
            config_schema: json!({
                "type": "object",
                "required": ["model"],
                "properties": {
                    "baseUrl": { "type": "string", "default": Self::base_url(api) },
                    "apiKey": { "type": "string" },
                    "model": { "type": "string" },
                    "fallbackModel": { "type": "string" },
                    "systemPrompt": { "type": "string" },
                    "maxTokens": { "type": "integer", "minimum": 1 },
                },
            }),
        };
        [
            provider(OpenAi, "OpenAI-compatible", "Any server that implements /v1/chat/completions"),
            provider(Anthropic, "Anthropic", "Any server that implements /v1/messages"),
        ]
    }
}

/// Result of a test request to the model.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ServiceValidation {
    pub valid: bool,
    /// Reason of the failure.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub error: Option<String>,
}
