//! Changes of the store's tables, grouped by aggregate. A command's decision records them, and each backend
//! applies them, one file per aggregate.

use crate::ports::{FirstRequest, IdempotencyKey};
use parlor_model::audit::NewAuditEntry;
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalRule, BlobDigest, Bookmark, ConversationEntry, CurrentPlan,
    Delivery, Gateway, GatewayId, HubSettings, IdlePrompt, Invitation, InvitationId, KeyId, Mailbox, Member,
    MemberId, Message, MessageId, Mission, MissionScope, NewTurnDecision, Pairing, Pattern, Pin, Reaction,
    Revision, Revocation, Room, RoomId, RoomInvitation, Router, RouterId, Run, SealedKey, SecondFactor,
    SecretHash, Seq, Service, Session, SessionRef, SignIn, SignInId, Subscription, Task, TaskId, Time,
    Upload, UploadId, User, UserId,
};
use std::net::IpAddr;
use std::sync::Arc;

macro_rules! aggregates {
    ($($variant:ident($change:ty),)+) => {
        /// One change of the tables.
        #[derive(Debug, Clone)]
        pub enum Change {
            $($variant($change),)+
        }

        $(impl From<$change> for Change {
            fn from(change: $change) -> Self {
                Self::$variant(change)
            }
        })+
    };
}

aggregates! {
    Account(AccountChange),
    Credential(CredentialChange),
    Settings(SettingsChange),
    Audit(AuditChange),
    Model(ModelChange),
    Room(RoomChange),
    Message(MessageChange),
    Annotation(AnnotationChange),
    Upload(UploadChange),
    Agent(AgentChange),
    Mail(MailChange),
    Run(RunChange),
    Conversation(ConversationChange),
    Approval(ApprovalChange),
    Mission(MissionChange),
    Task(TaskChange),
    Turn(TurnChange),
}

impl Change {
    /// Whether the change only adds a message and the data that belongs to it. Such a change leaves what a
    /// batch has looked up about senders and recipients valid.
    pub fn is_about_a_message(&self) -> bool {
        matches!(
            self,
            Self::Message(MessageChange::PutMessage(_) | MessageChange::RememberIdempotencyKey { .. })
                | Self::Mail(MailChange::PutDelivery { .. } | MailChange::DeadLetter { .. })
                | Self::Upload(UploadChange::PutUpload(_) | UploadChange::Attach { .. })
                | Self::Run(RunChange::PutRun(_))
                | Self::Approval(ApprovalChange::PutApproval(_))
        )
    }

    /// Whether the change may add, change or remove the automatic turns or heartbeats of an agent.
    pub fn may_change_turns(&self) -> bool {
        matches!(
            self,
            Self::Mail(MailChange::PutSession(_))
                | Self::Agent(AgentChange::PutAgent(_) | AgentChange::RemoveAgent(_))
                | Self::Account(AccountChange::RemoveUser(_))
        )
    }

    /// Whether the change may leave blobs without a referring upload.
    pub fn may_release_files(&self) -> bool {
        matches!(
            self,
            Self::Message(MessageChange::DeleteMessage(_))
                | Self::Room(RoomChange::RemoveRoom(_))
                | Self::Account(AccountChange::RemoveUser(_))
                | Self::Upload(UploadChange::RemoveUpload(_))
        )
    }
}

/// Changes of accounts: users, first-run setup, invitations and pairing codes.
#[derive(Debug, Clone)]
pub enum AccountChange {
    OfferSetup(Option<(SecretHash, Time)>),
    PutUser(Arc<User>),
    /// Also removes the user's sign-ins, keys, routers, bookmarks, second factor, gateways, agents and their
    /// mail, avatars and unattached uploads. Messages stay, with attachments and the sender's name.
    RemoveUser(UserId),
    PutInvitation(Arc<Invitation>, SecretHash),
    UseInvitation(InvitationId),
    RemoveInvitation(InvitationId),
    PutRoomInvitation(Arc<RoomInvitation>, SecretHash),
    RemoveRoomInvitation(InvitationId),
    /// Replaces the pairing that this user had on offer.
    PutPairing(Pairing, SecretHash),
    RemovePairing(UserId),
}

/// Changes of credentials: sign-ins, API keys and second factors.
#[derive(Debug, Clone)]
pub enum CredentialChange {
    /// Stores a sign-in with a new refresh token of its current generation.
    PutSignIn(Arc<SignIn>, SecretHash),
    EndSignIn(SignInId),
    EndSignInsOf(UserId),
    PutKey(Arc<ApiKey>, SecretHash),
    /// Stores a key whose secret signs tokens, with the encrypted secret.
    PutSigningKey(Arc<ApiKey>, SecretHash, SealedKey),
    /// Removes a key and the revocations of its tokens.
    RemoveKey(KeyId),
    /// Stores revocations of tokens of a key and removes its older ones. Of two revocations with one target the later
    /// one stays.
    RevokeTokens {
        key: KeyId,
        revocations: Vec<Revocation>,
        expired_before: Time,
    },
    PutSecondFactor(Arc<SecondFactor>),
    /// Replaces all remaining backup codes of the user.
    PutBackupCodes(UserId, Vec<SecretHash>),
    SpendBackupCode(UserId, SecretHash),
    /// Also removes the user's backup codes.
    RemoveSecondFactor(UserId),
}

/// Changes of the hub's settings.
#[derive(Debug, Clone)]
pub enum SettingsChange {
    /// Replaces all settings that were changed before.
    PutSettings(Arc<HubSettings>),
}

/// Changes of the audit log.
#[derive(Debug, Clone)]
pub enum AuditChange {
    AppendAudit(Arc<NewAuditEntry>),
    /// Counts a repetition of an existing audit record instead of adding a new one.
    RepeatAudit {
        id: u64,
        at: Time,
        address: Option<IpAddr>,
    },
}

/// Changes of models: routers and services.
#[derive(Debug, Clone)]
pub enum ModelChange {
    PutRouter(Arc<Router>),
    /// Rooms that used the router have none afterwards.
    RemoveRouter(RouterId),
    /// Stores a service; removing its agent removes it too.
    PutService(Arc<Service>),
}

/// Changes of rooms and their members.
#[derive(Debug, Clone)]
pub enum RoomChange {
    PutRoom(Arc<Room>),
    /// Also removes members, invitations, tasks and messages, with all data that belongs to these.
    RemoveRoom(RoomId),
    PutMember(Arc<Member>),
    RenameMember {
        room: RoomId,
        member: MemberId,
        name: Box<str>,
    },
    RemoveMember(RoomId, MemberId),
    MarkRead {
        room: RoomId,
        user: UserId,
        through: Seq,
        at: Time,
    },
}

/// Changes of messages, their revisions and idempotency keys.
#[derive(Debug, Clone)]
pub enum MessageChange {
    PutMessage(Arc<Message>),
    Revise {
        message: Arc<Message>,
        previous: Revision,
    },
    /// Also removes all data that belongs to the message.
    DeleteMessage(MessageId),
    RememberIdempotencyKey {
        key: IdempotencyKey,
        first: FirstRequest,
        at: Time,
    },
}

/// Changes of annotations: reactions, pins and bookmarks.
#[derive(Debug, Clone)]
pub enum AnnotationChange {
    PutReactions { message: MessageId, reactions: Arc<[Reaction]> },
    PutPin(Pin),
    RemovePin(MessageId),
    PutBookmark(Bookmark),
    RemoveBookmark(UserId, MessageId),
}

/// Changes of uploads and the contents that no upload refers to.
#[derive(Debug, Clone)]
pub enum UploadChange {
    PutUpload(Arc<Upload>),
    /// Attaches an upload to a message.
    Attach {
        upload: UploadId,
        message: MessageId,
    },
    RemoveUpload(UploadId),
    /// Removes contents from the list of released ones: the caller of the command deletes them now.
    ForgetReleased(Vec<BlobDigest>),
}

/// Changes of agents and gateways.
#[derive(Debug, Clone)]
pub enum AgentChange {
    PutAgent(Arc<Agent>),
    /// Also removes the agent's sessions, subscriptions, memberships and mail.
    RemoveAgent(AgentId),
    /// Gives the runs, plans, missions and approvals of `old` to `new` and, if `new` has no session, also the sessions,
    /// subscriptions and mail. Then removes `old`, with its memberships and approval rules.
    ReplaceAgent {
        old: AgentId,
        new: AgentId,
    },
    PutGateway(Arc<Gateway>),
    /// The gateway's agents stay, without a known host.
    RemoveGateway(GatewayId),
}

/// Changes of mail: agent sessions, subscriptions, deliveries and dead letters.
#[derive(Debug, Clone)]
pub enum MailChange {
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
    /// Settles mail of a session that a run holds: in the mailbox of the session, and for `main` also in the agent's own.
    /// Mail that is no longer held, for example because a program has acknowledged it, stays as it is.
    SettleHeld {
        session: SessionRef,
        messages: Vec<MessageId>,
        settlement: Settlement,
    },
    /// Turns mail that was not handled into a dead letter.
    DeadLetterDelivery {
        mailbox: Mailbox,
        message: Arc<Message>,
        reason: Box<str>,
    },
    DeadLetter {
        message: Arc<Message>,
        reason: &'static str,
    },
    /// Makes a dead delivery pending again, without earlier attempts.
    ReviveDelivery {
        mailbox: Mailbox,
        message: MessageId,
    },
    RemoveDeadLetter {
        message: Arc<Message>,
        mailbox: Option<Mailbox>,
    },
    /// Moves the copies and the dead letters of a mailbox to another one. Copies of messages that the other mailbox
    /// has already are removed. Sessions that handled a message of the agent's own mailbox are those of the other agent.
    MoveMail {
        from: Mailbox,
        to: Mailbox,
    },
    ClearDeadLetters,
}

/// New delivery state of mail that a run held.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Settlement {
    Delivered,
    /// Deliverable again from this time on.
    PendingFrom(Time),
    /// A dead letter with this reason.
    Dead(Box<str>),
}

/// Changes of runs and agents' plans.
#[derive(Debug, Clone)]
pub enum RunChange {
    PutRun(Arc<Run>),
    PutPlan(Arc<CurrentPlan>),
}

/// Changes of the conversation logs of sessions.
#[derive(Debug, Clone)]
pub enum ConversationChange {
    /// Appends an entry. The store sets its number.
    AppendEntry(Arc<ConversationEntry>),
}

/// Changes of approvals and approval rules.
#[derive(Debug, Clone)]
pub enum ApprovalChange {
    PutApproval(Arc<Approval>),
    /// Replaces a rule for the same room, agent and tool.
    PutApprovalRule(ApprovalRule),
    RemoveApprovalRule(ApprovalRule),
}

/// Changes of missions and idle prompts.
#[derive(Debug, Clone)]
pub enum MissionChange {
    /// Stores a mission with its state per agent.
    PutMission(Arc<Mission>),
    /// `None` removes the idle prompt.
    PutIdlePrompt { mission_scope: MissionScope, agent: AgentId, idle: Option<IdlePrompt> },
}

/// Changes of the decisions about automatic turns.
#[derive(Debug, Clone)]
pub enum TurnChange {
    /// The store gives the decision the next number.
    AppendDecision(Arc<NewTurnDecision>),
}

/// Changes of tasks.
#[derive(Debug, Clone)]
pub enum TaskChange {
    PutTask(Arc<Task>),
    RemoveTask(TaskId),
}
