//! Tools that agents use, in the words of the room: what went in, what came out, and whether they may.
//!
//! Owns: that nobody is asked about more than they can see.

use crate::run::{OutputClosed, RunIo};
use parlor_model::{Chunk, ChunkKind, Payload, Plan, PlanState, PlanStep, RunEvent, StepState};
use parlor_wire::agentim::gateway::host::ingress::PermissionOutcome;
use parlor_wire::json::{JsonLimits, check};
use serde_json::json;
use std::borrow::Cow;

/// Of what a tool was given or gave back, in bytes.
const LONGEST: usize = 48 * 1024;
/// What people are asked about goes into one frame, and they see all of it or are not asked.
const LARGEST_QUESTION: usize = 160 * 1024;
/// The hub's own bounds, less the frame around it.
const FORM: JsonLimits = JsonLimits { depth: 12, items: 1_000 };
const LONGEST_NAME: usize = 200;
const LONGEST_LINE: usize = 2_000;
const MOST_STEPS: usize = 100;

/// A tool is called: what went in, as JSON.
pub(super) fn used(id: &str, tool: &str, input: &str) -> Chunk {
    chunk(ChunkKind::ToolUse, input, json!({ "toolName": name(tool), "toolId": name(id) }))
}

/// A tool has answered: what came out.
pub(super) fn returned(id: &str, tool: &str, output: &str, failed: bool) -> Chunk {
    let metadata = json!({ "toolName": name(tool), "toolId": name(id), "isError": failed });
    chunk(ChunkKind::ToolResult, output, metadata)
}

fn chunk(kind: ChunkKind, content: &str, metadata: serde_json::Value) -> Chunk {
    Chunk {
        kind,
        content: cut(content, LONGEST).into(),
        metadata: Some(Payload(metadata.to_string().into())),
    }
}

/// Asks people whether an agent may use a tool with exactly this input, a JSON object.
pub(super) async fn may(stage: &RunIo, tool: &str, input: &str) -> Result<PermissionOutcome, OutputClosed> {
    let unseen = if input.len() > LARGEST_QUESTION {
        "This is too long to be shown to the people who would have to allow it."
    } else if !input.trim_start().starts_with('{') || check(input, FORM).is_err() {
        "This cannot be shown to the people who would have to allow it."
    } else {
        return stage.ask(name(tool), Payload(input.into())).await;
    };
    Ok(PermissionOutcome::Denied { reason: Some(unseen.into()) })
}

/// Why not, in words for the agent.
pub(super) fn reason(verdict: &PermissionOutcome) -> Cow<'_, str> {
    match verdict {
        PermissionOutcome::Allowed => "".into(),
        PermissionOutcome::Denied { reason: Some(reason) } if !reason.trim().is_empty() => (&**reason).into(),
        PermissionOutcome::Denied { .. } => "The people in the room said no.".into(),
        PermissionOutcome::Expired => "Nobody in the room answered in time, which means no.".into(),
    }
}

/// The plan as it stands, if it has steps.
pub(super) fn plan<'a>(steps: impl Iterator<Item = (&'a str, StepState)>) -> Option<RunEvent> {
    let steps: Vec<PlanStep> = steps
        .take(MOST_STEPS)
        .map(|(text, state)| {
            let title = line(text, LONGEST_NAME);
            PlanStep {
                title: if title.is_empty() { "…".into() } else { title.into() },
                description: (text.chars().count() > LONGEST_NAME).then(|| line(text, LONGEST_LINE).into()),
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

/// One line of at most so many characters, for places that take no more.
pub(super) fn line(text: &str, most: usize) -> String {
    text.split_whitespace().collect::<Vec<_>>().join(" ").chars().take(most).collect()
}

fn name(text: &str) -> String {
    let name = line(text, LONGEST_NAME);
    if name.is_empty() { "tool".into() } else { name }
}

/// At most so many bytes, and how many more there were.
pub(super) fn cut(text: &str, most: usize) -> Cow<'_, str> {
    if text.len() <= most {
        return text.into();
    }
    let kept = text.floor_char_boundary(most);
    format!("{}\n… and {} bytes more", &text[..kept], text.len() - kept).into()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::run::AgentOutput;

    #[test]
    fn what_is_long_is_cut_between_characters() {
        assert_eq!(cut("abc", 3), "abc");
        assert_eq!(cut("aéb", 2), "a\n… and 3 bytes more");
        let chunk = returned("1", "Read", &"x".repeat(1 << 20), false);
        assert!(chunk.content.len() < LONGEST + 40);
    }

    #[tokio::test]
    async fn nobody_is_asked_about_what_they_cannot_see() {
        let deep = format!("{{\"a\":{}{}}}", "[".repeat(20), "]".repeat(20));
        let long = json!({ "command": "x".repeat(LARGEST_QUESTION) }).to_string();
        for input in [&*deep, &long, "[]", "{\"a\":1,\"a\":2}", "{", ""] {
            let (stage, mut heard, _) = RunIo::new(1);
            let verdict = may(&stage, "Bash", input).await.unwrap();
            assert!(
                matches!(verdict, PermissionOutcome::Denied { reason: Some(_) }),
                "{}",
                &input[..input.len().min(40)]
            );
            drop(stage);
            assert!(heard.recv().await.is_none());
        }
    }

    #[tokio::test]
    async fn people_are_asked_about_exactly_what_is_to_be_done() {
        let (stage, mut heard, _) = RunIo::new(1);
        let asked = tokio::spawn(async move { may(&stage, "Bash\nx", r#"{"b":1.0,"a":"x"}"#).await });
        let Some(AgentOutput::Question { tool, input, answer }) = heard.recv().await else { panic!() };
        assert_eq!((&*tool, &*input.0), ("Bash x", r#"{"b":1.0,"a":"x"}"#));
        answer.send(PermissionOutcome::Allowed).unwrap();
        assert_eq!(asked.await.unwrap().unwrap(), PermissionOutcome::Allowed);
    }
}
