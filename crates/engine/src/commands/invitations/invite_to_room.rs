//! Creates an invitation to a room: a link with which one user becomes a member.

use crate::audit;
use crate::changes::AccountChange;
use crate::commands::Command;
use crate::commands::rooms::audit::in_room_as;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError, may_give};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::InviteToRoom;
use parlor_model::{Field, InvitationId, Refusal, RoomInvitation, RoomRole, Scope};
use std::sync::Arc;
use std::time::Duration;

const MAX_LIFETIME: Duration = Duration::from_secs(366 * 24 * 60 * 60);
/// Maximum number of unexpired invitations to a room.
const MAX_INVITATIONS: usize = 100;

pub struct Facts {
    admin: InRoom,
    /// Number of unexpired invitations to the room.
    count: usize,
}

impl Command for InviteToRoom {
    type Facts = Facts;
    type Receipt = Arc<RoomInvitation>;

    /// Allowed for admins of the room; only its owner may invite admins.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let admin = view.in_room(caller, &self.room, RoomRole::Admin, Scope::Write)?;
        if !may_give(admin.member.role, self.role) {
            return Err(Refusal::Forbidden.into());
        }
        let now = view.now;
        let count = view.store.room_invitations(&self.room, now)?.len();
        Ok(Facts { admin, count })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<RoomInvitation>, Refusal> {
        let now = effects.now;
        let in_range = now < self.expires_at && self.expires_at <= now.plus(MAX_LIFETIME);
        if !in_range {
            return Err(Refusal::invalid(Field::ExpiresAt, "must be within a year from now"));
        }
        if facts.count >= MAX_INVITATIONS {
            return Err(Refusal::invalid(Field::Role, "exceeds the limit of 100 invitations per room"));
        }
        let invitation = Arc::new(RoomInvitation {
            id: InvitationId::stored(effects.new_id()),
            room: self.room,
            role: self.role,
            token: self.sealed,
            created_by: facts.admin.caller.user.id.clone(),
            created_at: now,
            expires_at: self.expires_at,
        });
        effects.change(AccountChange::PutRoomInvitation(invitation.clone(), self.secret));
        let detail = in_room_as(&invitation.room, invitation.role);
        effects.audit(Action::InvitationCreated, Some(audit::room_invitation(&invitation)), detail);
        Ok(invitation)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::{NOW, auth, decide, member_of, room};
    use parlor_model::{RoomId, SealedKey, SecretHash, Time};

    #[track_caller]
    fn check(expires_at: Time, count: usize, expected: Result<(), Field>) {
        let room = Arc::new(room(&RoomId::stored("lobby")));
        let member = member_of(&room.id, "ann");
        let command = InviteToRoom {
            room: room.id.clone(),
            role: RoomRole::Member,
            expires_at,
            secret: SecretHash([1; 32]),
            sealed: SealedKey([1].into()),
        };
        let admin = InRoom { caller: auth("ann"), room, member };
        let got = decide(command, Facts { admin, count }).map(drop);
        let got = got.map_err(|refusal| match refusal {
            Refusal::Invalid(errors) => errors[0].field,
            other => panic!("{other:?}"),
        });
        assert_eq!(got, expected, "{expires_at:?} {count}");
    }

    #[test]
    fn invitations_to_a_room_are_limited_in_number_and_time() {
        let soon = NOW.plus(Duration::from_secs(1));
        check(soon, MAX_INVITATIONS - 1, Ok(()));
        check(soon, MAX_INVITATIONS, Err(Field::Role));
        check(NOW, 0, Err(Field::ExpiresAt));
        check(soon.plus(MAX_LIFETIME), 0, Err(Field::ExpiresAt));
    }
}
