//! Revokes an invitation.

use crate::audit;
use crate::changes::AccountChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::RevokeInvitation;
use parlor_model::{EntityKind, Invitation, Refusal};

impl Command for RevokeInvitation {
    type Facts = Invitation;
    type Receipt = ();

    /// Allowed for site admins and the operator.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Invitation, PermitError> {
        caller.site_admin()?;
        let found = view.store.invitation(&self.invitation)?;
        Ok(found.ok_or(Refusal::NotFound(EntityKind::Invitation))?)
    }

    fn decide(self, invitation: Invitation, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        effects.change(AccountChange::RemoveInvitation(self.invitation));
        effects.audit(Action::InvitationRevoked, Some(audit::invitation(&invitation)), None);
        Ok(())
    }
}
