//! Settles the mail of a batch in the transaction that ends its run.
//!
//! Owns: mail is acknowledged only by a run that completed or that a user stopped; all other ends count as an attempt,
//! and after the last one the mail becomes a dead letter with the reason.

use super::record;
use crate::changes::{MailChange, Settlement};
use crate::commands::mail::MAX_DELIVERY_ATTEMPTS;
use crate::effects::EffectsBuilder;
use parlor_model::{MessageId, Run, RunCause, RunOutcome, RunState, SessionRef, TurnDecisionKind};

/// Settles the mail that an ended run holds. Runs for other causes hold none.
pub fn settle_batch(run: &Run, effects: &mut EffectsBuilder<'_>) {
    let RunState::Ended(outcome) = &run.state else { return };
    let (RunCause::Batch { messages, attempt }, Some(session)) = (&run.cause, run.session()) else { return };
    let session = SessionRef { agent: run.agent.clone(), session: session.clone() };
    match outcome {
        RunOutcome::Complete => {
            acknowledge(TurnDecisionKind::Completed, None, &session, run, messages, *attempt, effects);
        }
        RunOutcome::Cancelled => {
            let reason = "a user stopped the run";
            acknowledge(
                TurnDecisionKind::Cancelled,
                Some(reason),
                &session,
                run,
                messages,
                *attempt,
                effects,
            );
        }
        RunOutcome::Failed(reason) | RunOutcome::Refused(reason) => {
            retry(&session, Some(run), messages, *attempt, reason, effects);
        }
        RunOutcome::Interrupted => {
            retry(&session, Some(run), messages, *attempt, "the connection to the agent was lost", effects);
        }
    }
}

fn acknowledge(
    kind: TurnDecisionKind,
    reason: Option<&str>,
    session: &SessionRef,
    run: &Run,
    messages: &[MessageId],
    attempt: u32,
    effects: &mut EffectsBuilder<'_>,
) {
    settle(session, messages, Settlement::Delivered, effects);
    record(session, kind, reason, Some((&run.id, attempt)), messages.to_vec(), effects);
}

/// Makes held mail pending again after a delay, or a dead letter after the last attempt. `run` is `None` if the run no
/// longer exists.
pub fn retry(
    session: &SessionRef,
    run: Option<&Run>,
    messages: &[MessageId],
    attempt: u32,
    reason: &str,
    effects: &mut EffectsBuilder<'_>,
) {
    let delay = effects.limits.turn_retry_delays.get(attempt.saturating_sub(1) as usize).copied();
    let (kind, settlement) = match delay.filter(|_| attempt < MAX_DELIVERY_ATTEMPTS) {
        Some(delay) => (TurnDecisionKind::Retried, Settlement::PendingFrom(effects.now.plus(delay))),
        None => (TurnDecisionKind::DeadLettered, Settlement::Dead(reason.into())),
    };
    settle(session, messages, settlement, effects);
    let run = run.map(|run| (&run.id, attempt));
    record(session, kind, Some(reason), run, messages.to_vec(), effects);
}

fn settle(
    session: &SessionRef,
    messages: &[MessageId],
    settlement: Settlement,
    effects: &mut EffectsBuilder<'_>,
) {
    let (session, messages) = (session.clone(), messages.to_vec());
    effects.change(MailChange::SettleHeld { session, messages, settlement });
}
