//! Posts the complete reply of a run that was given up as interrupted, as a new message. Ignored if the reply
//! has already been posted.

use super::posting_agent::PostingAgent;
use super::reply::{self, ReplyFacts, end_run};
use super::unprompted_run;
use crate::Limits;
use crate::commands::Command;
use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::digest::digest;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::ports::{IdempotencyKey, IdempotencyKind};
use crate::read_view::WriterView;
use parlor_model::command::PostLateReply;
use parlor_model::{AgentReply, Message, Refusal, Run, RunOutcome, RunState, Sender};
use std::sync::Arc;

pub struct Facts {
    reply: ReplyFacts,
    /// The message that already has the id of the reply.
    before: Option<Arc<Message>>,
    /// The ended run, if the command names it.
    run: Option<Run>,
    /// The agent's id for the reply with its first use, if any.
    idempotency: Option<IdempotencyCheck>,
}

impl Command for PostLateReply {
    type Facts = Facts;
    type Receipt = ();

    fn validate(&self, limits: &Limits) -> Result<(), Refusal> {
        reply::validate(&self.said, limits)
    }

    /// Allowed for the hub itself, on behalf of an agent that is a member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let sender = PostingAgent::require(caller, &self.agent, &self.room, view)?;
        let run = match &self.run {
            Some(run) => view.store.run(run)?,
            None => None,
        };
        let (mut before, mut idempotency) = (None, None);
        if let Some(id) = &self.said.message {
            before = view.store.message(id)?;
            let (kind, owner) = (IdempotencyKind::Late, self.agent.as_str().into());
            let key = IdempotencyKey { kind, owner, key: id.as_str().into() };
            idempotency = Some(IdempotencyCheck::load(key, digest(&[&self.said.text]), view.store)?);
        }
        let reply = ReplyFacts::load(&self.said, None, sender, view)?;
        Ok(Facts { reply, before, run, idempotency })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Facts { reply, before, run, idempotency } = facts;
        if IdempotencyCheck::first_receipt(idempotency.as_ref(), effects)?.is_some() {
            return Ok(());
        }
        let own = |message: &Message| {
            message.sender == Sender::Agent(self.agent.clone())
                && message.destination.room() == Some(&self.room)
        };
        // A message id that is already taken belongs to another message.
        if let Some(taken) = before.as_ref().filter(|message| !own(message)) {
            return Err(Refusal::Conflict { first: taken.id.clone() });
        }
        let was_interrupted = before.as_ref().is_some_and(|message| {
            message.run_output.as_ref().is_some_and(|output| output.outcome == RunOutcome::Interrupted)
                && message.text != self.said.text
        });
        // The run had no reply yet when it was given up.
        let had_no_reply = run.is_some_and(|run| {
            let own = run.agent == self.agent && run.room() == Some(&self.room) && before.is_none();
            own && run.state == RunState::Ended(RunOutcome::Interrupted) && run.reply.is_none()
        });
        let is_expected = was_interrupted || had_no_reply;
        if !is_expected || self.said.is_empty() || reply.sender.room.is_frozen() {
            return Ok(());
        }
        let run = unprompted_run(&self.agent, &self.room, effects);
        // The interrupted reply has the id that the gateway chose.
        let said = AgentReply { message: None, ..self.said };
        end_run(&run, RunOutcome::Complete, Some((said, &reply, idempotency.as_ref())), effects)?;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{reply_in, room, run, said};
    use super::*;
    use crate::commands::test_fixtures::{decide, room_message};
    use parlor_model::{AgentId, Frozen, Room, RoomId, RunId, RunOutput, Time};

    fn facts() -> Facts {
        let run = run(RunState::Ended(RunOutcome::Interrupted));
        Facts { reply: reply_in(room()), before: None, run: Some(run), idempotency: None }
    }

    fn late() -> PostLateReply {
        let (agent, room) = (AgentId::stored("coder"), RoomId::stored("room"));
        PostLateReply { agent, room, said: said("late"), run: Some(RunId::stored("run")) }
    }

    /// The message of `coder` with the part of the reply that arrived before the run ended so.
    fn posted(text: &str, outcome: RunOutcome) -> Option<Arc<Message>> {
        let output = RunOutput { run: RunId::stored("run"), outcome, chunks: Vec::new() };
        Some(Arc::new(Message {
            sender: Sender::Agent(AgentId::stored("coder")),
            text: text.into(),
            run_output: Some(Arc::new(output)),
            ..Message::clone(&room_message(&RoomId::stored("room")))
        }))
    }

    /// Number of events: a posted reply publishes its message and its run.
    fn events(facts: Facts) -> usize {
        decide(late(), facts).unwrap().1.events.len()
    }

    #[test]
    fn only_the_missing_reply_of_an_interrupted_run_is_posted() {
        assert_eq!(events(facts()), 2, "the run had no reply");
        assert_eq!(events(Facts { run: None, ..facts() }), 0, "no run is known");
        let complete = run(RunState::Ended(RunOutcome::Complete));
        assert_eq!(events(Facts { run: Some(complete), ..facts() }), 0, "the run was not interrupted");
        let before = posted("la", RunOutcome::Interrupted);
        assert_eq!(events(Facts { before, ..facts() }), 2, "the reply was cut off");
        let before = posted("late", RunOutcome::Interrupted);
        assert_eq!(events(Facts { before, ..facts() }), 0, "the reply was complete");
        let before = posted("la", RunOutcome::Complete);
        assert_eq!(events(Facts { before, ..facts() }), 0, "the run was not interrupted");
    }

    #[test]
    fn a_late_reply_in_a_frozen_room_is_ignored() {
        let frozen = Room { frozen: Some(Frozen { by: None, at: Time(1) }), ..room() };
        assert_eq!(events(Facts { reply: reply_in(frozen), ..facts() }), 0);
    }

    #[test]
    fn an_id_of_another_senders_message_is_refused() {
        let other = room_message(&RoomId::stored("room"));
        let refused = decide(late(), Facts { before: Some(other.clone()), ..facts() }).map(drop);
        assert_eq!(refused, Err(Refusal::Conflict { first: other.id.clone() }));
    }
}
