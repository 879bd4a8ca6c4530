//! Frames that a gateway sends to the hub. Unknown fields are ignored, and `null` counts as absent.

use crate::agentim::gateway::run_event::RunEventBody;
use crate::frames::frames;
use parlor_model::{self as model, ChunkKind, Payload};
use serde::{Deserialize, Serialize};
use serde_json::Number;
use serde_json::value::RawValue;
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;

frames! {
    /// A frame of a gateway. The hub relays answers as a whole and knows only the ids in them.
    #[cfg_attr(test, derive(TS))]
    pub enum GatewayFrame<'a> {
        Auth(Auth<'a>) = "gateway:auth",
        RegisterAgent(RegisterAgent<'a>) = "gateway:register_agent",
        UnregisterAgent(UnregisterAgent<'a>) = "gateway:unregister_agent",
        MessageChunk(MessageChunk<'a>) = "gateway:message_chunk",
        MessageComplete(MessageComplete<'a>) = "gateway:message_complete",
        ResumeRun(ResumeRun<'a>) = "gateway:resume_run",
        RunAdded(RunAdded<'a>) = "gateway:run_added",
        AgentStatus(AgentStatus<'a>) = "gateway:agent_status",
        TerminalData(TerminalData<'a>) = "gateway:terminal_data",
        TaskUpdate(TaskUpdate<'a>) = "gateway:task_update",
        PermissionRequest(PermissionRequest<'a>) = "gateway:permission_request",
        RunEvent(RunEventFrame<'a>) = "gateway:run_event",
        Ping(Ping) = "gateway:ping",
        AgentCommandResult(Answer<'a>) = "gateway:agent_command_result",
        AgentInfo(Answer<'a>) = "gateway:agent_info",
        SpawnResult(Answer<'a>) = "gateway:spawn_result",
        CredentialList(Answer<'a>) = "gateway:credential_list",
        CredentialResult(Answer<'a>) = "gateway:credential_result",
        OauthUrl(Answer<'a>) = "gateway:oauth_url",
        OauthResult(Answer<'a>) = "gateway:oauth_result",
        WorkspaceResponse(Answer<'a>) = "gateway:workspace_response",
        RewindResult(Answer<'a>) = "gateway:rewind_result",
    }
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Auth<'a> {
    #[serde(borrow)]
    pub token: Cow<'a, str>,
    #[serde(borrow)]
    pub gateway_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub protocol_version: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub device_info: Option<Device>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ephemeral: Option<bool>,
    /// Whether it is a Parlor gateway.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub parlor: Option<bool>,
}

#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase", default)]
pub struct Device {
    pub hostname: Box<str>,
    pub platform: Box<str>,
    pub arch: Box<str>,
    pub node_version: Box<str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct RegisterAgent<'a> {
    #[serde(borrow)]
    pub agent: RegisteredAgent<'a>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RegisteredAgent<'a> {
    #[serde(borrow)]
    pub id: Cow<'a, str>,
    #[serde(borrow)]
    pub name: Cow<'a, str>,
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub working_directory: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub capabilities: Option<Vec<Cow<'a, str>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub model: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub slash_commands: Option<&'a RawValue>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub mcp_servers: Option<&'a RawValue>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct UnregisterAgent<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct Chunk<'a> {
    #[serde(borrow, rename = "type")]
    pub kind: Cow<'a, str>,
    #[serde(borrow)]
    pub content: Cow<'a, str>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub metadata: Option<&'a RawValue>,
}

impl<'a> Chunk<'a> {
    pub fn of(chunk: &'a model::Chunk) -> Self {
        Self {
            kind: chunk.kind.as_str().into(),
            content: (&*chunk.content).into(),
            metadata: chunk.metadata.as_ref().and_then(raw),
        }
    }

    /// `None` if the kind of the chunk is unknown.
    pub fn read(self) -> Option<model::Chunk> {
        Some(model::Chunk {
            kind: ChunkKind::parse(&self.kind)?,
            content: self.content.into(),
            metadata: self.metadata.map(payload),
        })
    }
}

/// Returns a payload as raw JSON. `None` if it is not valid JSON; the frame then omits the field.
pub fn raw(payload: &Payload) -> Option<&RawValue> {
    serde_json::from_str(&payload.0).ok()
}

pub fn payload(raw: &RawValue) -> Payload {
    Payload(raw.get().into())
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MessageChunk<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_agent_name: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub chunk: Chunk<'a>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MessageComplete<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(borrow)]
    pub message_id: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub run_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub target_agent_name: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub full_content: Option<Cow<'a, str>>,
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub chunks: Option<Vec<Chunk<'a>>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub conversation_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub depth: Option<u32>,
    /// `failed` or `interrupted`; absent if the run is complete.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub outcome: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub reason: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct ResumeRun<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub run_id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RunAdded<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub run_id: Cow<'a, str>,
    #[serde(borrow)]
    pub added_run_id: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AgentStatus<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    pub status: Status,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub queue_depth: Option<u32>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "lowercase")]
pub enum Status {
    Online,
    Offline,
    Busy,
    Error,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct TerminalData<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub data: Cow<'a, str>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct TaskUpdate<'a> {
    #[serde(borrow)]
    pub task_id: Cow<'a, str>,
    #[serde(borrow)]
    pub status: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub result: Option<Cow<'a, str>>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct PermissionRequest<'a> {
    #[serde(borrow)]
    pub request_id: Cow<'a, str>,
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(borrow)]
    pub tool_name: Cow<'a, str>,
    /// A JSON object. The hub rejects a frame without it.
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    #[cfg_attr(test, ts(as = "Option<crate::typescript::Unknown>"))]
    pub tool_input: Option<&'a RawValue>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub timeout_ms: Option<u64>,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RunEventFrame<'a> {
    #[serde(borrow)]
    pub agent_id: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub session_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub message_id: Option<Cow<'a, str>>,
    pub event: RunEventBody,
}

#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct Ping {
    #[cfg_attr(test, ts(type = "number"))]
    pub ts: Number,
}

/// Ids in the answer to a request of a user.
#[derive(Serialize, Deserialize)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Answer<'a> {
    #[serde(borrow, skip_serializing_if = "Option::is_none")]
    pub agent_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub room_id: Option<Cow<'a, str>>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub request_id: Option<Cow<'a, str>>,
}
