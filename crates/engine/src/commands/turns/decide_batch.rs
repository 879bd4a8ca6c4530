//! Applies the decision about a batch of pending mail: a run that holds it, an acknowledgement, or nothing yet.

use super::batch::{Batch, PendingCopy, held_until, pending_of, sort_mail};
use super::queue_turn::TurnPlace;
use super::record;
use crate::Limits;
use crate::changes::MailChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{BatchReceipt, BatchVerdict, DecideBatch};
use parlor_model::{Field, Mailbox, MessageId, Refusal, RunCause, RunId, SessionRef, TurnDecisionKind};

pub struct Facts {
    place: TurnPlace,
    batch: Batch,
}

impl Command for DecideBatch {
    type Facts = Facts;
    type Receipt = BatchReceipt;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.unless(self.messages.len() <= RunCause::MAX_BATCH, Field::Messages, "at most 100");
        field_errors.into_result()
    }

    /// Only the hub itself decides about batches.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        let session = session_ref(self);
        let place = TurnPlace::load(&session, view)?;
        let copies = pending_of(&session, &self.messages, view.now, view.store)?;
        let batch = sort_mail(&place.agent, copies, view.now, view.limits, view.store)?;
        Ok(Facts { place, batch })
    }

    /// A run is queued only while the session has no other one. Then, and while the daily turns are used up, the mail stays
    /// pending.
    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<BatchReceipt, Refusal> {
        let session = session_ref(&self);
        let Facts { place, batch } = facts;
        let Batch { fresh, chains, answered, dead } = batch;
        let mut receipt = BatchReceipt { run: None, messages: 0, is_waiting: false };
        if !answered.is_empty() {
            acknowledge(&answered, effects);
            let reason = "another run answers the message, or the agent only observes it";
            record(&session, TurnDecisionKind::Answered, Some(reason), None, ids(&answered), effects);
        }
        for (copy, reason) in dead {
            let (messages, mailbox) = (vec![copy.message.id.clone()], copy.mailbox);
            let message = copy.message;
            effects.change(MailChange::DeadLetterDelivery { mailbox, message, reason: reason.into() });
            record(&session, TurnDecisionKind::DeadLettered, Some(reason), None, messages, effects);
        }
        if fresh.is_empty() {
            return Ok(receipt);
        }
        match self.verdict {
            BatchVerdict::Hold { reason } => {
                receipt.is_waiting = true;
                record(&session, TurnDecisionKind::Held, Some(&reason), None, ids(&fresh), effects);
            }
            BatchVerdict::Decline { reason } => {
                acknowledge(&fresh, effects);
                record(&session, TurnDecisionKind::Debounced, None, None, ids(&fresh), effects);
                record(&session, TurnDecisionKind::TriagedNo, Some(&reason), None, ids(&fresh), effects);
            }
            // The next check finds the other run.
            BatchVerdict::Start { .. } if place.open_runs > 0 => {}
            BatchVerdict::Start { .. } if place.is_spent => {
                receipt.is_waiting = true;
                let reason = "the turns of this day are used up";
                record(&session, TurnDecisionKind::Held, Some(reason), None, ids(&fresh), effects);
            }
            BatchVerdict::Start { reason } => {
                // A retry needs no further decision.
                if fresh[0].attempts == 0 {
                    record(&session, TurnDecisionKind::Debounced, None, None, ids(&fresh), effects);
                    record(&session, TurnDecisionKind::TriagedYes, Some(&reason), None, ids(&fresh), effects);
                }
                let deepest =
                    chains.iter().max_by_key(|chain| chain.lineage.as_ref().map(|lineage| lineage.depth));
                let (lineage, asked_by) = match deepest {
                    Some(chain) => (chain.lineage.clone(), Some(chain.sender.clone())),
                    None => (None, None),
                };
                let attempt = fresh[0].attempts + 1;
                let cause = RunCause::Batch { messages: ids(&fresh), attempt };
                let run = place.queue(&session, cause, lineage, asked_by, effects)?;
                hold(&session, &fresh, &run.id, attempt, effects);
                receipt.run = Some(run.id.clone());
                receipt.messages = fresh.len();
            }
        }
        Ok(receipt)
    }
}

fn session_ref(command: &DecideBatch) -> SessionRef {
    SessionRef { agent: command.agent.clone(), session: command.session.clone() }
}

pub fn ids(copies: &[PendingCopy]) -> Vec<MessageId> {
    copies.iter().map(|copy| copy.message.id.clone()).collect()
}

/// Leases mail to a run until it ends.
pub fn hold(
    session: &SessionRef,
    copies: &[PendingCopy],
    run: &RunId,
    attempt: u32,
    effects: &mut EffectsBuilder<'_>,
) {
    for (mailbox, messages) in by_mailbox(copies) {
        effects.change(MailChange::Lease { mailbox, messages, until: held_until() });
    }
    record(session, TurnDecisionKind::Run, None, Some((run, attempt)), ids(copies), effects);
}

fn acknowledge(copies: &[PendingCopy], effects: &mut EffectsBuilder<'_>) {
    for (mailbox, messages) in by_mailbox(copies) {
        effects.change(MailChange::MarkDelivered { mailbox, messages });
    }
}

fn by_mailbox(copies: &[PendingCopy]) -> Vec<(Mailbox, Vec<MessageId>)> {
    let mut mailboxes: Vec<(Mailbox, Vec<MessageId>)> = Vec::new();
    for copy in copies {
        match mailboxes.iter_mut().find(|(mailbox, _)| *mailbox == copy.mailbox) {
            Some((_, messages)) => messages.push(copy.message.id.clone()),
            None => mailboxes.push((copy.mailbox.clone(), vec![copy.message.id.clone()])),
        }
    }
    mailboxes
}
