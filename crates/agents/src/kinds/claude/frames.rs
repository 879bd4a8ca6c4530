//! Decodes the output lines of the Claude CLI in `stream-json` mode, and encodes its input lines.
//!
//! Only the fields that Parlor uses are decoded: the CLI adds fields and line types with every release.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) enum Frame {
    System(System),
    /// A streaming delta of a message.
    Delta(StreamEvent),
    /// A complete message of the model, or a complete block of it.
    Assistant(FullMessage),
    /// A message to the model: a tool result, or an echoed user message.
    User(FullMessage),
    /// A permission request for a tool call.
    Permission(Permission),
    /// A control request that Parlor does not support.
    Unsupported {
        request: Box<str>,
    },
    /// The CLI withdraws an earlier permission request.
    Cancelled {
        request: Box<str>,
    },
    /// The run is complete.
    Result(Box<ResultFrame>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct System {
    pub subtype: Box<str>,
    pub session_id: Option<Box<str>>,
    pub slash_commands: Vec<Box<str>>,
    /// The preferred model.
    pub model: Option<Box<str>>,
    pub error_status: Option<u16>,
    pub retry_delay_ms: Option<u64>,
}

#[derive(Debug, Deserialize)]
pub(super) struct StreamEvent {
    pub event: Value,
    pub parent_tool_use_id: Option<Box<str>>,
}

#[derive(Debug, Deserialize)]
pub(super) struct FullMessage {
    pub message: Message,
    pub parent_tool_use_id: Option<Box<str>>,
    /// For an echoed user message: the id that Parlor gave to the input line.
    pub uuid: Option<Box<str>>,
    /// Structured result of a tool, with `stdout` and `stderr` for tools that print.
    #[serde(default)]
    pub tool_use_result: Value,
}

#[derive(Debug, Deserialize)]
pub(super) struct Message {
    pub id: Option<Box<str>>,
    pub model: Option<Box<str>>,
    #[serde(default)]
    pub content: Value,
}

#[derive(Debug)]
pub(super) struct Permission {
    pub request: Box<str>,
    pub tool: Box<str>,
    /// Exact input of the tool, byte for byte.
    pub input: Box<RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultFrame {
    pub subtype: Box<str>,
    pub is_error: bool,
    pub result: Option<Box<str>>,
    pub errors: Vec<Box<str>>,
    /// Cost of the whole session.
    pub total_cost_usd: Option<f64>,
    /// Tokens of this run.
    pub usage: TokenUsage,
}

#[derive(Debug, Clone, Copy, Default, Deserialize)]
#[serde(default)]
pub(super) struct TokenUsage {
    pub input_tokens: u64,
    pub cache_creation_input_tokens: u64,
    pub cache_read_input_tokens: u64,
    pub output_tokens: u64,
}

impl TokenUsage {
    pub(super) fn add(&mut self, other: &Self) {
        self.input_tokens += other.input_tokens;
        self.cache_creation_input_tokens += other.cache_creation_input_tokens;
        self.cache_read_input_tokens += other.cache_read_input_tokens;
        self.output_tokens += other.output_tokens;
    }
}

/// Decodes a line; `None` for unused line types and for lines that are not JSON.
pub(super) fn read(line: &str) -> Option<Frame> {
    #[derive(Deserialize)]
    struct Typed<'a> {
        #[serde(borrow, rename = "type")]
        kind: std::borrow::Cow<'a, str>,
    }
    let typed: Typed = serde_json::from_str(line).ok()?;
    Some(match &*typed.kind {
        "stream_event" => Frame::Delta(serde_json::from_str(line).ok()?),
        "assistant" => Frame::Assistant(serde_json::from_str(line).ok()?),
        "user" => Frame::User(serde_json::from_str(line).ok()?),
        "system" => Frame::System(serde_json::from_str(line).ok()?),
        "result" => Frame::Result(serde_json::from_str(line).ok()?),
        "control_request" => control_request(line)?,
        "control_cancel_request" => {
            #[derive(Deserialize)]
            struct CancelRequest {
                request_id: Box<str>,
            }
            Frame::Cancelled { request: serde_json::from_str::<CancelRequest>(line).ok()?.request_id }
        }
        _ => return None,
    })
}

fn control_request(line: &str) -> Option<Frame> {
    #[derive(Deserialize)]
    struct ControlRequest {
        request_id: Box<str>,
        request: Request,
    }
    #[derive(Deserialize)]
    struct Request {
        subtype: Box<str>,
        tool_name: Option<Box<str>>,
        input: Option<Box<RawValue>>,
    }
    let ControlRequest { request_id, request } = serde_json::from_str(line).ok()?;
    Some(match (&*request.subtype, request.tool_name, request.input) {
        ("can_use_tool", Some(tool), Some(input)) => {
            Frame::Permission(Permission { request: request_id, tool, input })
        }
        _ => Frame::Unsupported { request: request_id },
    })
}

/// Encodes a user message; the CLI echoes `id` when the model has received the message.
pub(super) fn user_message(text: &str, id: &str) -> String {
    let content = json!([{ "type": "text", "text": text }]);
    json!({ "type": "user", "message": { "role": "user", "content": content }, "parent_tool_use_id": null,
        "session_id": "", "uuid": id })
    .to_string()
}

pub(super) fn allow(permission: &Permission) -> String {
    let Permission { request, input, .. } = permission;
    // Formatted by hand, because the approved input must be returned byte for byte.
    let request = json!(request);
    let answer = format!(r#"{{"behavior":"allow","updatedInput":{}}}"#, input.get());
    format!(
        r#"{{"type":"control_response","response":{{"subtype":"success","request_id":{request},"response":{answer}}}}}"#
    )
}

pub(super) fn deny(permission: &Permission, reason: &str) -> String {
    let answer = json!({ "behavior": "deny", "message": reason });
    let response = json!({ "subtype": "success", "request_id": permission.request, "response": answer });
    json!({ "type": "control_response", "response": response }).to_string()
}

pub(super) fn unsupported(request: &str) -> String {
    let response =
        json!({ "subtype": "error", "request_id": request, "error": "This is not supported in a room." });
    json!({ "type": "control_response", "response": response }).to_string()
}

pub(super) fn interrupt() -> String {
    json!({ "type": "control_request", "request_id": "stop", "request": { "subtype": "interrupt" } })
        .to_string()
}

/// The content blocks of a message; values that are not objects are skipped.
pub(super) fn blocks(content: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    content.as_array().into_iter().flatten().filter_map(Value::as_object)
}
