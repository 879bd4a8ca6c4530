//! The two ways of speaking to a model: requests as JSON, answers as events.

use super::error::{EndpointError, EndpointErrorKind};
use crate::context::ChatPrompt;
use serde_json::{Value, json};
use url::Url;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/chat/completions`, which nearly everybody speaks.
    OpenAi,
    /// `/v1/messages`.
    Anthropic,
}

/// What an answer is made of.
#[derive(Debug, PartialEq, Eq)]
pub enum AnswerEvent {
    Text(String),
    Thinking(String),
    /// Of the whole answer until now.
    Input(u64),
    Output(u64),
    /// It stopped because it may not be longer.
    CutShort,
    /// It will not answer.
    Declined,
    /// The answer is whole; what it cost may follow.
    Whole,
    /// Nothing more will come.
    Over,
}

/// Anthropic wants to be told.
const MOST_TOKENS: u32 = 4096;

impl Dialect {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::OpenAi => "openai",
            Self::Anthropic => "anthropic",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::OpenAi, Self::Anthropic].into_iter().find(|dialect| dialect.as_str() == text)
    }

    /// Where to ask; people give the address with and without its version.
    pub fn url_for(self, base: &Url, what: &str) -> Url {
        let path = base.path().trim_end_matches('/');
        let versioned = match self {
            Self::OpenAi => !path.is_empty(),
            Self::Anthropic => path.ends_with("/v1"),
        };
        let mut url = base.clone();
        url.set_path(&format!("{path}{}/{what}", if versioned { "" } else { "/v1" }));
        url
    }

    pub fn endpoint(self, base: &Url) -> Url {
        self.url_for(
            base,
            match self {
                Self::OpenAi => "chat/completions",
                Self::Anthropic => "messages",
            },
        )
    }

    /// The headers that carry a key and whatever else is wanted with it.
    pub fn headers(self, key: Option<&str>) -> Vec<(&'static str, String)> {
        match self {
            Self::OpenAi => key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect(),
            Self::Anthropic => {
                let key = key.map(|key| ("x-api-key", key.to_owned()));
                key.into_iter().chain([("anthropic-version", "2023-06-01".into())]).collect()
            }
        }
    }

    pub fn request(self, model: &str, roles: &ChatPrompt, most_tokens: Option<u32>) -> Value {
        let said = roles
            .said
            .iter()
            .map(|said| json!({ "role": if said.own { "assistant" } else { "user" }, "content": said.text }));
        match self {
            Self::OpenAi => {
                let system = json!({ "role": "system", "content": roles.system });
                let messages: Vec<Value> = [system].into_iter().chain(said).collect();
                let mut body = json!({ "model": model, "messages": messages, "stream": true,
                                       "stream_options": { "include_usage": true } });
                if let Some(most) = most_tokens {
                    body["max_tokens"] = most.into();
                }
                body
            }
            Self::Anthropic => json!({
                "model": model, "system": roles.system, "messages": said.collect::<Vec<_>>(), "stream": true,
                "max_tokens": most_tokens.unwrap_or(MOST_TOKENS),
            }),
        }
    }

    /// What one event says.
    pub fn read(self, data: &str) -> Result<Vec<AnswerEvent>, EndpointError> {
        if data.trim() == "[DONE]" {
            return Ok(vec![AnswerEvent::Over]);
        }
        let event: Value =
            serde_json::from_str(data).map_err(|_| EndpointError::new(EndpointErrorKind::NotUnderstood))?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(told(error));
        }
        Ok(match self {
            Self::OpenAi => openai(&event),
            Self::Anthropic => anthropic(&event),
        })
    }
}

fn openai(event: &Value) -> Vec<AnswerEvent> {
    let mut pieces = Vec::new();
    let choice = &event["choices"][0];
    let delta = &choice["delta"];
    for field in ["reasoning_content", "reasoning"] {
        pieces.extend(text(&delta[field]).map(AnswerEvent::Thinking));
    }
    pieces.extend(text(&delta["content"]).map(AnswerEvent::Text));
    pieces.extend(text(&delta["refusal"]).map(AnswerEvent::Text));
    pieces.extend(event["usage"]["prompt_tokens"].as_u64().map(AnswerEvent::Input));
    pieces.extend(event["usage"]["completion_tokens"].as_u64().map(AnswerEvent::Output));
    pieces.extend(choice["finish_reason"].as_str().and_then(|reason| match reason {
        "length" => Some(AnswerEvent::CutShort),
        "content_filter" => Some(AnswerEvent::Declined),
        _ => None,
    }));
    if choice["finish_reason"].is_string() {
        pieces.push(AnswerEvent::Whole);
    }
    pieces
}

fn anthropic(event: &Value) -> Vec<AnswerEvent> {
    let mut pieces = Vec::new();
    match event["type"].as_str() {
        Some("message_start") => {
            let usage = &event["message"]["usage"];
            let count = |field: &str| usage[field].as_u64().unwrap_or(0);
            let input = count("input_tokens")
                .saturating_add(count("cache_read_input_tokens"))
                .saturating_add(count("cache_creation_input_tokens"));
            pieces.push(AnswerEvent::Input(input));
        }
        Some("content_block_start") => {
            pieces.extend(text(&event["content_block"]["text"]).map(AnswerEvent::Text));
        }
        Some("content_block_delta") => {
            pieces.extend(text(&event["delta"]["thinking"]).map(AnswerEvent::Thinking));
            pieces.extend(text(&event["delta"]["text"]).map(AnswerEvent::Text));
        }
        Some("message_delta") => {
            pieces.extend(event["usage"]["output_tokens"].as_u64().map(AnswerEvent::Output));
            pieces.extend(event["delta"]["stop_reason"].as_str().and_then(|reason| match reason {
                "max_tokens" => Some(AnswerEvent::CutShort),
                "refusal" => Some(AnswerEvent::Declined),
                _ => None,
            }));
        }
        Some("message_stop") => pieces.push(AnswerEvent::Over),
        _ => {}
    }
    pieces
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// What went wrong on the other side, in the middle of an answer.
fn told(error: &Value) -> EndpointError {
    let kind = match error["type"].as_str() {
        Some("overloaded_error") => EndpointErrorKind::Overloaded,
        Some("rate_limit_error" | "rate_limit_exceeded" | "insufficient_quota") => {
            EndpointErrorKind::TooManyRequests
        }
        Some("authentication_error" | "permission_error") => EndpointErrorKind::KeyRefused,
        Some("not_found_error") => EndpointErrorKind::ModelUnknown,
        Some("invalid_request_error") => EndpointErrorKind::Rejected(400),
        _ => EndpointErrorKind::Broken(500),
    };
    EndpointError { said: message(error), ..EndpointError::new(kind) }
}

/// What an error says of itself, wherever the endpoint puts it.
pub fn message(error: &Value) -> Option<Box<str>> {
    let said = error["message"].as_str().or(error.as_str())?;
    Some(said.into())
}
