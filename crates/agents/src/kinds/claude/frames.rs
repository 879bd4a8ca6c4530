//! The lines of the Claude CLI with `--output-format stream-json`, and those that it takes.
//!
//! Only what we use of them is read: the CLI adds fields and kinds of lines with every release.

use serde::Deserialize;
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

#[derive(Debug)]
pub(super) enum Frame {
    System(System),
    /// A piece of a message while the model writes it.
    Piece(StreamEvent),
    /// A message of the model, or a block of it, whole.
    Assistant(FullMessage),
    /// What was told to the model: results of tools, mostly.
    User(FullMessage),
    /// It wants to use a tool.
    Permission(Permission),
    /// It asks us for what we do not do.
    Unknown {
        request: Box<str>,
    },
    /// It wants no answer any more.
    CalledOff {
        request: Box<str>,
    },
    /// The turn is over.
    Result(Box<ResultFrame>),
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct System {
    pub subtype: Box<str>,
    pub session_id: Option<Box<str>>,
    pub slash_commands: Vec<Box<str>>,
    /// Which is asked first.
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
    /// Of what was told to the model: which of our lines that was.
    pub uuid: Option<Box<str>>,
    /// What a tool printed, where it is one that does.
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
    /// To the letter, as it is to be done.
    pub input: Box<RawValue>,
}

#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub(super) struct ResultFrame {
    pub subtype: Box<str>,
    pub is_error: bool,
    pub result: Option<Box<str>>,
    pub errors: Vec<Box<str>>,
    /// Of the whole session.
    pub total_cost_usd: Option<f64>,
    /// Of this turn.
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

/// `None` for what is of no concern to us, or no frame at all.
pub(super) fn read(line: &str) -> Option<Frame> {
    #[derive(Deserialize)]
    struct Head<'a> {
        #[serde(borrow, rename = "type")]
        kind: std::borrow::Cow<'a, str>,
    }
    let head: Head = serde_json::from_str(line).ok()?;
    Some(match &*head.kind {
        "stream_event" => Frame::Piece(serde_json::from_str(line).ok()?),
        "assistant" => Frame::Assistant(serde_json::from_str(line).ok()?),
        "user" => Frame::User(serde_json::from_str(line).ok()?),
        "system" => Frame::System(serde_json::from_str(line).ok()?),
        "result" => Frame::Result(serde_json::from_str(line).ok()?),
        "control_request" => asked(line)?,
        "control_cancel_request" => {
            #[derive(Deserialize)]
            struct CalledOff {
                request_id: Box<str>,
            }
            Frame::CalledOff { request: serde_json::from_str::<CalledOff>(line).ok()?.request_id }
        }
        _ => return None,
    })
}

fn asked(line: &str) -> Option<Frame> {
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
        _ => Frame::Unknown { request: request_id },
    })
}

/// What a person says.
pub(super) fn said(words: &str, id: &str) -> String {
    let content = json!([{ "type": "text", "text": words }]);
    json!({ "type": "user", "message": { "role": "user", "content": content }, "parent_tool_use_id": null,
        "session_id": "", "uuid": id })
    .to_string()
}

pub(super) fn allow(permission: &Permission) -> String {
    let Permission { request, input, .. } = permission;
    // Put together by hand: the input goes back as it came, to the letter.
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

pub(super) fn cannot(request: &str) -> String {
    let response =
        json!({ "subtype": "error", "request_id": request, "error": "This is not possible in a room." });
    json!({ "type": "control_response", "response": response }).to_string()
}

pub(super) fn interrupt() -> String {
    json!({ "type": "control_request", "request_id": "stop", "request": { "subtype": "interrupt" } })
        .to_string()
}

/// The blocks of a message, where they are objects.
pub(super) fn blocks(content: &Value) -> impl Iterator<Item = &Map<String, Value>> {
    content.as_array().into_iter().flatten().filter_map(Value::as_object)
}
