//! Answers about instructions, tools and folders of agents.

use super::super::frames::tools::*;
use super::super::frames::{Answer, Plain};
use super::MESSAGE_BYTES;
use crate::frames::{encode, encode_about};
use parlor_model::{AgentId, ToolDescription, ToolFailure};
use serde_json::value::RawValue;

/// Encodes the agent's own `CLAUDE.md`.
pub fn instructions(agent: &AgentId, content: &str, req_id: Option<&RawValue>) -> String {
    let instructions = Instructions { id: agent.as_str().into(), content: content.into(), req_id };
    encode_about(&Answer::InstructionsGet(instructions), MESSAGE_BYTES)
}

pub fn instructions_stored(agent: &AgentId, req_id: Option<&RawValue>) -> String {
    encode(&Answer::InstructionsSet(StoredInstructions { id: agent.as_str().into(), req_id }))
}

pub fn tools(agent: &AgentId, tools: &[ToolDescription], req_id: Option<&RawValue>) -> String {
    let tools = tools.iter().map(|tool| Tool {
        name: (&*tool.name).into(),
        description: (&*tool.description).into(),
        timeout_ms: tool.timeout.map(|timeout| timeout.as_millis().try_into().unwrap_or(u64::MAX)),
        schema: raw(&tool.schema),
    });
    let tools = Tools { agent_id: agent.as_str().into(), tools: tools.collect(), req_id };
    encode_about(&Answer::ToolsList(tools), MESSAGE_BYTES)
}

pub fn tools_refreshed(req_id: Option<&RawValue>) -> String {
    encode(&Answer::ToolsRefresh(Plain { req_id }))
}

/// Encodes the result of a call of `tool`, which is the name in the request.
pub fn executed(
    agent: &AgentId,
    tool: &str,
    result: &parlor_model::ToolResult,
    req_id: Option<&RawValue>,
) -> String {
    let (data, error) = match &result.outcome {
        Ok(data) => (Some(raw(data)), None),
        Err(failure) => (None, Some(self::failure(failure))),
    };
    let is_error = error.is_some();
    let output = ToolOutput {
        ok: !is_error,
        tool: (&*result.tool).into(),
        timestamp: result.at.millis(),
        data,
        error,
    };
    let (agent_id, result) = (agent.as_str().into(), Execution { is_error, output });
    let result = ToolResult { agent_id, tool_name: tool.into(), result, req_id };
    encode_about(&Answer::ToolExecute(result), MESSAGE_BYTES)
}

fn failure(failure: &ToolFailure) -> ToolError<'_> {
    ToolError {
        code: failure.code.as_str().into(),
        message: (&*failure.message).into(),
        retryable: failure.code.is_retryable(),
        details: failure.details.as_deref().map(Into::into),
    }
}

/// The JSON of a payload; `null` if it is none, which the hub does not produce.
fn raw(payload: &parlor_model::Payload) -> &RawValue {
    serde_json::from_str(&payload.0).unwrap_or(RawValue::NULL)
}

pub fn rebuilt(req_id: Option<&RawValue>) -> String {
    encode(&Answer::Rebuild(Plain { req_id }))
}
