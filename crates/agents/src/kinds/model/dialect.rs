//! The two supported model APIs: encodes requests as JSON and decodes the events of an answer.

use super::error::{EndpointError, EndpointErrorKind};
use crate::context::ChatPrompt;
use serde_json::{Value, json};
use url::Url;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Dialect {
    /// `/v1/chat/completions`, which most model servers support.
    OpenAi,
    /// `/v1/messages`, the API of Anthropic.
    Anthropic,
}

/// One decoded event of a streaming answer.
#[derive(Debug, PartialEq, Eq)]
pub enum AnswerEvent {
    Text(String),
    Thinking(String),
    /// Number of input tokens of the whole answer so far.
    Input(u64),
    /// Number of output tokens of the whole answer so far.
    Output(u64),
    /// The answer stopped because it reached the maximum number of tokens.
    CutShort,
    /// The model declined to answer.
    Declined,
    /// The answer is complete; a usage report may follow.
    Complete,
    /// End of the stream.
    End,
}

/// Default `max_tokens` for Anthropic, where the field is required.
const DEFAULT_MAX_TOKENS: u32 = 4096;

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

    /// URL of a resource; adds `/v1` if `base` was configured without a version.
    pub fn url_for(self, base: &Url, resource: &str) -> Url {
        let path = base.path().trim_end_matches('/');
        let versioned = match self {
            Self::OpenAi => !path.is_empty(),
            Self::Anthropic => path.ends_with("/v1"),
        };
        let mut url = base.clone();
        url.set_path(&format!("{path}{}/{resource}", if versioned { "" } else { "/v1" }));
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

    /// Headers for authentication and the API version.
    pub fn headers(self, key: Option<&str>) -> Vec<(&'static str, String)> {
        match self {
            Self::OpenAi => key.map(|key| ("authorization", format!("Bearer {key}"))).into_iter().collect(),
            Self::Anthropic => {
                let key = key.map(|key| ("x-api-key", key.to_owned()));
                key.into_iter().chain([("anthropic-version", "2023-06-01".into())]).collect()
            }
        }
    }

    pub fn request(self, model: &str, prompt: &ChatPrompt, most_tokens: Option<u32>) -> Value {
        let messages = prompt.messages.iter().map(
            |message| json!({ "role": if message.own { "assistant" } else { "user" }, "content": message.text }),
        );
        match self {
            Self::OpenAi => {
                let system = json!({ "role": "system", "content": prompt.system });
                let messages: Vec<Value> = [system].into_iter().chain(messages).collect();
                let mut body = json!({ "model": model, "messages": messages, "stream": true,
                                       "stream_options": { "include_usage": true } });
                if let Some(tokens) = most_tokens {
                    body["max_tokens"] = tokens.into();
                }
                body
            }
            Self::Anthropic => json!({
                "model": model, "system": prompt.system, "messages": messages.collect::<Vec<_>>(), "stream": true,
                "max_tokens": most_tokens.unwrap_or(DEFAULT_MAX_TOKENS),
            }),
        }
    }

    /// Decodes the data of one server-sent event.
    pub fn read(self, data: &str) -> Result<Vec<AnswerEvent>, EndpointError> {
        if data.trim() == "[DONE]" {
            return Ok(vec![AnswerEvent::End]);
        }
        let event: Value =
            serde_json::from_str(data).map_err(|_| EndpointError::new(EndpointErrorKind::InvalidResponse))?;
        if let Some(error) = event.get("error").filter(|error| !error.is_null()) {
            return Err(endpoint_error(error));
        }
        Ok(match self {
            Self::OpenAi => openai(&event),
            Self::Anthropic => anthropic(&event),
        })
    }
}

fn openai(event: &Value) -> Vec<AnswerEvent> {
    let mut events = Vec::new();
    let choice = &event["choices"][0];
    let delta = &choice["delta"];
    for field in ["reasoning_content", "reasoning"] {
        events.extend(text(&delta[field]).map(AnswerEvent::Thinking));
    }
    events.extend(text(&delta["content"]).map(AnswerEvent::Text));
    events.extend(text(&delta["refusal"]).map(AnswerEvent::Text));
    events.extend(event["usage"]["prompt_tokens"].as_u64().map(AnswerEvent::Input));
    events.extend(event["usage"]["completion_tokens"].as_u64().map(AnswerEvent::Output));
    events.extend(choice["finish_reason"].as_str().and_then(|reason| match reason {
        "length" => Some(AnswerEvent::CutShort),
        "content_filter" => Some(AnswerEvent::Declined),
        _ => None,
    }));
    if choice["finish_reason"].is_string() {
        events.push(AnswerEvent::Complete);
    }
    events
}

fn anthropic(event: &Value) -> Vec<AnswerEvent> {
    let mut events = Vec::new();
    match event["type"].as_str() {
        Some("message_start") => {
            let usage = &event["message"]["usage"];
            let count = |field: &str| usage[field].as_u64().unwrap_or(0);
            let input = count("input_tokens")
                .saturating_add(count("cache_read_input_tokens"))
                .saturating_add(count("cache_creation_input_tokens"));
            events.push(AnswerEvent::Input(input));
        }
        Some("content_block_start") => {
            events.extend(text(&event["content_block"]["text"]).map(AnswerEvent::Text));
        }
        Some("content_block_delta") => {
            events.extend(text(&event["delta"]["thinking"]).map(AnswerEvent::Thinking));
            events.extend(text(&event["delta"]["text"]).map(AnswerEvent::Text));
        }
        Some("message_delta") => {
            events.extend(event["usage"]["output_tokens"].as_u64().map(AnswerEvent::Output));
            events.extend(event["delta"]["stop_reason"].as_str().and_then(|reason| match reason {
                "max_tokens" => Some(AnswerEvent::CutShort),
                "refusal" => Some(AnswerEvent::Declined),
                _ => None,
            }));
        }
        Some("message_stop") => events.push(AnswerEvent::End),
        _ => {}
    }
    events
}

fn text(value: &Value) -> Option<String> {
    value.as_str().filter(|text| !text.is_empty()).map(str::to_owned)
}

/// Maps an error event in the middle of an answer to an `EndpointError`.
fn endpoint_error(error: &Value) -> EndpointError {
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
    EndpointError { detail: message(error), ..EndpointError::new(kind) }
}

/// Message of an error object, which some endpoints send as a plain string.
pub fn message(error: &Value) -> Option<Box<str>> {
    let message = error["message"].as_str().or(error.as_str())?;
    Some(message.into())
}
