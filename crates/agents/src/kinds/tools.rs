//! Tool calls of agents: their chunks for the room, approval requests, and plans.
//!
//! Owns: users are only asked to approve a tool input that they can see completely. Any other input is
//! denied.

use crate::run::{OutputClosed, RunIo};
use parlor_model::{Chunk, ChunkKind, Payload, Plan, PlanState, PlanStep, RunEvent, StepState};
use parlor_wire::agentim::gateway::host::ingress::PermissionOutcome;
use parlor_wire::json::{JsonLimits, check};
use serde_json::json;
use std::borrow::Cow;

/// Maximum bytes of a tool's input or output in a chunk; the rest is cut off.
const MAX_CONTENT_BYTES: usize = 48 * 1024;
/// Maximum bytes of a tool input in an approval request, which must fit into one frame.
const MAX_APPROVAL_BYTES: usize = 160 * 1024;
/// JSON limits for a tool input in an approval request: the hub's limits, less the frame around it.
const INPUT_LIMITS: JsonLimits = JsonLimits { depth: 12, items: 1_000 };
/// Maximum characters of a tool name, a tool call id or the title of a plan step.
const MAX_NAME_CHARS: usize = 200;
/// Maximum characters of the description of a plan step.
const MAX_DESCRIPTION_CHARS: usize = 2_000;
/// Maximum number of steps in a plan.
const MAX_STEPS: usize = 100;

/// Chunk for a tool call, with the tool's input as JSON.
pub(super) fn used(id: &str, tool: &str, input: &str) -> Chunk {
    chunk(ChunkKind::ToolUse, input, json!({ "toolName": name(tool), "toolId": name(id) }))
}

/// Chunk for the result of a tool call.
pub(super) fn returned(id: &str, tool: &str, output: &str, failed: bool) -> Chunk {
    let metadata = json!({ "toolName": name(tool), "toolId": name(id), "isError": failed });
    chunk(ChunkKind::ToolResult, output, metadata)
}

fn chunk(kind: ChunkKind, content: &str, metadata: serde_json::Value) -> Chunk {
    Chunk {
        kind,
        content: cut(content, MAX_CONTENT_BYTES).into(),
        metadata: Some(Payload(metadata.to_string().into())),
    }
}

/// Requests approval for a tool call with exactly this input, a JSON object. An input that cannot be shown
/// completely is denied without asking.
pub(super) async fn request_permission(
    run_io: &RunIo,
    tool: &str,
    input: &str,
) -> Result<PermissionOutcome, OutputClosed> {
    let reason = if input.len() > MAX_APPROVAL_BYTES {
        "Denied: the input is too long to be shown to the users who would have to approve it."
    } else if !input.trim_start().starts_with('{') || check(input, INPUT_LIMITS).is_err() {
        "Denied: the input cannot be shown to the users who would have to approve it."
    } else {
        return run_io.request_permission(name(tool), Payload(input.into())).await;
    };
    Ok(PermissionOutcome::Denied { reason: Some(reason.into()) })
}

/// The reason why a tool call was denied, as a sentence for the agent.
pub(super) fn reason(outcome: &PermissionOutcome) -> Cow<'_, str> {
    match outcome {
        PermissionOutcome::Allowed => "".into(),
        PermissionOutcome::Denied { reason: Some(reason) } if !reason.trim().is_empty() => (&**reason).into(),
        PermissionOutcome::Denied { .. } => "A user in the room denied this.".into(),
        PermissionOutcome::Expired => "No user in the room answered in time, so this was denied.".into(),
    }
}

/// The current plan as a run event; `None` if it has no steps.
pub(super) fn plan<'a>(steps: impl Iterator<Item = (&'a str, StepState)>) -> Option<RunEvent> {
    let steps: Vec<PlanStep> = steps
        .take(MAX_STEPS)
        .map(|(text, state)| {
            let title = line(text, MAX_NAME_CHARS);
            PlanStep {
                title: if title.is_empty() { "…".into() } else { title.into() },
                description: (text.chars().count() > MAX_NAME_CHARS)
                    .then(|| line(text, MAX_DESCRIPTION_CHARS).into()),
                state,
            }
        })
        .collect();
    let done = steps.iter().filter(|step| step.state == StepState::Done).count();
    let state = match steps.iter().find(|step| step.state != StepState::Pending) {
        None => PlanState::Planned,
        Some(_) if done == steps.len() => PlanState::Completed,
        Some(_) => PlanState::Executing,
    };
    let summary = format!("{done} of {} steps done", steps.len()).into();
    (!steps.is_empty()).then_some(RunEvent::Plan(Plan { summary, state, steps, text: None }))
}

/// Joins a text into one line and cuts it to `max_chars` characters.
pub(super) fn line(text: &str, max_chars: usize) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(max_chars).collect()
}

fn name(text: &str) -> String {
    let name = line(text, MAX_NAME_CHARS);
    if name.is_empty() { "tool".into() } else { name }
}

/// Cuts a text to `max_bytes` bytes and appends how many bytes were cut off.
pub(super) fn cut(text: &str, max_bytes: usize) -> Cow<'_, str> {
    if text.len() <= max_bytes {
        return text.into();
    }
    let kept = text.floor_char_boundary(max_bytes);
    format!("{}\n… and {} more bytes", &text[..kept], text.len() - kept).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::AgentOutput;

    #[test]
    fn a_long_text_is_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("aéb", 2), "a\n… and 3 more bytes");
        let chunk = returned("1", "Read", &"x".repeat(1 << 20), false);
        assert!(chunk.content.len() < MAX_CONTENT_BYTES + 40);
    }

    #[tokio::test]
    async fn an_input_that_cannot_be_shown_completely_is_denied_without_asking() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(20), "]".repeat(20));
        let long = json!({ "command": "x".repeat(MAX_APPROVAL_BYTES) }).to_string();
        for input in [&*deep, &long, "[]", "{\"a\":1,\"a\":2}", "{", ""] {
            let (run_io, mut output, _) = RunIo::new(1);
            let outcome = request_permission(&run_io, "Bash", input).await.unwrap();
            assert!(
                matches!(outcome, PermissionOutcome::Denied { reason: Some(_) }),
                "{}",
                &input[..input.len().min(40)]
            );
            drop(run_io);
            assert!(output.recv().await.is_none());
        }
    }

    #[tokio::test]
    async fn an_approval_request_has_exactly_the_input_of_the_tool() {
        let (run_io, mut output, _) = RunIo::new(1);
        let request =
            tokio::spawn(async move { request_permission(&run_io, "Bash\nx", r#"{"b":1.0,"a":"x"}"#).await });
        let Some(AgentOutput::PermissionRequest { tool, input, answer }) = output.recv().await else {
            panic!()
        };
        assert_eq!((&*tool, &*input.0), ("Bash x", r#"{"b":1.0,"a":"x"}"#));
        answer.send(PermissionOutcome::Allowed).unwrap();
        assert_eq!(request.await.unwrap().unwrap(), PermissionOutcome::Allowed);
    }
}
