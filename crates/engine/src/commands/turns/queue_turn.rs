//! Queues a turn of a session, in the transaction that decides it.

use crate::Fault;
use crate::changes::MailChange;
use crate::commands::mail::sessions::new_session;
use crate::commands::runs::put;
use crate::effects::EffectsBuilder;
use crate::permission::PermitError;
use crate::read_view::WriterView;
use parlor_model::{
    AddressedBy, Agent, AgentId, ConversationId, EntityKind, Lineage, MemberId, Refusal, RoomId, Run,
    RunCause, RunContext, RunId, RunPlace, RunState, Session, SessionRef, Usage,
};
use std::sync::Arc;
use std::time::Duration;

const DAY: Duration = Duration::from_secs(24 * 60 * 60);

/// A session in which a turn can be queued.
pub struct TurnPlace {
    pub agent: Arc<Agent>,
    /// `None` if the session does not exist yet.
    session: Option<Session>,
    session_count: usize,
    /// Room of the session, while the agent is a member of it.
    room: Option<RoomId>,
    /// Number of queued and active runs of the session.
    pub open_runs: usize,
    /// Whether the agent has used up its daily turns in the session.
    pub is_spent: bool,
}

impl TurnPlace {
    pub fn load(id: &SessionRef, view: &mut WriterView<'_>) -> Result<Self, PermitError> {
        let agent = view.agent(&id.agent)?.ok_or(Refusal::NotFound(EntityKind::Agent))?;
        let sessions = view.store.sessions(&id.agent)?;
        let session_count = sessions.len();
        let session = sessions.into_iter().find(|session| session.id == id.session);
        let room = match session.as_ref().and_then(|session| session.room.clone()) {
            Some(room) => is_member(&id.agent, &room, view)?.then_some(room),
            None => None,
        };
        let open_runs = view.store.open_runs_of_session(&id.agent, &id.session)?.len();
        let context = RunContext::Session(id.session.clone());
        let day = view.now.minus(DAY);
        let spent = view.store.spent(&context, &id.agent, day)?;
        let is_spent = spent.turns >= view.limits.room_turns || spent.tokens >= view.limits.room_tokens;
        Ok(Self { agent, session, session_count, room, open_runs, is_spent })
    }

    /// Queues a run and marks the session as used. `asked_by` is the agent that sent the messages.
    pub fn queue(
        self,
        id: &SessionRef,
        cause: RunCause,
        lineage: Option<Lineage>,
        asked_by: Option<AgentId>,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<Arc<Run>, Refusal> {
        if !self.agent.is_hosted() {
            return Err(Refusal::GatewayOffline);
        }
        let session = match self.session {
            Some(session) => session,
            None => new_session(&id.agent, &id.session, self.session_count, effects.now)?,
        };
        effects.change(MailChange::PutSession(Session { last_used_at: Some(effects.now), ..session }));
        let new_lineage = || Lineage::start(ConversationId::stored(effects.new_id()), id.agent.clone());
        let run = Run {
            id: RunId::stored(effects.new_id()),
            agent: id.agent.clone(),
            place: RunPlace::Session {
                session: id.session.clone(),
                room: self.room,
                owner: self.agent.owner.clone(),
            },
            cause,
            asked_by,
            addressed: AddressedBy::Directly,
            lineage: lineage.unwrap_or_else(new_lineage),
            parent: None,
            state: RunState::Queued,
            reply: None,
            usage: Usage::default(),
            stop_requested: false,
            queued_at: effects.now,
            started_at: None,
            ended_at: None,
        };
        Ok(put(run, effects))
    }
}

fn is_member(agent: &AgentId, room: &RoomId, view: &mut WriterView<'_>) -> Result<bool, Fault> {
    Ok(view.store.member(room, &MemberId::Agent(agent.clone()))?.is_some())
}
