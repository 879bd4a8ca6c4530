//! Encodes signals for the chat-events stream: reply tokens, activities, backlogs and run events.

use super::Filter;
use crate::events::frames::data::runs;
use crate::events::frames::data::*;
use crate::events::frames::{Subject, UiMessage};
use crate::events::rest::QueueItem;
use parlor_model::run_event::Activity;
use parlor_model::{AgentId, Chunk, ChunkKind, MessageId, RunPlace, Signal, SignalStamp};
use serde_json::Value;

/// Encodes a signal. `None` if this protocol has no message for it or `filter` excludes it.
pub fn signal(signal: &Signal, stamp: SignalStamp, filter: &Filter, root: Option<&str>) -> Option<String> {
    let message = message(signal, stamp.ordinal.0)?.with_root(root);
    filter.passes(&message).then(|| message.write(filter.form, stamp.ordinal, stamp.at, None))
}

fn message(signal: &Signal, number: u64) -> Option<UiMessage<'_>> {
    Some(match signal {
        Signal::Typing { room, user, username } => {
            let data = TypingData { user_id: user.as_str(), username };
            UiMessage::new(format!("typing-{number}"), Subject::Typing(data)).in_room(room)
        }
        Signal::Presence { user, username, online } => {
            let data = UserPresenceData { user_id: user.as_str(), username, online: *online };
            UiMessage::new(format!("presence-{number}"), Subject::UserPresence(data))
        }
        Signal::AgentStatus { agent, name, status, queue_depth, .. } => {
            let data = AgentPresenceData { name, status: (*status).into(), queue_depth: *queue_depth };
            UiMessage::new(format!("presence-{number}"), Subject::AgentPresence(data)).by_agent(agent)
        }
        Signal::Chunk { place, agent, message, chunk, first, .. } => {
            let location = ReplyLocation { place, agent, message, number };
            location.chunk(chunk, *first)
        }
        Signal::Terminal { room, agent, data, .. } => {
            let message = UiMessage::new(format!("terminal-{number}"), Subject::Terminal);
            message.in_room(room).by_agent(agent).text(&**data)
        }
        Signal::Rewound { room, message, removed, .. } => {
            let removed = removed.iter().map(MessageId::as_str).collect();
            let data = RewoundData { message_id: message.as_str(), removed };
            UiMessage::new(format!("rewound-{number}"), Subject::MessagesRewound(data)).in_room(room)
        }
        Signal::Activity { run, place, agent, activity, detail, subagent, began, rev, done } => {
            let data = ActivityData {
                status: (*activity).into(),
                run_id: run.as_str(),
                parent_id: subagent.as_deref(),
            };
            let subject = if *done { Subject::ActivityDone(data) } else { Subject::ActivityDoing(data) };
            let text = detail.as_deref().unwrap_or(match activity {
                Activity::ModelLoading => "Loading model",
                Activity::Thinking => "Thinking",
                Activity::CallingTool => "Calling tool",
                Activity::Working | Activity::Idle => "Working",
            });
            let message = UiMessage::new(format!("status-{}", began.0), subject).rev(*rev);
            message.at(place).by_agent(agent).text(text)
        }
        Signal::Queue { room, agent, items, rev } => {
            let text = match items.len() {
                1 => "Queued 1 message".to_owned(),
                count => format!("Queued {count} messages"),
            };
            let items = items.iter().map(|item| QueueItem::new(item, Some(room), None, agent)).collect();
            let subject = Subject::Queue(QueueData { items });
            let message = UiMessage::new(format!("queue-{room}|{agent}"), subject).rev(*rev);
            message.in_room(room).by_agent(agent).text(text)
        }
        Signal::RunEvent { run, place, agent, event, rev } => {
            runs::message(run, event, number, *rev)?.at(place).by_agent(agent)
        }
        Signal::Refresh => {
            UiMessage::new(format!("run-sync-{number}"), Subject::RunSync).text("State updated")
        }
        // The stream has events for the single chunks of a reply instead.
        Signal::Answered(_)
        | Signal::Occupant { .. }
        | Signal::Reply { .. }
        | Signal::AgentsDismissed { .. }
        | Signal::RoomsChanged { .. } => return None,
    })
}

/// Place, agent and message of a streaming reply, with the ordinal of the chunk.
struct ReplyLocation<'a> {
    place: &'a RunPlace,
    agent: &'a AgentId,
    message: &'a MessageId,
    number: u64,
}

impl<'a> ReplyLocation<'a> {
    fn chunk(&self, chunk: &'a Chunk, first: bool) -> UiMessage<'a> {
        let metadata = chunk.metadata.as_ref().and_then(|metadata| serde_json::from_str(&metadata.0).ok());
        let metadata: Value = metadata.unwrap_or_default();
        let message_id = self.message.as_str();
        let block_id = || match metadata["toolId"].as_str() {
            Some(tool) => format!("{message_id}-{tool}"),
            None => format!("{message_id}-{}", self.number),
        };
        let message = match chunk.kind {
            ChunkKind::Text | ChunkKind::Thinking => {
                let thinking = (chunk.kind == ChunkKind::Thinking).then_some(true);
                let data = TokenData { message_id, thinking, first: first.then_some(true) };
                let id = format!("token-{}-{}", self.agent, self.number);
                UiMessage::new(id, Subject::Token(data)).text(&*chunk.content)
            }
            ChunkKind::ToolResult => {
                let failed = metadata["isError"].as_bool().unwrap_or(false);
                let id = format!("cb-update-{}-{}", block_id(), self.number);
                let data = BlockUpdateData {
                    block_id: block_id(),
                    message_id,
                    status: if failed { "failed" } else { "done" },
                    summary: &chunk.content,
                    is_error: failed,
                    parent_id: None,
                };
                UiMessage::new(id, Subject::BlockUpdate(data)).text(&*chunk.content)
            }
            ChunkKind::ToolUse | ChunkKind::Error | ChunkKind::WorkspaceStatus => {
                let id = format!("cb-start-{}", block_id());
                let data = BlockStartData {
                    block_id: block_id(),
                    message_id,
                    block_type: chunk.kind.as_str(),
                    tool: metadata["toolName"].clone(),
                    args: &chunk.content,
                    parent_id: None,
                    metadata: (chunk.kind == ChunkKind::WorkspaceStatus).then_some(metadata),
                };
                UiMessage::new(id, Subject::BlockStart(data))
            }
        };
        message.at(self.place).by_agent(self.agent)
    }
}
