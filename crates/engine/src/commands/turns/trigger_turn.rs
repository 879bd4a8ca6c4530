//! Starts a turn in a session without triage, at the request of a user.

use super::batch::{PendingCopy, oldest_pending, pending_of};
use super::decide_batch::{hold, ids};
use super::queue_turn::TurnPlace;
use super::record;
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{AuthContext, CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{BatchReceipt, TriggerTurn, TurnInput};
use parlor_model::{Field, Refusal, RunCause, Scope, SessionRef, TurnDecisionKind};
use std::sync::Arc;

/// Maximum number of queued and active runs of a session, beyond which no further one can be requested.
const MAX_OPEN_TURNS: usize = 20;

pub struct Facts {
    caller: Arc<AuthContext>,
    place: TurnPlace,
    /// Pending mail that the command selects.
    mail: Vec<PendingCopy>,
}

impl Command for TriggerTurn {
    type Facts = Facts;
    type Receipt = BatchReceipt;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        match &self.input {
            TurnInput::Mail(messages) => {
                field_errors.unless(messages.len() <= RunCause::MAX_BATCH, Field::Messages, "at most 100");
            }
            TurnInput::Prompt(prompt) => {
                let fits = prompt.chars().count() <= RunCause::MAX_PROMPT_CHARS;
                field_errors.unless(!prompt.trim().is_empty(), Field::Messages, "must not be empty");
                field_errors.unless(fits, Field::Messages, "longer than 100000 characters");
            }
        }
        field_errors.into_result()
    }

    /// Allowed for the owner of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        view.own_agent(caller, &self.agent, Scope::Agents)?;
        let caller = caller.signed_in(Scope::Agents)?;
        let session = session_ref(self);
        let place = TurnPlace::load(&session, view)?;
        let mail = match &self.input {
            TurnInput::Mail(messages) if messages.is_empty() => {
                oldest_pending(&session, view.now, RunCause::MAX_BATCH, view.store)?
            }
            TurnInput::Mail(messages) => pending_of(&session, messages, view.now, view.store)?,
            TurnInput::Prompt(_) => Vec::new(),
        };
        Ok(Facts { caller, place, mail })
    }

    /// The run is queued also while another run of the session is open, and also beyond the daily turns: a user decided.
    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<BatchReceipt, Refusal> {
        let session = session_ref(&self);
        let Facts { caller, place, mail } = facts;
        if place.open_runs >= MAX_OPEN_TURNS {
            return Err(Refusal::invalid(Field::Session, "has 20 queued turns already"));
        }
        let by = caller.user.id.clone();
        let attempt = mail.iter().map(|copy| copy.attempts).max().unwrap_or_default() + 1;
        let cause = match self.input {
            TurnInput::Mail(_) if mail.is_empty() => {
                return Err(Refusal::invalid(Field::Messages, "none of them is pending"));
            }
            TurnInput::Mail(_) => RunCause::Batch { messages: ids(&mail), attempt },
            TurnInput::Prompt(prompt) => RunCause::Explicit { prompt, by: by.clone() },
        };
        let run = place.queue(&session, cause, None, None, effects)?;
        let reason = format!("requested by {}", caller.user.username);
        let kind = TurnDecisionKind::Triggered;
        record(&session, kind, Some(&reason), Some((&run.id, 0)), ids(&mail), effects);
        if !mail.is_empty() {
            hold(&session, &mail, &run.id, attempt, effects);
        }
        Ok(BatchReceipt { run: Some(run.id.clone()), messages: mail.len(), is_waiting: false })
    }
}

fn session_ref(command: &TriggerTurn) -> SessionRef {
    SessionRef { agent: command.agent.clone(), session: command.session.clone() }
}
