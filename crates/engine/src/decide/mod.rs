//! Changes.

use crate::ports::{FirstRequest, IdempotencyKey};
use parlor_model::audit::NewAuditEntry;
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalRule, BlobDigest, Bookmark, CurrentPlan, Delivery, Gateway,
    GatewayId, HubSettings, IdlePrompt, Invitation, InvitationId, KeyId, Mailbox, Member, MemberId, Message,
    MessageId, Mission, MissionScope, Pairing, Pattern, Pin, Reaction, Revision, Room, RoomId, Router,
    RouterId, Run, SecondFactor, SecretHash, Seq, Service, Session, SignIn, SignInId, Subscription, Task,
    TaskId, Time, Upload, UploadId, User, UserId,
};
use std::net::IpAddr;
use std::sync::Arc;

/// One change to the tables of the store.
#[derive(Debug, Clone)]
pub enum Change {
    OfferSetup(Option<(SecretHash, Time)>),
    PutUser(Arc<User>),
    /// Also removes the user's sign-ins, keys, routers, bookmarks, second factor, gateways, agents and their
    /// mail, avatars and unattached uploads. Messages stay, with attachments and the sender's name.
    RemoveUser(UserId),
    /// Stores a sign-in with a new refresh token of its current generation.
    PutSignIn(Arc<SignIn>, SecretHash),
    EndSignIn(SignInId),
    EndSignInsOf(UserId),
    PutKey(Arc<ApiKey>, SecretHash),
    RemoveKey(KeyId),
    PutInvitation(Arc<Invitation>, SecretHash),
    UseInvitation(InvitationId),
    /// Replaces the pairing that this user had on offer.
    PutPairing(Pairing, SecretHash),
    RemovePairing(UserId),
    RemoveInvitation(InvitationId),
    PutRouter(Arc<Router>),
    /// Rooms that used the router have none afterwards.
    RemoveRouter(RouterId),
    /// Stores a service; removing its agent removes it too.
    PutService(Arc<Service>),
    AppendAudit(Arc<NewAuditEntry>),
    /// Counts a repetition of an existing audit record instead of adding a new one.
    RepeatAudit {
        id: u64,
        at: Time,
        address: Option<IpAddr>,
    },
    /// Replaces all settings that were changed before.
    PutSettings(Arc<HubSettings>),
    PutSecondFactor(Arc<SecondFactor>),
    /// Replaces all remaining backup codes of the user.
    PutBackupCodes(UserId, Vec<SecretHash>),
    SpendBackupCode(UserId, SecretHash),
    /// Also removes the user's backup codes.
    RemoveSecondFactor(UserId),
    PutRoom(Arc<Room>),
    /// Also removes members, tasks and messages, with all data that belongs to these.
    RemoveRoom(RoomId),
    PutMember(Arc<Member>),
    RemoveMember(RoomId, MemberId),
    PutMessage(Arc<Message>),
    Revise {
        message: Arc<Message>,
        previous: Revision,
    },
    /// Also removes all data that belongs to the message.
    DeleteMessage(MessageId),
    PutReactions {
        message: MessageId,
        reactions: Arc<[Reaction]>,
    },
    PutPin(Pin),
    RemovePin(MessageId),
    PutBookmark(Bookmark),
    RemoveBookmark(UserId, MessageId),
    MarkRead {
        room: RoomId,
        user: UserId,
        through: Seq,
        at: Time,
    },
    PutUpload(Arc<Upload>),
    /// Attaches an upload to a message.
    Attach {
        upload: UploadId,
        message: MessageId,
    },
    RemoveUpload(UploadId),
    /// Removes contents from the list of released ones: the caller of the command deletes them now.
    ForgetReleased(Vec<BlobDigest>),
    PutAgent(Arc<Agent>),
    /// Also removes the agent's sessions, subscriptions, memberships and mail.
    RemoveAgent(AgentId),
    PutGateway(Arc<Gateway>),
    /// The gateway's agents stay, without a known host.
    RemoveGateway(GatewayId),
    PutTask(Arc<Task>),
    RemoveTask(TaskId),
    PutSession(Session),
    PutSubscription(Subscription),
    RemoveSubscription(Mailbox, Pattern),
    PutDelivery {
        delivery: Delivery,
        seq: Seq,
    },
    MarkDelivered {
        mailbox: Mailbox,
        messages: Vec<MessageId>,
    },
    /// Leases mail until `until` and counts a delivery attempt.
    Lease {
        mailbox: Mailbox,
        messages: Vec<MessageId>,
        until: Time,
    },
    /// Turns mail that was not acknowledged into a dead letter.
    DeadLetterDelivery {
        mailbox: Mailbox,
        message: Arc<Message>,
        reason: &'static str,
    },
    PutRun(Arc<Run>),
    PutApproval(Arc<Approval>),
    /// Replaces a rule for the same room, agent and tool.
    PutApprovalRule(ApprovalRule),
    PutPlan(Arc<CurrentPlan>),
    /// Stores a mission with its state per agent.
    PutMission(Arc<Mission>),
    /// `None` removes the idle prompt.
    PutIdlePrompt {
        mission_scope: MissionScope,
        agent: AgentId,
        idle: Option<IdlePrompt>,
    },
    RemoveApprovalRule(ApprovalRule),
    ClearDeadLetters,
    DeadLetter {
        message: Arc<Message>,
        reason: &'static str,
    },
    RememberIdempotencyKey {
        key: IdempotencyKey,
        first: FirstRequest,
        at: Time,
    },
}

impl Change {
    /// Whether the change leaves users, rooms and members untouched, so that cached lookups stay valid.
    pub fn is_about_a_message(&self) -> bool {
        matches!(
            self,
            Self::PutMessage(_)
                | Self::PutDelivery { .. }
                | Self::RememberIdempotencyKey { .. }
                | Self::DeadLetter { .. }
                | Self::PutUpload(_)
                | Self::PutRun(_)
                | Self::PutApproval(_)
                | Self::Attach { .. }
        )
    }

    /// Whether the change may leave blobs without a referring upload.
    pub fn may_release_files(&self) -> bool {
        matches!(
            self,
            Self::DeleteMessage(_) | Self::RemoveRoom(_) | Self::RemoveUser(_) | Self::RemoveUpload(_)
        )
    }
}
