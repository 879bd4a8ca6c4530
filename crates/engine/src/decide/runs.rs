//! Creates runs of agents for the commands that have no file of their own yet.

use super::EffectsBuilder;
use crate::commands::runs::{self, Addressed, Candidate};
use crate::facts::Facts;
use parlor_model::{AgentId, Lineage, Message, Room, RunId};

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

/// The reason why an agent gets no run, if any.
pub fn refusal_reason(
    room: &Room,
    candidate: &Candidate,
    by_agent: Option<&AgentId>,
    effects_builder: &EffectsBuilder,
) -> Option<&'static str> {
    addressed(room, effects_builder.facts).refusal_reason(candidate, by_agent, effects_builder.limits)
}
