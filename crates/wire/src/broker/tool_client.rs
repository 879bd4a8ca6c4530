//! The side of a program that lists and calls the tools of an agent over `/ws/broker`.
//!
//! A connection carries one request after `auth`. Frames that are not its answer are ignored.

use crate::frames::peek_type;
use parlor_model::Payload;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

/// `reqId` of the only request of a connection.
const REQUEST: u64 = 1;

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Request<'a> {
    #[serde(rename = "type")]
    kind: &'a str,
    req_id: u64,
    agent_id: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session_id: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    tool_name: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    input: Option<&'a RawValue>,
}

fn encode(request: &Request<'_>) -> String {
    serde_json::to_string(request).expect("texts and raw JSON serialise to JSON")
}

/// Encodes a request for the tools of an agent.
pub fn list(agent: &str) -> String {
    let (session_id, tool_name, input) = (None, None, None);
    encode(&Request {
        kind: "agent.tools.list",
        req_id: REQUEST,
        agent_id: agent,
        session_id,
        tool_name,
        input,
    })
}

/// Encodes the call of a tool. `None` if the input is not JSON.
pub fn execute(agent: &str, session: Option<&str>, tool: &str, input: &Payload) -> Option<String> {
    let input: &RawValue = serde_json::from_str(&input.0).ok()?;
    Some(encode(&Request {
        kind: "agent.tool.execute",
        req_id: REQUEST,
        agent_id: agent,
        session_id: session,
        tool_name: Some(tool),
        input: Some(input),
    }))
}

/// A frame that ends a request, or the sign-in before it.
#[derive(Debug, PartialEq, Eq)]
pub enum ToolAnswer {
    SignedIn,
    /// Descriptions of the tools, one JSON object each.
    Tools(Vec<Payload>),
    /// Output of a call, a JSON object, and whether the call failed.
    Output {
        output: Payload,
        is_error: bool,
    },
    /// The hub refused the sign-in or the request, for this reason.
    Refused(Box<str>),
}

/// Decodes a frame of the hub. `None` for a frame that ends nothing, such as a push.
pub fn read(text: &str) -> Option<ToolAnswer> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Answer<'a> {
        req_id: Option<u64>,
        error: Option<Box<str>>,
        #[serde(borrow)]
        tools: Option<Vec<&'a RawValue>>,
        #[serde(borrow)]
        result: Option<Execution<'a>>,
    }
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Execution<'a> {
        is_error: bool,
        #[serde(borrow)]
        output: &'a RawValue,
    }
    let kind = peek_type(text).flatten()?;
    let answer: Answer<'_> = serde_json::from_str(text).ok()?;
    let payload = |raw: &RawValue| Payload(raw.get().into());
    match &*kind {
        "auth.ok" => return Some(ToolAnswer::SignedIn),
        "auth.error" => return Some(ToolAnswer::Refused(answer.error.unwrap_or_default())),
        _ if answer.req_id != Some(REQUEST) => return None,
        _ => {}
    }
    match answer {
        Answer { error: Some(error), .. } => Some(ToolAnswer::Refused(error)),
        Answer { tools: Some(tools), .. } => {
            Some(ToolAnswer::Tools(tools.into_iter().map(payload).collect()))
        }
        Answer { result: Some(Execution { is_error, output }), .. } => {
            Some(ToolAnswer::Output { output: payload(output), is_error })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn requests_have_the_form_of_the_original() {
        assert_eq!(list("writer"), r#"{"type":"agent.tools.list","reqId":1,"agentId":"writer"}"#);
        let input = Payload(r#"{"to": 1.0}"#.into());
        let expected = r#"{"type":"agent.tool.execute","reqId":1,"agentId":"writer","sessionId":"main","toolName":"send-message","input":{"to": 1.0}}"#;
        assert_eq!(execute("writer", Some("main"), "send-message", &input).as_deref(), Some(expected));
        assert_eq!(execute("writer", None, "x", &Payload("{".into())), None);
    }

    #[track_caller]
    fn check(frame: &str, expected: Option<ToolAnswer>) {
        assert_eq!(read(frame), expected, "{frame}");
    }

    #[test]
    fn answers_of_the_request_are_decoded_and_other_frames_ignored() {
        let payload = |text: &str| Payload(text.into());
        check(r#"{"type":"auth.ok"}"#, Some(ToolAnswer::SignedIn));
        check(
            r#"{"type":"auth.error","error":"Invalid token"}"#,
            Some(ToolAnswer::Refused("Invalid token".into())),
        );
        check(
            r#"{"type":"agent.tools.list.result","agentId":"a","tools":[{"name":"x"}],"reqId":1}"#,
            Some(ToolAnswer::Tools(vec![payload(r#"{"name":"x"}"#)])),
        );
        check(
            r#"{"type":"agent.tool.result","agentId":"a","toolName":"x","result":{"isError":true,"output":{"ok":false}},"reqId":1}"#,
            Some(ToolAnswer::Output { output: payload(r#"{"ok":false}"#), is_error: true }),
        );
        check(
            r#"{"type":"agent.tool.error","error":"Tool not found: x (agent: a)","reqId":1}"#,
            Some(ToolAnswer::Refused("Tool not found: x (agent: a)".into())),
        );
        check(r#"{"type":"agent.tool.error","error":"x","reqId":2}"#, None);
        check(r#"{"type":"session.status","error":"failed"}"#, None);
        check(r#"{"type":"msg.push","message":{}}"#, None);
        check("hello", None);
    }
}
