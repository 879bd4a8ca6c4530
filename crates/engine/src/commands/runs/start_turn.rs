//! Queues a run in a session of an agent, for a request of its owner or for messages of the session's mailbox.

use super::put;
use crate::Limits;
use crate::changes::MailChange;
use crate::commands::Command;
use crate::commands::mail::sessions::new_session;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, OwnAgent, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{StartTurn, TurnCause};
use parlor_model::{
    AddressedBy, Agent, AgentId, ConversationId, EntityKind, Field, Lineage, MemberId, Refusal, Run,
    RunCause, RunId, RunPlace, RunState, Sender, Session, Usage, UserId,
};
use std::sync::Arc;

pub struct Facts {
    agent: Arc<Agent>,
    /// User who requests the run; `None` for messages of the mailbox.
    by: Option<UserId>,
    /// The session, if the agent has it.
    session: Option<Session>,
    session_count: usize,
    /// Whether the agent is a member of the room of the session.
    is_in_room: bool,
    /// Whether the session has a queued or active run.
    is_busy: bool,
    /// Agent that sent the first of the messages.
    asked_by: Option<AgentId>,
}

impl Command for StartTurn {
    type Facts = Facts;
    type Receipt = Arc<Run>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        match &self.cause {
            TurnCause::Explicit { prompt } => {
                field_errors.unless(!prompt.trim().is_empty(), Field::Prompt, "is required");
                let fits = prompt.chars().count() <= RunCause::MAX_PROMPT_CHARS;
                field_errors.unless(fits, Field::Prompt, "is longer than 100000 characters");
            }
            TurnCause::Batch { messages, .. } => {
                let fits = (1..=RunCause::MAX_BATCH).contains(&messages.len());
                field_errors.unless(fits, Field::Messages, "must be 1 to 100 messages");
            }
        }
        field_errors.into_result()
    }

    /// A request is allowed for the owner of the agent: the run has the rights of the agent in its rooms. The hub itself starts runs for messages.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let not_found = Refusal::NotFound(EntityKind::Agent);
        let (agent, by, mut asked_by) = match &self.cause {
            TurnCause::Explicit { .. } => {
                let OwnAgent { caller, agent } =
                    view.own_agent(caller, &self.agent, parlor_model::Scope::Agents)?;
                (agent, Some(caller.user.id.clone()), None)
            }
            TurnCause::Batch { .. } => {
                caller.operator()?;
                (view.agent(&self.agent)?.ok_or(not_found)?, None, None)
            }
        };
        if let TurnCause::Batch { messages, .. } = &self.cause
            && let Some(first) = messages.first()
        {
            let first = view.store.message(first)?.ok_or(Refusal::NotFound(EntityKind::Message))?;
            asked_by = match &first.sender {
                Sender::Agent(sender) if *sender != self.agent => Some(sender.clone()),
                _ => None,
            };
        }
        let sessions = view.store.sessions(&self.agent)?;
        let session_count = sessions.len();
        let session = sessions.into_iter().find(|session| session.id == self.session);
        let is_in_room = match session.as_ref().and_then(|session| session.room.as_ref()) {
            Some(room) => view.store.member(room, &MemberId::Agent(self.agent.clone()))?.is_some(),
            None => false,
        };
        let is_busy = !view.store.open_runs_of_session(&self.agent, &self.session)?.is_empty();
        Ok(Facts { agent, by, session, session_count, is_in_room, is_busy, asked_by })
    }

    /// Refused as existing while the session has a queued or active run: a request is not queued behind it.
    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Run>, Refusal> {
        let Facts { agent, by, session, session_count, is_in_room, is_busy, asked_by } = facts;
        if !agent.is_hosted() {
            return Err(Refusal::GatewayOffline);
        }
        if is_busy {
            return Err(Refusal::AlreadyExists(EntityKind::Run));
        }
        let mut session = match session {
            Some(session) => session,
            None => {
                let new = new_session(&self.agent, &self.session, session_count, effects.now)?;
                Session { title: title(&self.cause).unwrap_or(new.title), ..new }
            }
        };
        session.last_used_at = Some(effects.now);
        let room = session.room.clone().filter(|_| is_in_room);
        effects.change(MailChange::PutSession(session));
        let cause = match (self.cause, by) {
            (TurnCause::Explicit { prompt }, Some(by)) => RunCause::Explicit { prompt, by },
            (TurnCause::Explicit { .. }, None) => return Err(Refusal::Forbidden),
            (TurnCause::Batch { messages, attempt }, _) => RunCause::Batch { messages, attempt },
        };
        let conversation = ConversationId::stored(effects.new_id());
        let run = Run {
            id: RunId::stored(effects.new_id()),
            agent: self.agent.clone(),
            place: RunPlace::Session { session: self.session, room, owner: agent.owner.clone() },
            cause,
            asked_by,
            addressed: AddressedBy::Directly,
            lineage: Lineage::start(conversation, self.agent),
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

/// Title of a new session: the first line of its first prompt.
fn title(cause: &TurnCause) -> Option<Box<str>> {
    let TurnCause::Explicit { prompt } = cause else { return None };
    let line = prompt.lines().map(str::trim).find(|line| !line.is_empty())?;
    let line: String = line.chars().filter(|c| !c.is_control()).take(Session::MAX_TITLE_CHARS).collect();
    (!line.is_empty()).then(|| line.into())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::{NOW, agent, decide};
    use parlor_model::{AgentHost, Event, GatewayId, MessageId, RoomId, SessionId};

    fn facts() -> Facts {
        let host = AgentHost { gateway: Some(GatewayId::stored("g")), ..AgentHost::default() };
        Facts {
            agent: Arc::new(Agent { host, ..agent("coder") }),
            by: Some(UserId::stored("ann")),
            session: None,
            session_count: 1,
            is_in_room: false,
            is_busy: false,
            asked_by: None,
        }
    }

    fn explicit(prompt: &str) -> StartTurn {
        let (agent, session) = (AgentId::stored("coder"), SessionId::stored("side"));
        StartTurn { agent, session, cause: TurnCause::Explicit { prompt: prompt.into() } }
    }

    fn stored_session(room: &str) -> Session {
        let session = Session::new(AgentId::stored("coder"), SessionId::stored("side"), "Side", NOW);
        Session { room: Some(RoomId::stored(room)), ..session }
    }

    #[test]
    fn a_request_creates_the_session_and_queues_a_run_without_a_room() {
        let (run, effects) = decide(explicit("\n Tea \n or coffee?"), facts()).unwrap();
        let owner = facts().agent.owner.clone();
        let place = RunPlace::Session { session: SessionId::stored("side"), room: None, owner };
        assert_eq!((&run.place, &run.state), (&place, &RunState::Queued));
        assert_eq!(effects.events[0].event, Event::RunChanged(run));
        let Some(Change::Mail(MailChange::PutSession(session))) = effects.changes.first() else {
            panic!("{:?}", effects.changes)
        };
        assert_eq!((&*session.title, session.last_used_at), ("Tea", Some(NOW)));
    }

    #[test]
    fn a_run_gets_the_room_of_its_session_while_the_agent_is_a_member() {
        for (is_in_room, room) in [(true, Some(RoomId::stored("lobby"))), (false, None)] {
            let facts = Facts { session: Some(stored_session("lobby")), is_in_room, ..facts() };
            let (run, _) = decide(explicit("hi"), facts).unwrap();
            assert_eq!(run.room(), room.as_ref());
        }
    }

    #[test]
    fn a_busy_session_and_an_agent_without_a_gateway_are_refused() {
        let busy = Facts { is_busy: true, ..facts() };
        let refused = decide(explicit("hi"), busy).map(drop);
        assert_eq!(refused, Err(Refusal::AlreadyExists(EntityKind::Run)));
        let unhosted = Facts { agent: Arc::new(agent("coder")), ..facts() };
        assert_eq!(decide(explicit("hi"), unhosted).map(drop), Err(Refusal::GatewayOffline));
    }

    #[test]
    fn prompts_and_batches_are_limited() {
        let batch = |count: usize| TurnCause::Batch {
            messages: (0..count).map(|n| MessageId::stored(format!("m{n}"))).collect(),
            attempt: 1,
        };
        let is_valid = |cause| StartTurn { cause, ..explicit("") }.validate(&Limits::default()).is_ok();
        let prompt = |text: String| TurnCause::Explicit { prompt: text.into() };
        let cases = [
            (prompt(" \n".into()), false),
            (prompt("é".repeat(100_000)), true),
            (prompt("é".repeat(100_001)), false),
            (batch(0), false),
            (batch(100), true),
            (batch(101), false),
        ];
        for (cause, valid) in cases {
            assert_eq!(is_valid(cause), valid);
        }
    }
}
