//! Commands: one file per command, which contains everything that the engine knows about it.
//!
//! A command's data and receipt are in `parlor_model::command`, so that protocol adapters can build and render
//! them. The list below generates its name and its variants of `AnyCommand` and `AnyReceipt`; a command that
//! is not listed does not compile.

pub(crate) mod accounts;
pub(crate) mod agents;
mod annotations;
pub(crate) mod approvals;
mod batch;
pub(crate) mod gateways;
mod invitations;
mod job;
pub(crate) mod keys;
pub(crate) mod mail;
mod maintenance;
pub(crate) mod messages;
mod missions;
mod model_access;
mod plans;
pub(crate) mod rooms;
mod routers;
pub(crate) mod runs;
mod services;
mod settings;
mod sign_ins;
mod tasks;
#[cfg(test)]
pub(crate) mod test_fixtures;
pub(crate) mod turns;
pub(crate) mod uploads;

pub use batch::Batch;
pub(crate) use batch::Committed;
pub use job::{Job, PendingReceipt, QueuedJob};

use crate::cache::Cache;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::ports::{Head, Store};
use crate::read_view::{ReadView, WriterView};
use crate::routing_index::RoutingIndex;
use crate::{Fault, Hub, Limits};
use mail::reach::RouteLookups;
use parlor_model::{Caller, Position, Refusal, Time, command};
use serde::{Deserialize, Serialize};
use std::pin::Pin;

/// A request to change state.
pub trait Command: Listed + Send + 'static {
    /// Input of `decide`, read inside the transaction. Whatever `permit` has proved is not optional here.
    type Facts;
    /// Returned to the caller after the commit.
    type Receipt: Send + 'static;

    /// Stateless check of the command's form, before it is queued.
    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        Ok(())
    }

    /// Refuses the caller, or returns the facts that `decide` needs. The only step that reads.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Self::Facts, PermitError>;

    /// Records changes, events and audit entries in `effects` and returns the receipt. Pure.
    fn decide(self, facts: Self::Facts, effects: &mut EffectsBuilder<'_>) -> Result<Self::Receipt, Refusal>;
}

/// A command in the list of this file, which alone implements this trait.
pub trait Listed {
    const NAME: &'static str;
}

impl AnyCommand {
    /// Whether a caller may execute the command on this store. For the permission table.
    pub fn is_permitted(
        &self,
        caller: &Caller,
        now: Time,
        limits: &Limits,
        store: &mut dyn Store,
    ) -> Result<Result<(), Refusal>, Fault> {
        let Head { epoch, seq, .. } = store.head()?;
        let (agents, subscriptions) = store.subscriptions()?;
        let routes = &RoutingIndex::build(agents, subscriptions);
        let (mut transaction, mut cache) = (store.begin()?, Cache::new(0));
        let read = ReadView::new(now, Position { epoch, seq }, limits, transaction.lookup(), &mut cache);
        let route_lookups = &mut RouteLookups::default();
        let mut view = WriterView { read, routes, route_lookups };
        let caller = view.caller_context(caller)?;
        PermitError::split(self.permit(&caller, &mut view))
    }
}

/// Future of the receipt of an [`AnyCommand`].
pub type AnyPendingReceipt = Pin<Box<dyn Future<Output = Result<AnyReceipt, Refusal>> + Send>>;

macro_rules! commands {
    ($($name:ident,)+) => {
        $(
            impl Listed for command::$name {
                const NAME: &'static str = stringify!($name);
            }

            impl From<command::$name> for AnyCommand {
                fn from(command: command::$name) -> Self {
                    Self::$name(command)
                }
            }
        )+

        /// Any listed command, for code that handles all of them alike, such as tests.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum AnyCommand {
            $($name(command::$name),)+
        }

        /// The receipt of the command with the same name.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum AnyReceipt {
            $($name(<command::$name as Command>::Receipt),)+
        }

        impl AnyCommand {
            /// The names of all listed commands.
            pub const NAMES: &[&str] = &[$(command::$name::NAME,)+];

            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => command::$name::NAME,)+
                }
            }

            /// Whether the caller may execute the command.
            pub fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<(), PermitError> {
                match self {
                    $(Self::$name(command) => command.permit(caller, view).map(drop),)+
                }
            }

            /// As [`Hub::submit`].
            pub async fn submit(self, hub: &Hub, caller: &Caller) -> AnyPendingReceipt {
                match self {
                    $(Self::$name(command) => {
                        let receipt = hub.submit(caller, command).await;
                        Box::pin(async { receipt.await.map(AnyReceipt::$name) })
                    })+
                }
            }
        }
    };
}

commands! {
    AcceptRoomInvitation,
    AcknowledgeMail,
    AddBookmark,
    AddMember,
    AddUpload,
    AnswerQuestions,
    AppendNoop,
    AskApproval,
    CancelRun,
    ChangeAgent,
    ChangeMember,
    ChangePassword,
    ChangeProfile,
    ChangeRoom,
    ChangeRoomPreferences,
    ChangeRouter,
    ChangeService,
    ChangeSession,
    ChangeSettings,
    ChangeTask,
    ChangeUser,
    ClearDeadLetters,
    ConfigureAgent,
    ConfirmSecondFactor,
    ConnectGateway,
    CreateAgent,
    CreateInvitation,
    CreateKey,
    CreateSigningKey,
    CreateRoom,
    CreateRouter,
    CreateService,
    CreateSignIn,
    CreateTask,
    CreateUser,
    DecideApproval,
    DecideBatch,
    DecidePlan,
    DeleteMessage,
    DeleteMessages,
    DeleteRoom,
    DisconnectGateway,
    EditMessage,
    EndMission,
    EndOtherSignIns,
    EndSignIn,
    ExpireApproval,
    FinishRun,
    ForwardMessage,
    FreezeRoom,
    HostAgent,
    ImportMail,
    InviteToRoom,
    MarkAllRead,
    MarkRoomRead,
    MergeRun,
    MoveAgent,
    OfferPairing,
    OfferSecondFactor,
    OfferSetup,
    PinMessage,
    Post,
    PostLateReply,
    PromptAgent,
    PromptIdle,
    Publish,
    ReceiveMail,
    RecordBackup,
    RecordFailedSignIn,
    RedeemPairingCode,
    RefreshSignIn,
    Register,
    RegisterAgent,
    Relay,
    ReleaseBatch,
    RemoveAgent,
    RemoveBookmark,
    RemoveGateway,
    RemoveMember,
    RemoveRouter,
    RemoveSecondFactor,
    RemoveService,
    RemoveTask,
    RemoveUser,
    ReportTask,
    ReportUsage,
    ResendDeadLetter,
    RevokeApprovalRule,
    RevokeInvitation,
    RevokeKey,
    RevokeRoomInvitation,
    RevokeTokens,
    RewindRoom,
    Route,
    SendHeartbeat,
    SetIdlePrompt,
    SetMission,
    SetProjectRoot,
    SetUp,
    StartRun,
    StartTurn,
    StartUnpromptedRun,
    StopRuns,
    StopSession,
    Subscribe,
    TakeUnreferencedBlobs,
    ThawRoom,
    ToggleReaction,
    TriggerTurn,
    UnpinMessage,
    Unsubscribe,
    UpdatePlan,
    WithdrawRuns,
}
