//! Commands on turns: decisions about batches of mail, and heartbeats.

pub mod batch;
mod chains;
mod decide_batch;
mod queue_turn;
pub mod release_batch;
mod send_heartbeat;
pub mod settle_batch;
mod trigger_turn;

use crate::changes::TurnChange;
use crate::effects::EffectsBuilder;
use parlor_model::{MessageId, NewTurnDecision, RunId, SessionRef, TurnDecisionKind};
use std::sync::Arc;

/// Records a decision about messages of a session.
fn record(
    session: &SessionRef,
    kind: TurnDecisionKind,
    reason: Option<&str>,
    run: Option<(&RunId, u32)>,
    messages: Vec<MessageId>,
    effects: &mut EffectsBuilder<'_>,
) {
    let decision = NewTurnDecision {
        at: effects.now,
        agent: session.agent.clone(),
        session: session.session.clone(),
        kind,
        reason: reason.filter(|reason| !reason.is_empty()).map(Into::into),
        run: run.map(|(run, _)| run.clone()),
        attempt: run.map_or(0, |(_, attempt)| attempt),
        messages,
    };
    effects.change(TurnChange::AppendDecision(Arc::new(decision)));
}
