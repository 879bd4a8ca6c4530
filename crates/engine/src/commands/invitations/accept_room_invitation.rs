//! Makes the caller a member of the room of an invitation.

use crate::changes::AccountChange;
use crate::commands::Command;
use crate::commands::rooms::members::{NewMember, add_member};
use crate::commands::rooms::names::OwnNames;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InvitedToRoom, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::{AcceptRoomInvitation, JoinedRoom};
use parlor_model::{MemberId, Refusal, Scope};

pub struct Facts {
    invited: InvitedToRoom,
    new: NewMember,
}

impl Command for AcceptRoomInvitation {
    type Facts = Facts;
    type Receipt = JoinedRoom;

    /// Allowed for every user with the token of an open invitation.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let invited = view.open_room_invitation(caller, &self.token, Scope::Write)?;
        let user = &invited.caller.user;
        let (member, names) = (MemberId::User(user.id.clone()), OwnNames::from(&**user));
        let new = NewMember::load(&invited.room, member, names, view)?;
        Ok(Facts { invited, new })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<JoinedRoom, Refusal> {
        let InvitedToRoom { invitation, room, .. } = facts.invited;
        let member = add_member(&room, facts.new, invitation.role, None, effects)?;
        // The only place where an invitation is spent: of two concurrent users with the same token, the second is
        // refused.
        effects.change(AccountChange::RemoveRoomInvitation(invitation.id));
        Ok(JoinedRoom { room, member })
    }
}
