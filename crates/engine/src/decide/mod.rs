//! Business rules: turns a command and its facts into effects (row changes, events, routing changes) and a
//! receipt.
//!
//! Pure: time and ids come in through the facts and the context, and nothing is read or sent. Each file holds
//! one family of commands.

mod accounts;
mod agents;
mod approvals;
mod invitations;
mod mail;
mod messages;
mod missions;
mod relays;
mod room_preferences;
mod rooms;
mod routing;
mod runs;
#[cfg(test)]
pub(crate) mod test_fixtures;
mod uploads;
mod welcome;

pub use mail::MAX_DELIVERY_ATTEMPTS;
pub(crate) use rooms::{member, members_for_event};
pub use uploads::MAX_UNATTACHED_UPLOADS;
pub use welcome::{GUIDE, HUB, ROOM as WELCOME_ROOM};

use crate::facts::Facts;
use crate::permission::CallerContext;
use crate::ports::{FirstRequest, IdGenerator, IdempotencyKey};
use crate::routing_index::RouteChange;
use crate::{Limits, effects};
use parlor_model::audit::NewAuditEntry;
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalRule, BlobDigest, Bookmark, Command, CurrentPlan, Delivery,
    Event, Gateway, GatewayId, HubSettings, IdlePrompt, Invitation, InvitationId, KeyId, LoggedEvent,
    Mailbox, Member, MemberId, Message, MessageId, Mission, MissionScope, Pairing, Pattern, Pin, Position,
    Reaction, Receipt, Refusal, Revision, Room, RoomId, Router, RouterId, Run, SecondFactor, SecretHash, Seq,
    Service, Session, SignIn, SignInId, Subscription, Task, TaskId, Time, Upload, UploadId, User, UserId,
};
use std::net::IpAddr;
use std::ops::{Deref, DerefMut};
use std::sync::Arc;

/// Everything that a decided variant of `parlor_model::Command` changes, publishes and returns.
#[derive(Debug, Clone)]
pub struct Effects {
    pub changes: Vec<Change>,
    pub events: Vec<LoggedEvent>,
    pub routes: Vec<RouteChange>,
    pub receipt: Receipt,
}

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

/// Source of new ids, and the limits that decisions obey.
pub struct DecideContext<'a> {
    pub ids: &'a dyn IdGenerator,
    pub limits: &'a Limits,
    pub caller: &'a CallerContext,
}

pub fn decide(command: &Command, facts: &Facts, decide_context: &DecideContext) -> Result<Effects, Refusal> {
    let effects_builder = EffectsBuilder::new(facts, decide_context);
    match command {
        Command::NoteBackup { .. }
        | Command::AppendNoop
        | Command::OfferSetup { .. }
        | Command::SetUp { .. }
        | Command::CreateUser(_)
        | Command::ChangeUser { .. }
        | Command::RemoveUser { .. }
        | Command::ChangeProfile(_)
        | Command::ChangePassword { .. }
        | Command::OfferPairing { .. }
        | Command::Pair { .. } => accounts::decide(command, effects_builder),
        Command::ChangeSettings(changes) => {
            let settings = Arc::new(facts.settings.with(changes));
            let mut effects_builder = effects_builder;
            effects_builder.change(Change::PutSettings(settings.clone()));
            if *settings != facts.settings {
                effects_builder.publish(Event::SettingsChanged);
            }
            effects_builder.done(Receipt::Settings(settings))
        }
        Command::CreateInvitation(_) | Command::RevokeInvitation { .. } | Command::Register { .. } => {
            invitations::decide(command, effects_builder)
        }
        Command::CreateRoom { .. }
        | Command::ChangeRoom { .. }
        | Command::SetProjectRoot { .. }
        | Command::DeleteRoom { .. }
        | Command::Freeze { .. }
        | Command::Thaw { .. }
        | Command::AddMember { .. }
        | Command::ChangeMember { .. }
        | Command::RemoveMember { .. } => rooms::decide(command, effects_builder),
        Command::ChangeRoomPreferences { room, how } => room_preferences::decide(room, *how, effects_builder),
        Command::Upload(_) | Command::TakeUnreferencedBlobs { .. } => {
            uploads::decide(command, effects_builder)
        }
        Command::Route(route) => routing::decide(route, effects_builder),
        Command::Relay(relay) => relays::decide(relay, effects_builder),
        Command::Subscribe { .. } | Command::Unsubscribe { .. } => agents::decide(command, effects_builder),
        Command::Receive { .. } | Command::Acknowledge { .. } | Command::ClearDeadLetters => {
            mail::decide(command, effects_builder)
        }
    }
}

/// The effects of a variant of `parlor_model::Command` and its facts, while it is decided.
struct EffectsBuilder<'a> {
    facts: &'a Facts,
    decide_context: &'a DecideContext<'a>,
    effects: effects::EffectsBuilder<'a>,
}

impl<'a> EffectsBuilder<'a> {
    fn new(facts: &'a Facts, decide_context: &'a DecideContext<'a>) -> Self {
        let head = Position { epoch: facts.epoch, seq: facts.head };
        let DecideContext { ids, limits, caller } = *decide_context;
        Self {
            facts,
            decide_context,
            effects: effects::EffectsBuilder::new(facts.now, head, caller, ids, limits),
        }
    }

    fn change(&mut self, change: Change) {
        self.effects.change(change);
    }

    fn publish(&mut self, event: Event) {
        self.effects.publish(event);
    }

    fn done(self, receipt: Receipt) -> Result<Effects, Refusal> {
        let effects::EffectsBuilder { changes, events, routes, .. } = self.effects;
        Ok(Effects { changes, events, routes, receipt })
    }

    /// The account that the caller acts for; `authorise` has verified that there is one.
    fn actor(&self) -> Result<&'a User, Refusal> {
        self.facts.standing.as_ref().map(|standing| &*standing.user).ok_or(Refusal::NotSignedIn)
    }
}

impl<'a> Deref for EffectsBuilder<'a> {
    type Target = effects::EffectsBuilder<'a>;

    fn deref(&self) -> &effects::EffectsBuilder<'a> {
        &self.effects
    }
}

impl<'a> DerefMut for EffectsBuilder<'a> {
    fn deref_mut(&mut self) -> &mut effects::EffectsBuilder<'a> {
        &mut self.effects
    }
}
