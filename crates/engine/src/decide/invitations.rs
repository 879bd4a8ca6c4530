//! Decides commands on invitations: links with which new users create their own accounts.

use super::{Change, Effects, EffectsBuilder, accounts};
use parlor_model::command::{NewInvitation, NewUser};
use parlor_model::{Command, EntityKind, Invitation, InvitationId, Receipt, Refusal};
use std::sync::Arc;
use std::time::Duration;

const MAX_LIFETIME: Duration = Duration::from_secs(366 * 24 * 60 * 60);

pub fn decide(command: &Command, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateInvitation(new) => create(new, effects_builder),
        Command::RevokeInvitation { invitation } => {
            effects_builder.change(Change::RemoveInvitation(invitation.clone()));
            effects_builder.done(Receipt::Done)
        }
        Command::Register { account, .. } => {
            let invitation =
                effects_builder.facts.invitation.as_ref().ok_or(Refusal::NotFound(EntityKind::Invitation))?;
            let account = NewUser { role: invitation.role, ..account.clone() };
            let user = accounts::create_user(&account, &mut effects_builder)?;
            // The only place where a use is spent: of two concurrent registrations with one use left, the
            // second is refused.
            effects_builder.change(Change::UseInvitation(invitation.id.clone()));
            effects_builder.done(Receipt::User(user))
        }
        _ => unreachable!("the dispatcher sends only invitation commands here"),
    }
}

fn create(new: &NewInvitation, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let now = effects_builder.facts.now;
    let in_range = now < new.expires_at && new.expires_at <= now.plus(MAX_LIFETIME);
    if !in_range {
        return Err(Refusal::invalid("expiresAt", "must be within a year from now"));
    }
    let invitation = Arc::new(Invitation {
        id: InvitationId::stored(effects_builder.decide_context.ids.next()),
        role: new.role,
        note: new.note.clone(),
        uses: new.uses,
        uses_left: new.uses,
        created_by: effects_builder.facts.standing.as_ref().map(|standing| standing.user.id.clone()),
        created_at: now,
        expires_at: new.expires_at,
    });
    effects_builder.change(Change::PutInvitation(invitation.clone(), new.secret));
    effects_builder.done(Receipt::Invitation(invitation))
}
