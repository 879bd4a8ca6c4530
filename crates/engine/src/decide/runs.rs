//! Creates runs of agents for the commands that have no file of their own yet.

use super::EffectsBuilder;
use crate::commands::runs::{self, Addressed, Candidate};
use crate::facts::Facts;
use parlor_model::{
    AddressedBy, AgentId, ConversationId, Lineage, MemberId, Message, Room, Run, RunId, RunOutcome, RunState,
    Task, UserId,
};
use std::sync::Arc;

/// Creates a run, queued or refused with a reason, for every agent that a message addresses. `during` is the
/// lineage of the run in which the message was posted.
pub fn create_runs(
    message: &Message,
    during: Option<&Lineage>,
    parent: Option<&RunId>,
    effects_builder: &mut EffectsBuilder,
) {
    let facts = effects_builder.facts;
    let Some(room) = &facts.room else { return };
    runs::create_runs(message, during, parent, addressed(room, facts), effects_builder);
}

fn addressed<'a>(room: &'a Room, facts: &'a Facts) -> Addressed<'a> {
    Addressed {
        room,
        sender_role: facts.membership.as_ref().map(|own| own.role),
        candidates: &facts.addressed,
        replies_last_minute: facts.replies_last_minute,
    }
}

/// Creates the run for a task that is assigned to an agent, queued or refused with a reason.
pub fn assign(task: &Task, effects_builder: &mut EffectsBuilder) {
    let (Some(room), Some(agent)) =
        (effects_builder.facts.room.clone(), task.assignee.as_ref().and_then(MemberId::agent))
    else {
        return;
    };
    let by_agent = task.created_by.agent().filter(|by| *by != agent).cloned();
    for candidate in effects_builder.facts.addressed.iter().filter(|candidate| candidate.agent.id == *agent) {
        let conversation = ConversationId::stored(effects_builder.decide_context.ids.next());
        let begun = match &by_agent {
            Some(by) => {
                let asker = Lineage::start(conversation.clone(), by.clone());
                asker.extend_to(agent, effects_builder.decide_context.limits.chain_depth).ok()
            }
            None => Some(Lineage::start(conversation.clone(), agent.clone())),
        };
        let refused = match begun {
            Some(_) => refusal_reason(&room, candidate, by_agent.as_ref(), effects_builder),
            None => Some("the chain of agents is too long"),
        };
        let lineage = begun.unwrap_or_else(|| Lineage::start(conversation, agent.clone()));
        let run = Run {
            addressed: AddressedBy::Directly,
            task: Some(task.id.clone()),
            asked_by: by_agent.clone(),
            state: refused
                .map_or(RunState::Queued, |reason| RunState::Ended(RunOutcome::Refused(reason.into()))),
            started_at: None,
            ended_at: refused.map(|_| effects_builder.facts.now),
            ..runs::new_run(agent, &room.id, lineage, effects_builder)
        };
        put(run, effects_builder);
    }
}

/// Queues a run in which an agent greets a new user.
pub fn greet(agent: &AgentId, room: &Room, arrival: &UserId, effects_builder: &mut EffectsBuilder) {
    let lineage =
        Lineage::start(ConversationId::stored(effects_builder.decide_context.ids.next()), agent.clone());
    let run = Run {
        addressed: AddressedBy::Directly,
        arrival: Some(arrival.clone()),
        state: RunState::Queued,
        started_at: None,
        ..runs::new_run(agent, &room.id, lineage, effects_builder)
    };
    put(run, effects_builder);
}

/// The reason why an agent gets no run, if any.
pub fn refusal_reason(
    room: &Room,
    candidate: &Candidate,
    by_agent: Option<&AgentId>,
    effects_builder: &EffectsBuilder,
) -> Option<&'static str> {
    addressed(room, effects_builder.facts).refusal_reason(candidate, by_agent, effects_builder.limits)
}

pub fn put(run: Run, effects_builder: &mut EffectsBuilder) -> Arc<Run> {
    runs::put(run, effects_builder)
}
