//! Commands: every state change that a caller can request, and the receipts that it gets after the commit.
//!
//! A command carries no secret in clear text: passwords arrive hashed, tokens as digests, model keys sealed.

mod accounts;
mod agents;
mod annotations;
mod approvals;
mod gateways;
mod invitations;
mod keys;
mod mail;
mod maintenance;
mod messages;
mod missions;
mod plans;
mod rooms;
mod routers;
mod runs;
mod services;
mod settings;
mod sign_ins;
mod tasks;
mod uploads;

pub use accounts::*;
pub use agents::*;
pub use annotations::*;
pub use approvals::*;
pub use gateways::*;
pub use invitations::*;
pub use keys::*;
pub use mail::*;
pub use maintenance::*;
pub use messages::*;
pub use missions::*;
pub use plans::*;
pub use rooms::*;
pub use routers::*;
pub use runs::*;
pub use services::*;
pub use settings::*;
pub use sign_ins::*;
pub use tasks::*;
pub use uploads::*;

use crate::{
    AnswerPolicy, ApiKey, BlobDigest, Delivery, Edit, File, HubSettings, Invitation, InvitationId, Mailbox,
    MemberId, Message, MessageId, Notifications, Path, Pattern, Payload, Room, RoomId, RoomKind, RoomRole,
    RouterId, SecretHash, Seq, SettingChanges, SiteRole, Subscription, Time, Upload, User, UserId,
};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// The commands that have no type of their own yet.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum Command {
    // First-run setup: creates the first admin.
    OfferSetup {
        token: SecretHash,
        expires_at: Time,
    },
    SetUp {
        token: SecretHash,
        account: NewUser,
    },

    // Accounts.
    CreateUser(NewUser),
    ChangeUser {
        user: UserId,
        changes: UserChanges,
    },
    RemoveUser {
        user: UserId,
    },
    ChangeProfile(ProfileChanges),
    ChangePassword {
        verified_password_hash: Box<str>,
        password_hash: Box<str>,
    },

    // Invitations.
    CreateInvitation(NewInvitation),
    RevokeInvitation {
        invitation: InvitationId,
    },
    /// Creates an account with an invitation. The invitation, not `account`, sets its role.
    Register {
        token: SecretHash,
        account: NewUser,
    },

    /// Creates a pairing code for the caller. It replaces the caller's earlier code.
    OfferPairing {
        code: SecretHash,
        expires_at: Time,
    },
    /// Exchanges a pairing code for an API key with the scope `hosting` only.
    Pair {
        code: SecretHash,
        name: Box<str>,
        secret: SecretHash,
    },

    ChangeSettings(SettingChanges),

    // Rooms.
    CreateRoom {
        changes: RoomChanges,
        members: Vec<MemberId>,
    },
    ChangeRoom {
        room: RoomId,
        changes: RoomChanges,
    },
    /// Sets the project root of a room; `None` clears it.
    SetProjectRoot {
        room: RoomId,
        root: Option<Box<str>>,
        /// Whether the folder exists. The server checks this, since a decision does no I/O.
        there: bool,
    },
    DeleteRoom {
        room: RoomId,
    },
    /// Freezes a room: agents post nothing and run nothing there until the room is thawed.
    Freeze {
        room: RoomId,
    },
    Thaw {
        room: RoomId,
    },
    AddMember {
        room: RoomId,
        member: MemberId,
        role: RoomRole,
        description: Option<Box<str>>,
    },
    /// Changes the membership fields that are `Some`.
    ChangeMember {
        room: RoomId,
        member: MemberId,
        role: Option<RoomRole>,
        /// `Clear` removes the description.
        description: Edit<Box<str>>,
    },
    RemoveMember {
        room: RoomId,
        member: MemberId,
    },
    /// Changes the caller's own preferences for a room. Other members are not affected.
    ChangeRoomPreferences {
        room: RoomId,
        how: RoomPreferenceChange,
    },

    // Files. The content is stored before the command is submitted.
    Upload(NewUpload),
    /// Takes up to `limit` digests of unreferenced file contents. Each digest is returned once; the caller
    /// then deletes the content.
    TakeUnreferencedBlobs {
        limit: usize,
    },
    /// Records in the audit log that a backup was made, complete up to and including `through`.
    NoteBackup {
        through: Seq,
    },
    /// Appends an event without content. Later signals get higher ordinals than all earlier ones.
    AppendNoop,

    // Mailboxes.
    Subscribe {
        mailbox: Mailbox,
        pattern: Pattern,
    },
    Unsubscribe {
        mailbox: Mailbox,
        pattern: Pattern,
    },
    Route(Route),
    Relay(Relay),
    /// Takes pending mail. With a lease, mail that is not acknowledged before the lease expires is pending
    /// again.
    Receive {
        mailbox: Mailbox,
        limit: usize,
        lease: Option<Duration>,
    },
    Acknowledge {
        mailbox: Mailbox,
        messages: Vec<MessageId>,
    },
    ClearDeadLetters,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewUser {
    pub username: Box<str>,
    pub display_name: Option<Box<str>>,
    pub role: SiteRole,
    pub password_hash: Box<str>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct UserChanges {
    pub display_name: Option<Box<str>>,
    pub role: Option<SiteRole>,
    pub password_hash: Option<Box<str>>,
    /// `Clear` removes the override, so that the hub-wide limit applies.
    pub max_connections: Edit<u32>,
    /// See [`User::source_patterns`].
    pub hears: Option<Vec<Pattern>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewInvitation {
    pub role: SiteRole,
    pub note: Option<Box<str>>,
    pub uses: u32,
    pub expires_at: Time,
    pub secret: SecretHash,
}

/// Changes that users make to their own profile.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct ProfileChanges {
    pub display_name: Option<Box<str>>,
    /// `Clear` removes the avatar.
    pub avatar_url: Edit<Box<str>>,
}

#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct RoomChanges {
    pub name: Option<Box<str>>,
    pub kind: Option<RoomKind>,
    pub policy: Option<AnswerPolicy>,
    /// `Clear` removes the prompt.
    pub system_prompt: Edit<Box<str>>,
    pub agent_command_role: Option<RoomRole>,
    pub approve_role: Option<RoomRole>,
    /// `Clear` removes the router.
    pub router: Edit<RouterId>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub enum RoomPreferenceChange {
    /// Toggles whether the room is pinned to the top of the caller's room list.
    Pin,
    /// Toggles whether the room is archived for the caller.
    Archive,
    /// Hides all current messages of the room from the caller only.
    Clear,
    Notify(Notifications),
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NewUpload {
    pub file: File,
    pub digest: BlobDigest,
    /// Whether the file is the caller's avatar and not a message attachment.
    pub avatar: bool,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Route {
    /// Sender: the id of one of the caller's agents, or the name of an external source.
    pub from: Box<str>,
    pub path: Path,
    pub command: Box<str>,
    pub payload: Payload,
    /// Readable text of the payload, which a room shows; `None` if the payload has none.
    pub text: Option<Arc<str>>,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
}

/// Posts a message in a room on behalf of an author outside the hub, such as the writer of a line in chat.md.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Relay {
    pub room: RoomId,
    /// Name of the author. If it names an agent of the caller that is a member of the room, the message is
    /// posted as that agent; otherwise by the caller's account, with the name as an unverified label.
    pub author: Box<str>,
    /// Name of the member that the message addresses; `None` for the whole room.
    pub recipient: Option<Box<str>>,
    /// Names of members that receive a copy, which starts no run.
    pub observers: Vec<Box<str>>,
    pub text: Arc<str>,
    /// The message that the author answers. The relayed message continues its chain of agents.
    pub continues: Option<MessageId>,
    pub source: Box<str>,
    pub external_id: Option<Box<str>>,
}

/// Value returned to the caller after the commit.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Receipt {
    Done,
    User(Arc<User>),
    Key(Arc<ApiKey>),
    Invitation(Arc<Invitation>),
    Settings(Arc<HubSettings>),
    Room(Arc<Room>),
    Member(Arc<crate::Member>),
    Posted(Posted),
    Subscriptions(Vec<Subscription>),
    Upload(Arc<Upload>),
    /// Unreferenced file contents that the caller must delete.
    Released(Vec<BlobDigest>),
    /// Number of pending or leased messages that were acknowledged.
    Acknowledged(usize),
    Received {
        mail: Vec<(Arc<Message>, Delivery)>,
    },
}
