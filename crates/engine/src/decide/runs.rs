//! Creates runs of agents for the commands that have no file of their own yet.

use super::EffectsBuilder;
use crate::commands::runs::{self, Addressed};
use crate::facts::Facts;
use parlor_model::{
    AddressedBy, AgentId, ConversationId, Lineage, Message, Room, Run, RunId, RunState, UserId,
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

pub fn put(run: Run, effects_builder: &mut EffectsBuilder) -> Arc<Run> {
    runs::put(run, effects_builder)
}
