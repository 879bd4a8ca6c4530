//! Rows that commands and queries with a type of their own read from the store, besides those of the caller.

use crate::callers::{CallerKind, lobby, other_user, room, user};
use crate::fixtures::message;
use parlor_engine::decide::Change;
use parlor_model::{
    ApiKey, Destination, HubSettings, Invitation, InvitationId, KeyId, Message, MessageId, Pairing, Path,
    Pin, Room, RoomRole, Scope, SecretHash, Sender, Seq, SiteRole, Time, UserId,
};
use std::sync::Arc;

pub type Stored = fn(CallerKind) -> Vec<Change>;

/// The room and the caller's membership only.
pub const READY: Stored = |_| Vec::new();
pub const NO_ROOM: Stored = |_| vec![Change::RemoveRoom(lobby())];

pub const ADMINS_APPROVE: Stored = |_| {
    let room = Room { approve_role: RoomRole::Admin, ..room() };
    vec![Change::PutRoom(Arc::new(room))]
};

pub const ANOTHERS_MESSAGE: Stored = |_| vec![Change::PutMessage(message(Sender::User(other_user())))];
pub const MESSAGE_CLEARED_AWAY: Stored = |who| {
    let mut changes = ANOTHERS_MESSAGE(who);
    changes.extend(who.own_member().map(|mut own| {
        own.room_preferences.cleared_through = message(Sender::User(other_user())).seq;
        Change::PutMember(Arc::new(own))
    }));
    changes
};
pub const MESSAGE_ON_A_PATH: Stored = |_| {
    let destination = Destination::Path(Path::stored("slack/team"));
    let on_path = Message { destination, ..Message::clone(&message(Sender::Source("bridge".into()))) };
    vec![Change::PutMessage(Arc::new(on_path))]
};
pub const OWN_PIN: Stored = |who| pinned_by(who, who.user().unwrap_or_else(other_user));
pub const ANOTHERS_PIN: Stored = |who| pinned_by(who, other_user());

fn pinned_by(who: CallerKind, by: UserId) -> Vec<Change> {
    let pin = Pin { room: lobby(), message: MessageId::stored("message"), by, seq: Seq(6), at: Time(6) };
    let mut changes = ANOTHERS_MESSAGE(who);
    changes.push(Change::PutPin(pin));
    changes
}

/// The keys of the caller have neither the admin scope nor the one for this query.
pub const KEYS_READ_ONLY: Stored = |who| match (who, who.user()) {
    (CallerKind::KeyWithout | CallerKind::KeyWith, Some(owner)) => {
        let (id, scopes) = (KeyId::stored("key"), vec![Scope::Read]);
        let key = ApiKey { id, owner, name: "script".into(), scopes, created_at: Time(1) };
        vec![Change::PutKey(Arc::new(key), SecretHash([1; 32]))]
    }
    _ => Vec::new(),
};

pub const INVITATION_TOKEN: SecretHash = SecretHash([7; 32]);
pub const PAIRING_CODE: SecretHash = SecretHash([7; 32]);

/// An invitation created by the operator.
pub const INVITATION: Stored = |_| vec![put_invitation(invitation(None))];
pub const INVITATION_OF_AN_ADMIN: Stored = |who| {
    let mut changes = INVITATION_OF_FORMER_ADMIN(who);
    changes.push(Change::PutUser(Arc::new(user(&other_user(), SiteRole::Admin))));
    changes
};
pub const INVITATION_OF_FORMER_ADMIN: Stored = |_| vec![put_invitation(invitation(Some(other_user())))];
pub const INVITATION_OF_REMOVED_USER: Stored = |_| vec![put_invitation(invitation(Some(removed_user())))];
pub const SPENT_INVITATION: Stored =
    |_| vec![put_invitation(Invitation { uses_left: 0, ..invitation(None) })];
pub const EXPIRED_INVITATION: Stored =
    |_| vec![put_invitation(Invitation { expires_at: Time(1_000), ..invitation(None) })];
/// A valid invitation, while the setting forbids invitations.
pub const NO_INVITATIONS: Stored = |who| {
    let settings = HubSettings { invitations: Some(false), ..HubSettings::default() };
    let mut changes = INVITATION(who);
    changes.push(Change::PutSettings(Arc::new(settings)));
    changes
};

pub const PAIRING: Stored = |_| vec![put_pairing(other_user(), Time(5_000))];
pub const EXPIRED_PAIRING: Stored = |_| vec![put_pairing(other_user(), Time(1_000))];
pub const PAIRING_OF_REMOVED_USER: Stored = |_| vec![put_pairing(removed_user(), Time(5_000))];

fn removed_user() -> UserId {
    UserId::stored("removed_user")
}

fn put_invitation(invitation: Invitation) -> Change {
    Change::PutInvitation(Arc::new(invitation), INVITATION_TOKEN)
}

fn invitation(created_by: Option<UserId>) -> Invitation {
    Invitation {
        id: InvitationId::stored("invitation"),
        role: SiteRole::User,
        note: None,
        uses: 1,
        uses_left: 1,
        created_by,
        created_at: Time(1),
        expires_at: Time(5_000),
    }
}

fn put_pairing(user: UserId, expires_at: Time) -> Change {
    Change::PutPairing(Pairing { user, expires_at }, PAIRING_CODE)
}
