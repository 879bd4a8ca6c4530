//! Revokes an invitation to a room.

use crate::audit;
use crate::changes::AccountChange;
use crate::commands::Command;
use crate::commands::rooms::audit::in_room_as;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::RevokeRoomInvitation;
use parlor_model::{EntityKind, Refusal, RoomInvitation, RoomRole, Scope};

impl Command for RevokeRoomInvitation {
    type Facts = RoomInvitation;
    type Receipt = ();

    /// Allowed for admins of the room.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<RoomInvitation, PermitError> {
        view.in_room(caller, &self.room, RoomRole::Admin, Scope::Write)?;
        let found = view.store.room_invitation(&self.invitation)?.filter(|found| found.room == self.room);
        Ok(found.ok_or(Refusal::NotFound(EntityKind::Invitation))?)
    }

    fn decide(self, invitation: RoomInvitation, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let detail = in_room_as(&invitation.room, invitation.role);
        effects.audit(Action::InvitationRevoked, Some(audit::room_invitation(&invitation)), detail);
        effects.change(AccountChange::RemoveRoomInvitation(self.invitation));
        Ok(())
    }
}
