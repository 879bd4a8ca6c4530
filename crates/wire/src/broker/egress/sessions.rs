//! Answers and pushes about sessions of agents and their runs.

use super::super::frames::hub::Failure;
use super::super::frames::sessions::*;
use super::super::frames::{Answer, Push, Refused, RequestType};
use super::super::ingress::EchoedFields;
use super::{MESSAGE_BYTES, session};
use crate::agentim::gateway::run_event::RunEventBody;
use crate::frames::{encode, encode_about};
use parlor_model::{
    AgentId, AgentSessions, Chunk, ChunkKind, ConversationEntry, Event, LoggedEvent, QueuedMessage, Run,
    RunCause, RunOutcome, RunPlace, RunState, Session, SessionId, Signal, Subscription, Time,
};
use serde_json::value::RawValue;
use serde_json::{Map, Value};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Sessions of an agent in order of creation, each with the subscriptions of its mailbox.
pub type SubscribedSessions = [(Session, Vec<Subscription>)];

/// Encodes the refusal of a request about a session.
pub fn refused(
    request: RequestType,
    session: Option<&str>,
    req_id: Option<&RawValue>,
    sentence: &str,
) -> String {
    let session_id = session.map(Into::into);
    encode(&Refused::new(request, Failure { session_id, error: sentence.into(), req_id }))
}

/// Encodes the sessions of an agent. `active` contains its active runs.
pub fn sessions(
    sessions: &SubscribedSessions,
    active: &[Run],
    now: Time,
    req_id: Option<&RawValue>,
) -> String {
    let listed = sessions.iter().map(|listed| {
        let run = active.iter().find(|run| run.session() == Some(&listed.0.id));
        ListedSession {
            session: session(listed),
            is_active: run.is_some(),
            active_since: run.map(|run| since(run).millis()),
            active_ms: run.map_or(0, |run| elapsed_ms(since(run), now)),
        }
    });
    encode_about(&Answer::SessionList(Sessions { sessions: listed.collect(), req_id }), MESSAGE_BYTES)
}

pub fn started(
    request: RequestType,
    agent: &AgentId,
    session: &SessionId,
    req_id: Option<&RawValue>,
) -> String {
    let about = OfSession { agent_id: agent.as_str().into(), session_id: session.as_str().into(), req_id };
    encode(&match request {
        RequestType::SessionContinue => Answer::SessionContinue(about),
        RequestType::SessionAbort => Answer::SessionAbort(about),
        _ => Answer::SessionStart(about),
    })
}

/// Encodes the active sessions of an agent, or of all agents of the account. `runs` has not ended.
pub fn active(agent: Option<&AgentId>, runs: &[Run], now: Time, req_id: Option<&RawValue>) -> String {
    let mut agents: BTreeMap<&AgentId, Vec<&SessionId>> = BTreeMap::new();
    if let Some(agent) = agent {
        agents.insert(agent, Vec::new());
    }
    let mut sessions = Vec::new();
    for run in runs {
        let Some(session) = run.session() else { continue };
        let working = agents.entry(&run.agent).or_default();
        if run.state == RunState::Running {
            working.push(session);
        }
        sessions.push(ActiveSession {
            agent_id: run.agent.as_str().into(),
            session_id: session.as_str().into(),
            status: match run.state {
                RunState::Queued => SessionState::Queued,
                RunState::Running | RunState::Ended(_) => SessionState::Running,
            },
            started_at: since(run).millis(),
            elapsed_ms: elapsed_ms(since(run), now),
            prompt_preview: preview(run),
        });
    }
    let agents = agents.into_iter().map(|(agent, mut sessions)| {
        sessions.sort();
        sessions.dedup();
        activity(agent, sessions.into_iter())
    });
    let agent_id = agent.map(|agent| agent.as_str().into());
    let active = ActiveSessions { agent_id, sessions, agents: agents.collect(), req_id };
    encode_about(&Answer::StatusActive(active), MESSAGE_BYTES)
}

/// Encodes the conversation log of a session.
pub fn conversation(
    about: &EchoedFields,
    entries: &[ConversationEntry],
    req_id: Option<&RawValue>,
) -> String {
    let text = |field: &Option<Box<str>>| Cow::Owned(field.as_deref().unwrap_or_default().to_owned());
    let conversation = Conversation {
        agent: text(&about.agent),
        session_id: text(&about.session),
        entries: entries.iter().map(entry).collect(),
        req_id,
    };
    encode_about(&Answer::ConversationHistory(conversation), MESSAGE_BYTES)
}

/// Encodes entries of conversation logs that match a search.
pub fn matches(entries: &[ConversationEntry], req_id: Option<&RawValue>) -> String {
    let results = entries.iter().map(|found| LogMatch {
        agent_id: found.agent.as_str().into(),
        session_id: found.session.as_str().into(),
        line_number: found.number,
        entry: entry(found),
    });
    encode_about(&Answer::LogsSearch(LogMatches { results: results.collect(), req_id }), MESSAGE_BYTES)
}

/// Encodes the sessions of several agents, latest used first.
pub fn conversations(sessions: &SubscribedSessions, req_id: Option<&RawValue>) -> String {
    let conversations = sessions.iter().map(|listed| SessionOfAgent {
        agent_id: listed.0.agent.as_str().into(),
        session_id: listed.0.id.as_str().into(),
        session: session(listed),
    });
    let conversations = Conversations { conversations: conversations.collect(), req_id };
    encode_about(&Answer::LogsConversations(conversations), MESSAGE_BYTES)
}

/// Encodes the frames for an event of a run in a session. Empty if the protocol has none.
pub fn event(logged_event: &LoggedEvent) -> Vec<String> {
    match &logged_event.event {
        Event::RunChanged(run) => {
            // A run changes again when its usage is reported, during the run or after it.
            let is_report = run.ended_at.or(run.started_at).is_some_and(|since| since < logged_event.at);
            let session = run.session().filter(|_| !is_report);
            session.map(|session| changed(run, session)).unwrap_or_default()
        }
        Event::ApprovalAsked(approval) => super::questions::asked(approval).into_iter().collect(),
        _ => Vec::new(),
    }
}

fn changed(run: &Run, session: &SessionId) -> Vec<String> {
    let (agent_id, session_id) = (Cow::Borrowed(run.agent.as_str()), Cow::Borrowed(session.as_str()));
    let started_at = since(run);
    match &run.state {
        RunState::Queued => Vec::new(),
        // The start was published before a user requested the stop.
        RunState::Running if run.stop_requested => Vec::new(),
        RunState::Running => {
            let status = SessionStatus {
                agent_id: agent_id.clone(),
                session_id: session_id.clone(),
                status: SessionState::Running,
                started_at: started_at.millis(),
                ended: None,
                prompt_preview: Some(preview(run)),
            };
            let title = SessionTitle { agent_id, session_id, title: preview(run) };
            vec![encode(&Push::SessionStatus(status)), encode(&Push::SessionTitle(title))]
        }
        RunState::Ended(outcome) => {
            let ended_at = run.ended_at.unwrap_or(started_at);
            let duration_ms = elapsed_ms(started_at, ended_at);
            let error: Option<Cow<'_, str>> = match outcome {
                RunOutcome::Complete | RunOutcome::Cancelled => None,
                RunOutcome::Interrupted => Some("The agent went offline during the run".into()),
                RunOutcome::Failed(reason) | RunOutcome::Refused(reason) => Some((&**reason).into()),
            };
            let last = match (outcome, &error) {
                (RunOutcome::Complete, _) => Some(encode(&Push::SessionDone(SessionDone {
                    agent_id: agent_id.clone(),
                    session_id: session_id.clone(),
                    duration_ms,
                }))),
                (_, Some(error)) => Some(encode(&Push::SessionFailed(SessionFailed {
                    agent_id: Some(agent_id.clone()),
                    session_id: Some(session_id.clone()),
                    error: error.clone(),
                    req_id: None,
                }))),
                // As in the original broker, the status and the answer to `session.abort` report an abort.
                (_, None) => None,
            };
            let reason = match outcome {
                RunOutcome::Complete => "done",
                RunOutcome::Cancelled => "aborted_by_user",
                RunOutcome::Interrupted => "interrupted",
                RunOutcome::Failed(_) | RunOutcome::Refused(_) => "error",
            };
            let status = SessionStatus {
                agent_id,
                session_id,
                status: SessionState::Stopped,
                started_at: started_at.millis(),
                ended: Some(SessionEnd {
                    ended_at: ended_at.millis(),
                    duration_ms,
                    reason: reason.into(),
                    error,
                }),
                prompt_preview: None,
            };
            last.into_iter().chain([encode(&Push::SessionStatus(status))]).collect()
        }
    }
}

/// Encodes a signal of a run in a session. `None` if the protocol has no frame for it.
pub fn signal(signal: &Signal) -> Option<String> {
    match signal {
        Signal::Chunk { place, agent, chunk, .. } => chunked(agent, place.session()?, chunk),
        Signal::RunEvent { place, agent, event, .. } => {
            let event = SessionEvent {
                agent_id: agent.as_str().into(),
                session_id: place.session()?.as_str().into(),
                data: serde_json::to_value(RunEventBody::of(event)).ok()?,
            };
            Some(encode_about(&Push::SessionEvent(event), MESSAGE_BYTES))
        }
        Signal::SessionReply { place: RunPlace::Session { session, .. }, agent, text, .. } => {
            let result = SessionText {
                agent_id: agent.as_str().into(),
                session_id: session.as_str().into(),
                text: (&**text).into(),
            };
            Some(encode_about(&Push::SessionResult(result), MESSAGE_BYTES))
        }
        Signal::AgentSessions(AgentSessions { agent, active, .. }) => {
            Some(encode(&Push::AgentStatus(activity(agent, active.iter()))))
        }
        _ => None,
    }
}

fn chunked(agent: &AgentId, session: &SessionId, chunk: &Chunk) -> Option<String> {
    let (agent_id, session_id) = (Cow::Borrowed(agent.as_str()), Cow::Borrowed(session.as_str()));
    let content = Cow::Borrowed(&*chunk.content);
    let metadata = chunk.metadata.as_ref();
    let metadata: Map<String, Value> =
        metadata.and_then(|metadata| serde_json::from_str(&metadata.0).ok()).unwrap_or_default();
    let text = |key: &str| metadata.get(key).and_then(Value::as_str).map(|text| text.to_owned().into());
    Some(match chunk.kind {
        ChunkKind::Text => encode_about(
            &Push::SessionText(SessionText { agent_id, session_id, text: content }),
            MESSAGE_BYTES,
        ),
        ChunkKind::Thinking => encode_about(
            &Push::SessionThinking(SessionText { agent_id, session_id, text: content }),
            MESSAGE_BYTES,
        ),
        ChunkKind::ToolUse => {
            let (tool_id, name) = (text("toolId"), text("toolName"));
            let input = serde_json::from_str::<&RawValue>(&chunk.content);
            let input = input.map_or_else(|_| RawText::Text(content), RawText::Json);
            let used = SessionToolUse { agent_id, session_id, tool_id, name, input };
            encode_about(&Push::SessionToolUse(used), MESSAGE_BYTES)
        }
        ChunkKind::ToolResult => {
            let is_error = metadata.get("isError").and_then(Value::as_bool).unwrap_or_default();
            let tool_id = text("toolId");
            let result = SessionToolResult { agent_id, session_id, tool_id, content, is_error };
            encode_about(&Push::SessionToolResult(result), MESSAGE_BYTES)
        }
        ChunkKind::Error | ChunkKind::WorkspaceStatus => {
            let data = serde_json::json!({ "kind": chunk.kind.as_str(), "content": content });
            encode_about(&Push::SessionEvent(SessionEvent { agent_id, session_id, data }), MESSAGE_BYTES)
        }
    })
}

fn activity<'a>(agent: &'a AgentId, sessions: impl Iterator<Item = &'a SessionId>) -> AgentActivity<'a> {
    let active_sessions: Vec<Cow<'a, str>> = sessions.map(|session| session.as_str().into()).collect();
    AgentActivity {
        agent_id: agent.as_str().into(),
        is_working: !active_sessions.is_empty(),
        active_count: active_sessions.len(),
        active_sessions,
    }
}

fn entry(entry: &ConversationEntry) -> LogEntry<'_> {
    let details = entry.details.as_ref();
    LogEntry {
        role: entry.kind.role().into(),
        kind: entry.kind.as_str().into(),
        text: (&*entry.text).into(),
        timestamp: entry.at.millis(),
        details: details.and_then(|details| serde_json::from_str(&details.0).ok()).unwrap_or_default(),
    }
}

/// Start of a run; of a queued run, the time at which it was queued.
fn since(run: &Run) -> Time {
    run.started_at.unwrap_or(run.queued_at)
}

fn elapsed_ms(from: Time, to: Time) -> u64 {
    u64::try_from(to.millis() - from.millis()).unwrap_or_default()
}

fn preview(run: &Run) -> Cow<'_, str> {
    match &run.cause {
        RunCause::Explicit { prompt, .. } => String::from(QueuedMessage::preview_of(prompt)).into(),
        RunCause::Batch { messages, .. } if messages.len() == 1 => "1 new message".into(),
        RunCause::Batch { messages, .. } => format!("{} new messages", messages.len()).into(),
        RunCause::Message(_) | RunCause::Task(_) | RunCause::Arrival(_) | RunCause::Unprompted => "".into(),
    }
}
