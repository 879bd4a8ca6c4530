//! Creates an invitation: a link with which new users create their own accounts.

use crate::changes::AccountChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use crate::{Limits, audit};
use parlor_model::audit::Action;
use parlor_model::command::CreateInvitation;
use parlor_model::{Field, Invitation, InvitationId, Refusal, UserId};
use std::sync::Arc;
use std::time::Duration;

const MAX_LIFETIME: Duration = Duration::from_secs(366 * 24 * 60 * 60);

impl Command for CreateInvitation {
    /// The admin who creates the invitation; `None` for the operator.
    type Facts = Option<UserId>;
    type Receipt = Arc<Invitation>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.unless((1..=1000).contains(&self.uses), Field::Uses, "must be between 1 and 1000");
        if let Some(note) = &self.note {
            field_errors.line(Field::Note, note, 200);
        }
        field_errors.into_result()
    }

    /// Allowed for site admins and the operator, while the settings allow invitations.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Option<UserId>, PermitError> {
        caller.site_admin()?;
        if !view.store.settings()?.invites() {
            return Err(Refusal::Forbidden.into());
        }
        Ok(caller.auth.as_ref().map(|auth| auth.user.id.clone()))
    }

    fn decide(
        self,
        created_by: Option<UserId>,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<Arc<Invitation>, Refusal> {
        let now = effects.now;
        let in_range = now < self.expires_at && self.expires_at <= now.plus(MAX_LIFETIME);
        if !in_range {
            return Err(Refusal::invalid(Field::ExpiresAt, "must be within a year from now"));
        }
        let invitation = Arc::new(Invitation {
            id: InvitationId::stored(effects.new_id()),
            role: self.role,
            note: self.note,
            uses: self.uses,
            uses_left: self.uses,
            created_by,
            created_at: now,
            expires_at: self.expires_at,
        });
        effects.change(AccountChange::PutInvitation(invitation.clone(), self.secret));
        let detail = format!("as {}, {} times", invitation.role.as_str(), invitation.uses);
        effects.audit(Action::InvitationCreated, Some(audit::invitation(&invitation)), Some(detail.into()));
        Ok(invitation)
    }
}
