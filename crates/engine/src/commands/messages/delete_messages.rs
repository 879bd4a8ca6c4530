//! Deletes several messages atomically.

use super::deletion::Deletable;
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::DeleteMessages;
use parlor_model::{Field, Refusal, Scope};
use std::collections::BTreeSet;

impl Command for DeleteMessages {
    /// The messages, by id.
    type Facts = Vec<Deletable>;
    type Receipt = ();

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.unless((1..=50).contains(&self.messages.len()), Field::Messages, "must be 1 to 50");
        field_errors.into_result()
    }

    /// Allowed if the caller may delete each of the messages.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Vec<Deletable>, PermitError> {
        caller.signed_in(Scope::Write)?;
        // A message that is named twice counts once.
        let messages: BTreeSet<_> = self.messages.iter().collect();
        messages.into_iter().map(|message| Deletable::permit(caller, message, view)).collect()
    }

    fn decide(self, messages: Vec<Deletable>, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        messages.into_iter().for_each(|message| message.delete(effects));
        Ok(())
    }
}
