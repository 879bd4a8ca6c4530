//! Rows that commands and queries with a type of their own read from the store, besides those of the caller.

use crate::callers::{CallerKind, coder_member, lobby, member, other_user, room, user};
use crate::fixtures::message;
use parlor_engine::decide::Change;
use parlor_model::{
    Agent, AgentId, ApiKey, BlobDigest, Destination, File, KeyId, MediaType, Message, MessageId, Path, Pin,
    Room, RoomRole, Scope, SecretHash, Sender, Seq, SiteRole, Time, Upload, UploadId, UploadPurpose, UserId,
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

/// The agent `coder` of the column `AgentOwner`, outside the room.
pub const MAIL_AGENT: Stored = |_| mail_agent(CallerKind::AgentOwner);
pub const MAIL_AGENT_NO_ROOM: Stored = |who| [MAIL_AGENT(who), NO_ROOM(who)].concat();
pub const MAIL_AGENT_IN_ROOM: Stored = |who| [MAIL_AGENT(who), coder_joins()].concat();
/// The caller's own agent `coder`.
pub const MAIL_OWN_AGENT_IN_ROOM: Stored = |who| [mail_agent(who), coder_joins()].concat();
/// The caller's own agent, which is not the one that the command names.
pub const MAIL_AGENT_OF_ANOTHER_NAME: Stored =
    |who| who.user().map(|owner| put_agent("other", owner)).into_iter().collect();
/// The keys are unchanged, but their owner is no longer an admin.
pub const MAIL_KEY_OF_FORMER_ADMIN: Stored = |who| match (who, who.user()) {
    (CallerKind::KeyWithout | CallerKind::KeyWith, Some(owner)) => {
        vec![Change::PutUser(Arc::new(user(&owner, SiteRole::User)))]
    }
    _ => Vec::new(),
};
/// The keys have neither the admin scope nor the one for this command.
pub const MAIL_KEY_TO_READ: Stored = |who| match (who, who.user()) {
    (CallerKind::KeyWithout | CallerKind::KeyWith, Some(owner)) => {
        let (id, scopes) = (KeyId::stored("key"), vec![Scope::Read]);
        let key = ApiKey { id, owner, name: "script".into(), scopes, created_at: Time(1) };
        vec![Change::PutKey(Arc::new(key), SecretHash([1; 32]))]
    }
    _ => Vec::new(),
};

fn mail_agent(owner: CallerKind) -> Vec<Change> {
    owner.user().map(|owner| put_agent("coder", owner)).into_iter().collect()
}

fn put_agent(id: &str, owner: UserId) -> Change {
    Change::PutAgent(Arc::new(Agent {
        id: AgentId::stored(id),
        owner,
        name: id.into(),
        description: "".into(),
        settings: Default::default(),
        host: Default::default(),
        visibility: Default::default(),
        created_at: Time(1),
    }))
}

fn coder_joins() -> Vec<Change> {
    vec![Change::PutMember(Arc::new(member(coder_member(), RoomRole::Member)))]
}

/// An upload of the caller on a message of another user; its ownership does not matter there.
pub const UPLOAD_ON_MESSAGE: Stored = |who| {
    let purpose = UploadPurpose::Message(MessageId::stored("message"));
    [ANOTHERS_MESSAGE(who), put_upload(who.user(), purpose)].concat()
};
pub const UPLOAD_ON_MESSAGE_CLEARED_AWAY: Stored =
    |who| [UPLOAD_ON_MESSAGE(who), MESSAGE_CLEARED_AWAY(who)].concat();
pub const UPLOAD_ON_MESSAGE_NO_ROOM: Stored = |who| [UPLOAD_ON_MESSAGE(who), NO_ROOM(who)].concat();
pub const OWN_WAITING_UPLOAD: Stored = |who| put_upload(who.user(), UploadPurpose::Unattached);
pub const ANOTHERS_WAITING_UPLOAD: Stored = |_| put_upload(Some(other_user()), UploadPurpose::Unattached);
pub const AN_AVATAR: Stored = |_| put_upload(Some(other_user()), UploadPurpose::Avatar);

fn put_upload(owner: Option<UserId>, purpose: UploadPurpose) -> Vec<Change> {
    let upload = Upload {
        id: UploadId::stored("upload"),
        owner: owner.unwrap_or_else(other_user),
        file: File { name: "cat.png".into(), media: MediaType::Png, size: 3 },
        digest: BlobDigest([3; 32]),
        created_at: Time(1),
        purpose,
    };
    vec![Change::PutUpload(Arc::new(upload))]
}
