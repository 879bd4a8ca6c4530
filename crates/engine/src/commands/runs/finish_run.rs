//! Ends a queued or active run, and posts its reply.

use super::posting_agent::PostingAgent;
use super::reply::{self, ReplyFacts, end_run, end_run_with};
use crate::Limits;
use crate::commands::Command;
use crate::commands::approvals::withdrawal::{audit_withdrawn, withdraw};
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::ports::OpenApprovalsOf;
use crate::read_view::WriterView;
use parlor_model::command::FinishRun;
use parlor_model::{AgentReply, Approval, EntityKind, MessageId, Refusal, Run, RunOutcome, RunState, Sender};
use std::sync::Arc;

pub struct Facts {
    run: Run,
    /// Open approvals of the run.
    approvals: Vec<Approval>,
    /// Whether the room of the run is frozen.
    frozen: bool,
    /// `None` if there is no reply, the run has no room or the agent has left it.
    reply: Option<ReplyFacts>,
    /// Id of a message of the agent that has the id and the text of the reply: the gateway has posted it already.
    posted: Option<MessageId>,
    /// Whether a message has the id that the gateway chose for the reply, or had it before it was deleted.
    id_taken: bool,
}

impl Command for FinishRun {
    type Facts = Facts;
    type Receipt = Arc<Run>;

    fn validate(&self, limits: &Limits) -> Result<(), Refusal> {
        self.said.as_ref().map_or(Ok(()), |said| reply::validate(said, limits))
    }

    /// Only the hub itself ends runs.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        let run = view.store.run(&self.run)?.ok_or(Refusal::NotFound(EntityKind::Run))?;
        let approvals = view.store.open_approvals(OpenApprovalsOf::Run(&self.run))?;
        let room = match run.room() {
            Some(room) => view.room(room)?,
            None => None,
        };
        let frozen = room.as_ref().is_some_and(|room| room.is_frozen());
        let reply = match (&self.said, room) {
            (Some(said), Some(room)) => match PostingAgent::load(&run.agent, room, view)? {
                Some(sender) => Some(ReplyFacts::load(said, Some(&run.lineage), sender, view)?),
                None => None,
            },
            _ => None,
        };
        let id_taken = match self.said.as_ref().and_then(|said| said.message.as_ref()) {
            Some(id) => view.store.message(id)?.is_some() || view.store.was_said(id)?,
            None => false,
        };
        let posted = match self.said.as_ref().and_then(|said| said.message.as_ref()) {
            Some(id) => view.store.message(id)?.filter(|message| {
                message.sender == Sender::Agent(run.agent.clone())
                    && run.room().is_some_and(|room| message.destination.room() == Some(room))
                    && message.run_output.is_none()
                    && self.said.as_ref().is_some_and(|said| said.text == message.text)
            }),
            None => None,
        };
        let posted = posted.map(|message| message.id.clone());
        Ok(Facts { run, approvals, frozen, reply, posted, id_taken })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Run>, Refusal> {
        let Facts { run, approvals, frozen, reply, posted, id_taken } = facts;
        // A reply of an agent that has left the room is not posted; the run ends all the same. In a session, its
        // conversation log has the reply.
        let said = self.said.filter(|said| run.state == RunState::Running && !said.is_empty());
        let text = said.as_ref().map(|said| said.text.clone());
        let reply = said.zip(reply.as_ref()).map(|(said, facts)| (said, facts, None));
        if let Some((AgentReply { message: Some(id), .. }, ..)) = &reply
            && id_taken
            && posted.is_none()
        {
            return Err(Refusal::Conflict { first: id.clone() });
        }
        // A reply that was already streamed when the room was frozen is posted, but as cancelled, so that no
        // further agent answers it.
        let outcome = match self.outcome {
            RunOutcome::Complete if frozen => RunOutcome::Cancelled,
            outcome => outcome,
        };
        // Must come first: each published event takes the next `Seq`, and the message is created with the one
        // after these.
        let withdrawn = withdraw(&approvals, effects);
        let ended = match (posted.filter(|_| reply.is_some()), reply) {
            (Some(posted), _) => end_run_with(&run, outcome, Some(posted), text.as_ref(), effects)?,
            (None, None) => end_run_with(&run, outcome, None, text.as_ref(), effects)?,
            (None, reply) => end_run(&run, outcome, reply, effects)?,
        };
        audit_withdrawn(&withdrawn, effects);
        Ok(ended)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{reply_in, room, run, said};
    use super::*;
    use crate::changes::{AuditChange, Change};
    use crate::commands::test_fixtures::decide;
    use parlor_model::audit::Action;
    use parlor_model::{
        AgentId, ApprovalId, ApprovalSubject, Decision, Event, GatewayId, InputDigest, Payload, RoomId,
        RunId, RunPlace, Time,
    };

    fn facts() -> Facts {
        let (run, reply) = (run(RunState::Running), Some(reply_in(room())));
        Facts { run, approvals: Vec::new(), frozen: false, reply, posted: None, id_taken: false }
    }

    fn finish(said: AgentReply) -> FinishRun {
        FinishRun { run: RunId::stored("run"), outcome: RunOutcome::Complete, said: Some(said) }
    }

    fn open_approval() -> Approval {
        Approval {
            id: ApprovalId::stored("approval"),
            run: RunId::stored("run"),
            place: RunPlace::Room(RoomId::stored("room")),
            agent: AgentId::stored("coder"),
            agent_name: "Coder".into(),
            gateway: GatewayId::stored("g"),
            request: "1".into(),
            tool: "Bash".into(),
            subject: ApprovalSubject::Tool(Payload("{}".into())),
            digest: InputDigest([1; 32]),
            asked_at: Time(5),
            expires_at: Time(6),
            decision: None,
            decided_at: None,
        }
    }

    #[test]
    fn open_approvals_are_withdrawn_with_their_run() {
        let facts = Facts { approvals: vec![open_approval()], ..facts() };
        let (ended, effects) = decide(finish(said("done")), facts).unwrap();
        let events: Vec<_> = effects.events.iter().map(|logged_event| &logged_event.event).collect();
        let [
            Event::ApprovalDecided(withdrawn),
            Event::MessagePosted { message, .. },
            Event::RunChanged(over),
        ] = events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(message.seq, effects.events[1].seq, "the message has the seq of its own event");
        assert_eq!(withdrawn.decision, Some(Decision::Withdrawn));
        assert!(over.has_ended());
        assert_eq!((&ended, &ended.reply), (over, &Some(message.id.clone())));
        let Some(Change::Audit(AuditChange::AppendAudit(entry))) = effects.changes.last() else {
            panic!("{effects:?}")
        };
        assert_eq!(entry.action, Action::ApprovalWithdrawn);
    }

    #[test]
    fn a_reply_of_an_agent_that_has_left_or_with_nothing_to_say_is_dropped() {
        for (reply, text) in [(None, "done"), (Some(reply_in(room())), " ")] {
            let (ended, effects) = decide(finish(said(text)), Facts { reply, ..facts() }).unwrap();
            assert_eq!((ended.reply.as_ref(), effects.events.len()), (None, 1));
        }
    }

    #[test]
    fn a_reply_in_a_frozen_room_is_posted_as_cancelled() {
        let (ended, effects) = decide(finish(said("done")), Facts { frozen: true, ..facts() }).unwrap();
        assert_eq!(ended.state, RunState::Ended(RunOutcome::Cancelled));
        assert!(ended.reply.is_some() && effects.events.len() == 2);
    }

    #[test]
    fn a_reply_that_the_agent_has_posted_is_not_posted_again() {
        let id = MessageId::stored("mine");
        let facts = Facts { posted: Some(id.clone()), id_taken: true, ..facts() };
        let (ended, effects) =
            decide(finish(AgentReply { message: Some(id.clone()), ..said("done") }), facts).unwrap();
        assert_eq!((ended.reply.as_ref(), effects.events.len()), (Some(&id), 1));
    }

    #[test]
    fn an_id_that_another_message_has_is_refused_only_if_the_reply_is_posted() {
        let id = MessageId::stored("taken");
        let finish = || finish(AgentReply { message: Some(id.clone()), ..said("done") });
        let conflict = decide(finish(), Facts { id_taken: true, ..facts() }).map(drop);
        assert_eq!(conflict, Err(Refusal::Conflict { first: id.clone() }));
        assert!(decide(finish(), Facts { id_taken: true, reply: None, ..facts() }).is_ok());
    }
}
