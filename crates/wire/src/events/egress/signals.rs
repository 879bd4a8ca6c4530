//! Encodes signals for the chat-events stream: reply tokens, activities, backlogs and run events.

use super::Filter;
use crate::events::frames::UiMessage;
use parlor_model::run_event::{ChangeReport, ContextUsage, Plan, Subagent, SubagentChange, UsageReport};
use parlor_model::{
    AgentId, Chunk, ChunkKind, MessageId, QueuedMessage, RoomId, RunEvent, RunId, Signal, SignalStamp,
};
use serde_json::{Value, json};

/// Encodes a signal. `None` if this protocol has no message for it or `filter` excludes it.
pub fn signal(signal: &Signal, stamp: SignalStamp, filter: &Filter, root: Option<&str>) -> Option<String> {
    let write = |message: UiMessage<'_>| {
        let message = message.with_root(root);
        filter.passes(&message).then(|| message.write(filter.form, stamp.ordinal, stamp.at, None))
    };
    let number = stamp.ordinal.0;
    let message = match signal {
        Signal::Typing { room, user, username } => {
            let data = json!({ "user_id": user.as_str(), "username": username });
            UiMessage::new(format!("typing-{number}"), "typing").in_room(room).data(data)
        }
        Signal::Presence { user, username, online } => {
            let data = json!({ "user_id": user.as_str(), "username": username, "online": online });
            UiMessage::new(format!("presence-{number}"), "presence").data(data)
        }
        Signal::AgentStatus { agent, name, status, queue_depth, .. } => {
            let data = json!({ "name": name, "status": status.as_str(), "queue_depth": queue_depth });
            UiMessage::new(format!("presence-{number}"), "presence").by_agent(agent).data(data)
        }
        Signal::Chunk { room, agent, message, chunk, first, .. } => {
            let location = ReplyLocation { room, agent, message, number };
            location.chunk(chunk, *first)
        }
        Signal::Terminal { room, agent, data, .. } => {
            UiMessage::new(format!("terminal-{number}"), "terminal").in_room(room).by_agent(agent).text(data)
        }
        Signal::Rewound { room, message, removed, .. } => {
            let removed: Vec<&str> = removed.iter().map(MessageId::as_str).collect();
            let data = json!({ "message_id": message.as_str(), "removed": removed });
            UiMessage::new(format!("rewound-{number}"), "message").phase("rewound").in_room(room).data(data)
        }
        Signal::Activity { run, room, agent, activity, detail, subagent, began, rev, done } => {
            let data = json!({ "status": activity.as_str(), "run_id": run.as_str(), "parent_id": subagent });
            let message = UiMessage::new(format!("status-{}", began.0), "activity").rev(*rev);
            let message = message.phase(if *done { "done" } else { "doing" });
            let text = detail.as_deref().unwrap_or(match activity.as_str() {
                "model_loading" => "Loading model",
                "thinking" => "Thinking",
                "calling_tool" => "Calling tool",
                _ => "Working",
            });
            message.in_room(room).by_agent(agent).text(text).data(data)
        }
        Signal::Queue { room, agent, items, rev } => {
            let text = match items.len() {
                1 => "Queued 1 message".to_owned(),
                count => format!("Queued {count} messages"),
            };
            let items: Vec<Value> = items.iter().map(|item| queued(item, room, agent)).collect();
            let message = UiMessage::new(format!("queue-{room}|{agent}"), "queue").rev(*rev);
            return write(message.in_room(room).by_agent(agent).text(&text).data(json!({ "items": items })));
        }
        Signal::RunEvent { run, room, agent, event, rev } => {
            return run_event(run, event, number, *rev, |message, text| {
                write(UiMessage { text: text.or(message.text), ..message.in_room(room).by_agent(agent) })
            });
        }
        Signal::Refresh => {
            UiMessage::new(format!("run-sync-{number}"), "run").phase("sync").text("State updated")
        }
        Signal::Answered(_) => return None,
    };
    write(message)
}

/// Encodes a queued run of an agent's backlog.
pub fn queued(item: &QueuedMessage, room: &RoomId, agent: &AgentId) -> Value {
    json!({
        "id": item.run.as_str(),
        "agent_id": agent.as_str(),
        "session_id": room.as_str(),
        "message_id": item.message.as_ref().map(MessageId::as_str),
        "preview": item.preview,
        "timestamp": item.at.0.div_euclid(1_000_000),
        "status": "queued",
    })
}

/// Room, agent and message of a streaming reply, with the ordinal of the chunk.
struct ReplyLocation<'a> {
    room: &'a RoomId,
    agent: &'a AgentId,
    message: &'a MessageId,
    number: u64,
}

impl<'a> ReplyLocation<'a> {
    fn chunk(&self, chunk: &'a Chunk, first: bool) -> UiMessage<'a> {
        let metadata = chunk.metadata.as_ref().and_then(|metadata| serde_json::from_str(&metadata.0).ok());
        let metadata: Value = metadata.unwrap_or_default();
        let block = || match metadata["toolId"].as_str() {
            Some(tool) => format!("{}-{tool}", self.message),
            None => format!("{}-{}", self.message, self.number),
        };
        let message = match chunk.kind {
            ChunkKind::Text | ChunkKind::Thinking => {
                let mut data = json!({ "message_id": self.message.as_str() });
                if chunk.kind == ChunkKind::Thinking {
                    data["thinking"] = true.into();
                }
                // A client that already has part of the reply discards it.
                if first {
                    data["first"] = true.into();
                }
                let id = format!("token-{}-{}", self.agent, self.number);
                UiMessage::new(id, "token").text(&chunk.content).data(data)
            }
            ChunkKind::ToolResult => {
                let failed = metadata["isError"].as_bool().unwrap_or(false);
                let data = json!({
                    "block_id": block(),
                    "message_id": self.message.as_str(),
                    "status": if failed { "failed" } else { "done" },
                    "summary": &*chunk.content,
                    "is_error": failed,
                    "parent_id": null,
                });
                let id = format!("cb-update-{}-{}", block(), self.number);
                UiMessage::new(id, "content_block").phase("update").text(&chunk.content).data(data)
            }
            ChunkKind::ToolUse | ChunkKind::Error | ChunkKind::WorkspaceStatus => {
                let kind = chunk.kind.as_str();
                let mut data = json!({
                    "block_id": block(),
                    "message_id": self.message.as_str(),
                    "block_type": kind,
                    "tool": metadata["toolName"],
                    "args": &*chunk.content,
                    "parent_id": null,
                });
                if chunk.kind == ChunkKind::WorkspaceStatus {
                    data["metadata"] = metadata.clone();
                }
                UiMessage::new(format!("cb-start-{}", block()), "content_block").phase("start").data(data)
            }
        };
        message.in_room(self.room).by_agent(self.agent)
    }
}

/// Builds the message of a run event and passes it to `write`, with its text if that is not borrowed from the
/// event.
fn run_event(
    run: &RunId,
    event: &RunEvent,
    number: u64,
    rev: u64,
    write: impl Fn(UiMessage<'_>, Option<&str>) -> Option<String>,
) -> Option<String> {
    let unique_id = |name: &str| format!("{name}-{run}-{number}");
    match event {
        RunEvent::Usage(usage) => {
            let message = UiMessage::new(format!("run-context-{run}"), "run").phase("context_usage").rev(rev);
            write(message.data(context(usage, run)), None)
        }
        RunEvent::Subagent(Subagent { id, parent, change }) => {
            let (name, phase, text, data) = match change {
                SubagentChange::Spawned { task } => {
                    let data = json!({ "subagent_id": id, "task": task, "parent_id": parent });
                    ("run-subagent-spawned", "subagent_spawned", format!("Spawned subagent {id}"), data)
                }
                SubagentChange::Returned { outcome, result } => {
                    let outcome = json!({ "type": "none", "status": outcome.as_str(), "result": result });
                    let data = json!({ "subagent_id": id, "outcome": outcome, "parent_id": parent });
                    ("run-subagent-result", "subagent_result", format!("Subagent {id} returned"), data)
                }
            };
            write(UiMessage::new(unique_id(name), "run").phase(phase).data(with_run(data, run)), Some(&text))
        }
        RunEvent::Changes(ChangeReport { files, left_out }) => {
            let encode = |file: &parlor_model::run_event::ChangedFile| json!({ "path": file.path, "summary": file.summary, "diff": file.diff });
            let files: Vec<Value> = files.iter().map(encode).collect();
            let data = with_run(json!({ "files": files, "truncated_count": left_out }), run);
            let message = UiMessage::new(format!("run-change-report-{run}"), "run").phase("change_report");
            write(message.rev(rev).text("Change report").data(data), None)
        }
        RunEvent::ToolProgress { tool, line, stream } => {
            let data = with_run(json!({ "tool": tool, "line": line, "stream": stream.as_str() }), run);
            write(UiMessage::new(unique_id("tool-progress"), "tool_progress").data(data), Some(line))
        }
        RunEvent::ModelFallback { preferred, actual, reason } => {
            let text = format!("Using {actual} model ({preferred} unavailable: {reason})");
            let data = json!({ "preferred_model": preferred, "actual_model": actual, "reason": reason });
            let message = UiMessage::new(unique_id("model-fallback"), "model_fallback");
            write(message.data(with_run(data, run)), Some(&text))
        }
        // Plans, tasks and question sets are published as events, activities as a separate signal.
        RunEvent::Plan(_) | RunEvent::Task { .. } | RunEvent::Questions(_) | RunEvent::Status { .. } => None,
    }
}

fn with_run(mut data: Value, run: &RunId) -> Value {
    data["run_id"] = run.as_str().into();
    data
}

/// Encodes a plan.
pub fn plan_data(plan: &Plan) -> Value {
    let step = |step: &parlor_model::run_event::PlanStep| json!({ "title": step.title, "description": step.description, "status": step.state.as_str() });
    let items: Vec<Value> = plan.steps.iter().map(step).collect();
    json!({
        "summary": plan.summary, "items": items, "status": plan.state.as_str(), "plan_text": plan.text,
    })
}

fn context(usage: &UsageReport, run: &RunId) -> Value {
    let spent = usage.spent.as_ref();
    let of = |field: fn(&ContextUsage) -> Value| usage.context.as_ref().map_or(Value::Null, field);
    let prompt = usage.context.as_ref().and_then(|context| context.prompt_tokens);
    let completion = usage.context.as_ref().and_then(|context| context.completion_tokens);
    let data = json!({
        "stage": usage.context.as_ref().map_or("post", |context| &context.stage),
        "message_count": of(|context| context.messages.into()),
        "char_count": of(|context| context.characters.into()),
        "estimated_tokens": of(|context| context.estimated_tokens.into()),
        "token_limit": of(|context| context.token_limit.into()),
        "actual_prompt_tokens": prompt.or(spent.map(|spent| spent.input_tokens)),
        "actual_completion_tokens": completion.or(spent.map(|spent| spent.output_tokens)),
        "compressed": usage.context.as_ref().is_some_and(|context| context.compressed),
        "summary_count": usage.context.as_ref().map_or(0, |context| context.summaries),
    });
    with_run(data, run)
}
