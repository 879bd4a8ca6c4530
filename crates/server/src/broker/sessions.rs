//! Requests about sessions of agents: start, abort, state and conversation logs. Pushes of their runs.

use crate::connection::peer::Peer;
use crate::encoders::BROKER_SESSIONS;
use parlor_engine::feed::{Interest, Open, Since};
use parlor_model::command::{StartTurn, StopSession, TurnCause};
use parlor_model::query::{
    EntryPage, FoundAgent, GetAgent, ListActiveSessions, ListConversation, ListSessions,
};
use parlor_model::{AgentId, EntityKind, Refusal, Run, SessionId};
use parlor_wire::broker::codes;
use parlor_wire::broker::egress::sessions as egress;
use parlor_wire::broker::frames::RequestType;
use parlor_wire::broker::ingress::{EchoedFields, SessionRequest};
use serde_json::value::RawValue;
use std::collections::BTreeSet;
use std::sync::Arc;

/// Maximum number of entries that `conversation.history` returns, the newest of the log.
const MAX_ENTRIES: usize = 1000;
/// Maximum number of sessions that `logs.conversations` returns.
const MAX_CONVERSATIONS: usize = 1000;

/// Follows the runs in sessions of the user's agents, as every connection of the original broker does. A caller that
/// may not follow them receives none.
pub(super) async fn follow(peer: &Peer) -> Result<(), Refusal> {
    let interest = Interest::OwnSessions;
    let open = Open { interest, since: Since::Now, encoding: BROKER_SESSIONS, opened: None, live: None };
    match peer.signed_in()?.session.open(open).await {
        Err(Refusal::Forbidden) => Ok(()),
        opened => opened,
    }
}

/// Handles a request and returns its answer, or the refusal as a frame.
pub(super) async fn handle(
    peer: &Peer,
    request: SessionRequest,
    kind: RequestType,
    about: &EchoedFields,
    req_id: Option<&RawValue>,
) -> String {
    let answered = match request {
        SessionRequest::List { agent } => list(peer, agent, req_id).await,
        SessionRequest::Start { agent, session, prompt } => {
            let session = session.unwrap_or_else(new_session_id);
            return match start(peer, &agent, &session, prompt).await {
                Ok(()) => egress::started(kind, &agent, &session, req_id),
                Err(sentence) => egress::refused(kind, Some(session.as_str()), req_id, &sentence),
            };
        }
        SessionRequest::Continue { agent, session, prompt } => {
            let known = match has_session(peer, &agent, &session).await {
                Ok(true) => start(peer, &agent, &session, prompt).await,
                Ok(false) => Err(format!("Session not found: {session}")),
                Err(refusal) => Err(sentence(&refusal, &agent)),
            };
            return match known {
                Ok(()) => egress::started(kind, &agent, &session, req_id),
                Err(sentence) => egress::refused(kind, Some(session.as_str()), req_id, &sentence),
            };
        }
        SessionRequest::Abort { agent, session } => {
            return match abort(peer, agent, &session).await {
                Ok(agent) => egress::started(kind, &agent, &session, req_id),
                Err(sentence) => egress::refused(kind, None, req_id, &sentence),
            };
        }
        SessionRequest::Active { agent } => {
            let runs = active(peer, agent.clone()).await;
            runs.map(|runs| egress::active(agent.as_ref(), &runs, peer.app.hub.now(), req_id))
        }
        SessionRequest::History { agent, session } => {
            let page = EntryPage::Before(None);
            let list = ListConversation { agent, session, page, limit: MAX_ENTRIES };
            let entries = peer.read(list).await;
            entries.map(|entries| egress::conversation(about, &entries, req_id))
        }
        SessionRequest::SearchLogs(search) => {
            peer.read(search).await.map(|entries| egress::matches(&entries, req_id))
        }
        SessionRequest::Conversations { prefix } => {
            let list = ListSessions { agent_prefix: prefix, limit: MAX_CONVERSATIONS };
            peer.read(list).await.map(|sessions| egress::conversations(&sessions, req_id))
        }
    };
    answered.unwrap_or_else(|refusal| {
        egress::refused(kind, None, req_id, &codes::sentence(&refusal, about.agent.as_deref()))
    })
}

/// Returns the id for the refusal of an invalid `session.start`, as the original broker does.
pub(super) fn refused_session(about: &EchoedFields) -> Box<str> {
    about.session.clone().unwrap_or_else(|| new_session_id().as_str().into())
}

async fn list(peer: &Peer, agent: AgentId, req_id: Option<&RawValue>) -> Result<String, Refusal> {
    let sessions = match peer.read(GetAgent { id: agent.clone() }).await? {
        FoundAgent::Own { sessions, .. } => sessions,
        FoundAgent::OfAnother(_) => return Err(Refusal::NotFound(EntityKind::Agent)),
    };
    let runs = active(peer, Some(agent)).await?;
    Ok(egress::sessions(&sessions, &runs, peer.app.hub.now(), req_id))
}

async fn has_session(peer: &Peer, agent: &AgentId, session: &SessionId) -> Result<bool, Refusal> {
    match peer.read(GetAgent { id: agent.clone() }).await? {
        FoundAgent::Own { sessions, .. } => Ok(sessions.iter().any(|(known, _)| known.id == *session)),
        FoundAgent::OfAnother(_) => Err(Refusal::NotFound(EntityKind::Agent)),
    }
}

/// Queued and active runs in sessions of an agent, or of all agents of the caller.
pub(super) async fn active(peer: &Peer, agent: Option<AgentId>) -> Result<Vec<Run>, Refusal> {
    peer.read(ListActiveSessions { agent }).await
}

async fn start(peer: &Peer, agent: &AgentId, session: &SessionId, prompt: Arc<str>) -> Result<(), String> {
    let cause = TurnCause::Explicit { prompt };
    let command = StartTurn { agent: agent.clone(), session: session.clone(), cause };
    let caller = peer.signed_in().map(|identity| identity.session.caller());
    let started = match caller {
        Ok(caller) => peer.app.hub.execute(&caller, command).await,
        Err(refusal) => Err(refusal),
    };
    started.map(drop).map_err(|refusal| sentence(&refusal, agent))
}

fn sentence(refusal: &Refusal, agent: &AgentId) -> String {
    match refusal {
        Refusal::AlreadyExists(EntityKind::Run) => "Session ID already active".into(),
        Refusal::NotFound(EntityKind::Agent) => format!("Agent error: Agent not found: {agent}"),
        refusal => codes::sentence(refusal, Some(agent.as_str())),
    }
}

/// Stops the run of a session, and returns its agent.
async fn abort(peer: &Peer, agent: Option<AgentId>, session: &SessionId) -> Result<AgentId, String> {
    let own = |refusal: Refusal| codes::sentence(&refusal, agent.as_ref().map(AgentId::as_str));
    let not_active = || format!("No active session: {session}");
    let found = match &agent {
        Some(agent) => agent.clone(),
        None => {
            let runs = active(peer, None).await.map_err(own)?;
            let runs = runs.into_iter().filter(|run| run.session() == Some(session));
            let mut agents: BTreeSet<AgentId> = runs.map(|run| run.agent).collect();
            let found = agents.pop_first().ok_or_else(not_active)?;
            if !agents.is_empty() {
                return Err(format!("Several agents have an active session {session}: name the agent"));
            }
            found
        }
    };
    let caller = peer.signed_in().map_err(own)?.session.caller();
    let stop = StopSession { agent: found.clone(), session: session.clone() };
    let stopped = peer.app.hub.execute(&caller, stop).await.map_err(own)?;
    // The run may have ended since it was listed.
    if stopped.is_empty() { Err(not_active()) } else { Ok(found) }
}

/// An id for a session that the client has not named.
fn new_session_id() -> SessionId {
    let bytes = crate::auth::secrets::random_bytes::<16>();
    let text: String = bytes.iter().map(|byte| format!("{byte:02x}")).collect();
    SessionId::parse(&text).expect("hexadecimal digits are valid in an id")
}
