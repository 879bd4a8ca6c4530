//! The rules: from a command and the facts to what changes, what is told, and the receipt.
//!
//! Pure: time and ids come in, nothing goes out but the plan. Every file is one family of commands.

mod accounts;
mod agent_plans;
mod agents;
mod annotations;
mod approvals;
mod chats;
mod gateways;
mod invitations;
mod mail;
mod messages;
mod missions;
mod room_preferences;
mod rooms;
mod routers;
mod routing;
mod runs;
mod second_factor;
mod services;
mod tasks;
#[cfg(test)]
mod test_fixtures;
mod uploads;
mod welcome;

pub use mail::MOST_ATTEMPTS;
pub use messages::MOST_REWOUND;
pub use uploads::MOST_WAITING_UPLOADS;
pub use welcome::{GUIDE, HUB, ROOM as WELCOME_ROOM};

use crate::Limits;
use crate::facts::Facts;
use crate::ports::{FirstRequest, IdGenerator, IdempotencyKey};
use crate::routing_index::RouteChange;
use parlor_model::audit::NewAuditEntry;
use parlor_model::{
    Agent, AgentId, ApiKey, Approval, ApprovalRule, BlobDigest, Bookmark, Command, CurrentPlan, Delivery,
    Event, Gateway, GatewayId, HubSettings, IdlePrompt, Invitation, InvitationId, KeyId, LoggedEvent,
    Mailbox, Member, MemberId, Message, MessageId, Mission, MissionScope, Pairing, Pattern, Pin, Position,
    Reaction, Receipt, Refusal, Revision, Room, RoomId, Router, RouterId, Run, SecondFactor, SecretHash, Seq,
    Service, Session, SignIn, SignInId, Subscription, Task, TaskId, Time, Upload, UploadId, User, UserId,
};
use std::net::IpAddr;
use std::sync::Arc;

/// What a decided command does.
#[derive(Debug, Clone)]
pub struct Effects {
    pub changes: Vec<Change>,
    pub events: Vec<LoggedEvent>,
    pub routes: Vec<RouteChange>,
    pub receipt: Receipt,
}

/// One step for the store's tables.
#[derive(Debug, Clone)]
pub enum Change {
    OfferSetup(Option<(SecretHash, Time)>),
    PutUser(Arc<User>),
    /// With sign-ins, keys, routers, bookmarks, second factor, gateways, agents and their mail, pictures, and uploads on no message; messages stay, with
    /// what is on them, and keep the sender's name.
    RemoveUser(UserId),
    /// With a new refresh token of its generation.
    PutSignIn(Arc<SignIn>, SecretHash),
    EndSignIn(SignInId),
    EndSignInsOf(UserId),
    PutKey(Arc<ApiKey>, SecretHash),
    RemoveKey(KeyId),
    PutInvitation(Arc<Invitation>, SecretHash),
    UseInvitation(InvitationId),
    /// In the place of the one that this person had on offer.
    PutPairing(Pairing, SecretHash),
    RemovePairing(UserId),
    RemoveInvitation(InvitationId),
    PutRouter(Arc<Router>),
    /// Rooms that had it have none.
    RemoveRouter(RouterId),
    /// Removed with its agent.
    PutService(Arc<Service>),
    AppendAudit(Arc<NewAuditEntry>),
    /// The same once more.
    RepeatAudit {
        id: u64,
        at: Time,
        address: Option<IpAddr>,
    },
    /// In the place of all that were changed before.
    PutSettings(Arc<HubSettings>),
    PutSecondFactor(Arc<SecondFactor>),
    /// In the place of those that are left.
    PutBackupCodes(UserId, Vec<SecretHash>),
    SpendBackupCode(UserId, SecretHash),
    /// With its backup codes.
    RemoveSecondFactor(UserId),
    PutRoom(Arc<Room>),
    /// With members, tasks, messages and everything that hangs on these.
    RemoveRoom(RoomId),
    PutMember(Arc<Member>),
    RemoveMember(RoomId, MemberId),
    PutMessage(Arc<Message>),
    Revise {
        message: Arc<Message>,
        previous: Revision,
    },
    /// With everything that hangs on it.
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
    /// Puts an upload on a message.
    Attach {
        upload: UploadId,
        message: MessageId,
    },
    RemoveUpload(UploadId),
    /// These contents are somebody's to remove now.
    ForgetReleased(Vec<BlobDigest>),
    PutAgent(Arc<Agent>),
    /// With sessions, subscriptions, memberships and mail.
    RemoveAgent(AgentId),
    PutGateway(Arc<Gateway>),
    /// Its agents stay, as hosted by nothing that is known.
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
    /// Hands mail out until then, once more.
    Lease {
        mailbox: Mailbox,
        messages: Vec<MessageId>,
        until: Time,
    },
    /// Gives mail up that nobody acknowledged.
    DeadLetterDelivery {
        mailbox: Mailbox,
        message: Arc<Message>,
        reason: &'static str,
    },
    PutRun(Arc<Run>),
    PutApproval(Arc<Approval>),
    /// In the place of one for the same.
    PutApprovalRule(ApprovalRule),
    PutPlan(Arc<CurrentPlan>),
    /// With what it has of agents.
    PutMission(Arc<Mission>),
    /// `None` takes it away.
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
    /// Whether people, rooms and members are as they were before it.
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

    /// Whether it may leave the content of files behind that nothing refers to.
    pub fn may_release_files(&self) -> bool {
        matches!(
            self,
            Self::DeleteMessage(_) | Self::RemoveRoom(_) | Self::RemoveUser(_) | Self::RemoveUpload(_)
        )
    }
}

/// What plans make new things with, and how many there may be.
pub struct DecideContext<'a> {
    pub ids: &'a dyn IdGenerator,
    pub limits: &'a Limits,
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
        | Command::SignIn(_)
        | Command::SignInFailed { .. }
        | Command::Refresh { .. }
        | Command::EndSignIn { .. }
        | Command::CreateKey { .. }
        | Command::OfferPairing { .. }
        | Command::Pair { .. }
        | Command::RevokeKey { .. } => accounts::decide(command, effects_builder),
        Command::ChangeSettings(changes) => {
            let settings = Arc::new(facts.settings.with(changes));
            let mut effects_builder = effects_builder;
            effects_builder.change(Change::PutSettings(settings.clone()));
            if *settings != facts.settings {
                effects_builder.tell(Event::SettingsChanged);
            }
            effects_builder.done(Receipt::Settings(settings))
        }
        Command::OfferSecondFactor { .. }
        | Command::ConfirmSecondFactor { .. }
        | Command::DropSecondFactor { .. } => second_factor::decide(command, effects_builder),
        Command::CreateInvitation(_) | Command::RevokeInvitation { .. } | Command::Register { .. } => {
            invitations::decide(command, effects_builder)
        }
        Command::CreateRouter(_) | Command::ChangeRouter { .. } | Command::RemoveRouter { .. } => {
            routers::decide(command, effects_builder)
        }
        Command::CreateService(_) | Command::ChangeService { .. } | Command::RemoveService { .. } => {
            services::decide(command, effects_builder)
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
        Command::SetMission { .. }
        | Command::EndMission { .. }
        | Command::SetIdlePrompt { .. }
        | Command::PromptIdle { .. } => missions::decide(command, effects_builder),
        Command::CreateTask(_)
        | Command::ChangeTask { .. }
        | Command::RemoveTask { .. }
        | Command::ReportTask { .. } => tasks::decide(command, effects_builder),
        Command::Chat { agent, post } => chats::decide(agent, post, effects_builder),
        Command::ChangeRoomPreferences { room, how } => room_preferences::decide(room, *how, effects_builder),
        Command::Post(_)
        | Command::Edit { .. }
        | Command::Delete { .. }
        | Command::DeleteMany { .. }
        | Command::Rewind { .. }
        | Command::Forward { .. }
        | Command::MarkRead { .. }
        | Command::MarkAllRead => messages::decide(command, effects_builder),
        Command::React { .. }
        | Command::Pin { .. }
        | Command::Unpin { .. }
        | Command::Bookmark { .. }
        | Command::RemoveBookmark { .. } => annotations::decide(command, effects_builder),
        Command::Upload(_) | Command::TakeUnreferencedBlobs { .. } => {
            uploads::decide(command, effects_builder)
        }
        Command::Route(route) => routing::decide(route, effects_builder),
        Command::CreateAgent { .. }
        | Command::ChangeAgent { .. }
        | Command::RemoveAgent { .. }
        | Command::Subscribe { .. }
        | Command::Unsubscribe { .. } => agents::decide(command, effects_builder),
        Command::StartRun { .. }
        | Command::MergeRun { .. }
        | Command::StartUnpromptedRun { .. }
        | Command::FinishRun(_)
        | Command::PostLateReply { .. }
        | Command::ReportUsage { .. } => runs::decide(command, effects_builder),
        Command::UpdatePlan { .. } | Command::DecidePlan { .. } => {
            agent_plans::decide(command, effects_builder)
        }
        Command::AskApproval(_)
        | Command::DecideApproval(_)
        | Command::AnswerQuestions { .. }
        | Command::ExpireApproval { .. }
        | Command::RevokeApprovalRule { .. } => approvals::decide(command, effects_builder),
        Command::ConnectGateway(_)
        | Command::DisconnectGateway { .. }
        | Command::RemoveGateway { .. }
        | Command::HostAgent { .. }
        | Command::RegisterAgent(_) => gateways::decide(command, effects_builder),
        Command::Receive { .. } | Command::Acknowledge { .. } | Command::ClearDeadLetters => {
            mail::decide(command, effects_builder)
        }
    }
}

/// A plan in the making.
struct EffectsBuilder<'a> {
    facts: &'a Facts,
    decide_context: &'a DecideContext<'a>,
    changes: Vec<Change>,
    events: Vec<LoggedEvent>,
    routes: Vec<RouteChange>,
}

impl<'a> EffectsBuilder<'a> {
    fn new(facts: &'a Facts, decide_context: &'a DecideContext<'a>) -> Self {
        Self { facts, decide_context, changes: Vec::new(), events: Vec::new(), routes: Vec::new() }
    }

    /// The `Seq` that the next event told will have.
    fn next_seq(&self) -> Seq {
        Seq(self.facts.head.0 + self.events.len() as u64 + 1)
    }

    fn position(&self, seq: Seq) -> Position {
        Position { epoch: self.facts.epoch, seq }
    }

    fn change(&mut self, change: Change) {
        self.changes.push(change);
    }

    fn tell(&mut self, event: Event) {
        self.events.push(LoggedEvent { seq: self.next_seq(), at: self.facts.now, event });
    }

    fn done(self, receipt: Receipt) -> Result<Effects, Refusal> {
        Ok(Effects { changes: self.changes, events: self.events, routes: self.routes, receipt })
    }

    /// The account the caller acts for; `authorise` has made sure that there is one.
    fn actor(&self) -> Result<&'a User, Refusal> {
        self.facts.standing.as_ref().map(|standing| &standing.user).ok_or(Refusal::NotSignedIn)
    }
}
