//! Moves the mail, the sessions and the memberships of an agent to another one, and removes the first.

use super::existing_agent::is_hosted_by_hub;
use super::removal::{Departure, remove_agents};
use crate::changes::{MailChange, RoomChange};
use crate::commands::Command;
use crate::commands::rooms::members::members_for_event;
use crate::commands::turns::settle_batch::retry;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::MoveAgent;
use parlor_model::{
    Agent, Delivery, EntityKind, Event, Mailbox, Member, MemberChange, MemberId, Refusal, Session, SessionId,
    SessionRef,
};
use std::sync::Arc;

pub struct Facts {
    from: Arc<Agent>,
    to: Arc<Agent>,
    sessions: Vec<Session>,
    /// Sessions of the other agent.
    known: Vec<Session>,
    /// Mail that runs of the first agent hold. These runs end with it.
    held: Vec<(SessionRef, Delivery)>,
    departure: Departure,
}

impl Command for MoveAgent {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for the operator. Both agents must exist, belong to one owner and be hosted by the hub itself.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        let mut hosted = |id| match view.agent(id) {
            Ok(agent) => agent
                .filter(|agent| is_hosted_by_hub(agent))
                .ok_or(PermitError::Refused(Refusal::NotFound(EntityKind::Agent))),
            Err(fault) => Err(PermitError::Failed(fault)),
        };
        let (from, to) = (hosted(&self.from)?, hosted(&self.to)?);
        if from.owner != to.owner {
            return Err(Refusal::BelongsToAnother(EntityKind::Agent).into());
        }
        if from.id == to.id {
            return Err(Refusal::AlreadyExists(EntityKind::Agent).into());
        }
        let departure = Departure::of_agents(std::slice::from_ref(&*from), view)?;
        let (sessions, known) = (view.store.sessions(&from.id)?, view.store.sessions(&to.id)?);
        let mut held = Vec::new();
        for session in sessions.iter().map(|session| session.id.clone()).chain([SessionId::main()]) {
            let session = SessionRef { agent: from.id.clone(), session };
            for mailbox in session.mailboxes() {
                let copies = view.store.held(&mailbox)?;
                held.extend(copies.into_iter().map(|copy| (session.clone(), copy)));
            }
        }
        Ok(Facts { from, to, sessions, known, held, departure })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Facts { from, to, sessions, known, held, mut departure } = facts;
        for (session, copy) in held {
            let message = [copy.message];
            retry(&session, None, &message, copy.attempts, "the agent was moved during the run", effects);
        }
        let mut mailboxes = vec![None];
        for session in sessions {
            mailboxes.push(Some(session.id.clone()));
            if !known.iter().any(|known| known.id == session.id) {
                // The agent may not be a member of the room any more.
                let moved = Session { agent: to.id.clone(), room: None, ..session };
                effects.change(MailChange::PutSession(moved));
            }
        }
        for session in mailboxes {
            let [from, to] =
                [&from, &to].map(|agent| Mailbox { agent: agent.id.clone(), session: session.clone() });
            effects.change(MailChange::MoveMail { from, to });
        }
        effects.check_mail_of(to.id.clone());
        take_over_memberships(&to, &mut departure, effects);
        remove_agents(&[Agent::clone(&from)], &departure, effects);
        Ok(())
    }
}

/// Adds the agent to the rooms of the agent that is removed.
fn take_over_memberships(to: &Agent, departure: &mut Departure, effects: &mut EffectsBuilder<'_>) {
    for membership in &mut departure.memberships {
        if membership.everyone.iter().any(|member| member.member.agent() == Some(&to.id)) {
            continue;
        }
        let new = Member {
            member: MemberId::Agent(to.id.clone()),
            name: to.name.clone(),
            handle: to.id.as_str().into(),
            ..membership.member.clone()
        };
        membership.everyone = membership.everyone.iter().cloned().chain([new.clone()]).collect();
        let (change, members) =
            (MemberChange::Added(new.member.clone()), members_for_event(&membership.everyone));
        effects.change(RoomChange::PutMember(Arc::new(new)));
        effects.publish(Event::MembersChanged { room: Arc::new(membership.room.clone()), change, members });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{AgentChange, Change};
    use crate::commands::test_fixtures::{agent, decide, mailbox};
    use parlor_model::Time;

    #[test]
    fn mail_and_sessions_move_and_the_first_agent_is_removed() {
        let (from, to) = (agent("old"), agent("team/new"));
        let session = |of: &Agent, id: &str| Session::new(of.id.clone(), SessionId::stored(id), id, Time(1));
        let facts = Facts {
            sessions: vec![session(&from, "main"), session(&from, "side")],
            known: vec![session(&to, "main")],
            held: Vec::new(),
            departure: Departure::default(),
            from: from.clone().into(),
            to: to.clone().into(),
        };
        let command = MoveAgent { from: from.id.clone(), to: to.id.clone() };
        let ((), effects) = decide(command, facts).unwrap();
        let moved = effects.changes.iter().filter_map(|change| match change {
            Change::Mail(MailChange::MoveMail { from, to }) => Some((from.clone(), to.clone())),
            _ => None,
        });
        let expected = [("old", "team/new"), ("old:main", "team/new:main"), ("old:side", "team/new:side")];
        assert_eq!(moved.collect::<Vec<_>>(), expected.map(|(from, to)| (mailbox(from), mailbox(to))));
        let created = effects.changes.iter().filter(|change| {
            matches!(change, Change::Mail(MailChange::PutSession(new)) if *new == session(&to, "side"))
        });
        assert_eq!(created.count(), 1);
        assert!(matches!(effects.changes.last(),
            Some(Change::Agent(AgentChange::RemoveAgent(id))) if *id == from.id));
    }
}
