//! Commands: one file per command, which contains everything that the engine knows about it.
//!
//! A command's data and receipt are in `parlor_model::command`, so that protocol adapters can build and render
//! them. The list below generates its name and its variants of `AnyCommand` and `AnyReceipt`; a command that
//! is not listed does not compile.

mod accounts;
pub(crate) mod agents;
mod annotations;
pub(crate) mod approvals;
mod batch;
pub(crate) mod gateways;
mod invitations;
mod job;
pub(crate) mod keys;
mod legacy;
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
mod uploads;

pub use batch::Batch;
pub use job::{Job, PendingReceipt, QueuedJob};

use crate::cache::Cache;
use crate::effects::EffectsBuilder;
use crate::facts::LookupCache;
use crate::permission::{CallerContext, PermitError};
use crate::ports::{Head, Store};
use crate::read_view::{ReadView, WriterView};
use crate::routing_index::RoutingIndex;
use crate::{Fault, Hub, Limits};
use parlor_model::{Caller, Position, Refusal, Time};
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
        let read = ReadView::new(now, Position { epoch, seq }, limits, &mut *transaction, &mut cache);
        let mut view = WriterView { read, routes, lookup_cache: &mut LookupCache::default() };
        let caller = view.caller_context(caller)?;
        PermitError::split(self.permit(&caller, &mut view))
    }
}

/// Future of the receipt of an [`AnyCommand`].
pub type AnyPendingReceipt = Pin<Box<dyn Future<Output = Result<AnyReceipt, Refusal>> + Send>>;

macro_rules! commands {
    ($($name:ident = $data:ty,)+) => {
        $(
            impl Listed for $data {
                const NAME: &'static str = stringify!($name);
            }

            impl From<$data> for AnyCommand {
                fn from(command: $data) -> Self {
                    Self::$name(command)
                }
            }
        )+

        /// Any listed command, for code that handles all of them alike, such as tests.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum AnyCommand {
            $($name($data),)+
        }

        /// The receipt of the command with the same name.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        pub enum AnyReceipt {
            $($name(<$data as Command>::Receipt),)+
        }

        impl AnyCommand {
            /// The names of all listed commands.
            pub const NAMES: &[&str] = &[$(<$data>::NAME,)+];

            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$data>::NAME,)+
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
    AddBookmark = parlor_model::command::AddBookmark,
    AnswerQuestions = parlor_model::command::AnswerQuestions,
    AskApproval = parlor_model::command::AskApproval,
    ChangeAgent = parlor_model::command::ChangeAgent,
    ChangeRouter = parlor_model::command::ChangeRouter,
    ChangeService = parlor_model::command::ChangeService,
    ChangeTask = parlor_model::command::ChangeTask,
    ConfirmSecondFactor = parlor_model::command::ConfirmSecondFactor,
    ConnectGateway = parlor_model::command::ConnectGateway,
    CreateAgent = parlor_model::command::CreateAgent,
    CreateKey = parlor_model::command::CreateKey,
    CreateRouter = parlor_model::command::CreateRouter,
    CreateService = parlor_model::command::CreateService,
    CreateSignIn = parlor_model::command::CreateSignIn,
    CreateTask = parlor_model::command::CreateTask,
    DecideApproval = parlor_model::command::DecideApproval,
    DecidePlan = parlor_model::command::DecidePlan,
    DeleteMessage = parlor_model::command::DeleteMessage,
    DeleteMessages = parlor_model::command::DeleteMessages,
    DisconnectGateway = parlor_model::command::DisconnectGateway,
    EditMessage = parlor_model::command::EditMessage,
    EndMission = parlor_model::command::EndMission,
    EndSignIn = parlor_model::command::EndSignIn,
    ExpireApproval = parlor_model::command::ExpireApproval,
    FinishRun = parlor_model::command::FinishRun,
    ForwardMessage = parlor_model::command::ForwardMessage,
    HostAgent = parlor_model::command::HostAgent,
    MarkAllRead = parlor_model::command::MarkAllRead,
    MarkRoomRead = parlor_model::command::MarkRoomRead,
    MergeRun = parlor_model::command::MergeRun,
    OfferSecondFactor = parlor_model::command::OfferSecondFactor,
    PinMessage = parlor_model::command::PinMessage,
    Post = parlor_model::command::Post,
    PostLateReply = parlor_model::command::PostLateReply,
    PromptIdle = parlor_model::command::PromptIdle,
    RecordFailedSignIn = parlor_model::command::RecordFailedSignIn,
    RefreshSignIn = parlor_model::command::RefreshSignIn,
    RegisterAgent = parlor_model::command::RegisterAgent,
    RemoveAgent = parlor_model::command::RemoveAgent,
    RemoveBookmark = parlor_model::command::RemoveBookmark,
    RemoveGateway = parlor_model::command::RemoveGateway,
    RemoveRouter = parlor_model::command::RemoveRouter,
    RemoveSecondFactor = parlor_model::command::RemoveSecondFactor,
    RemoveService = parlor_model::command::RemoveService,
    RemoveTask = parlor_model::command::RemoveTask,
    ReportTask = parlor_model::command::ReportTask,
    ReportUsage = parlor_model::command::ReportUsage,
    RevokeApprovalRule = parlor_model::command::RevokeApprovalRule,
    RevokeKey = parlor_model::command::RevokeKey,
    RewindRoom = parlor_model::command::RewindRoom,
    SetIdlePrompt = parlor_model::command::SetIdlePrompt,
    SetMission = parlor_model::command::SetMission,
    StartChat = parlor_model::command::StartChat,
    StartRun = parlor_model::command::StartRun,
    StartUnpromptedRun = parlor_model::command::StartUnpromptedRun,
    ToggleReaction = parlor_model::command::ToggleReaction,
    UnpinMessage = parlor_model::command::UnpinMessage,
    UpdatePlan = parlor_model::command::UpdatePlan,
    Legacy = parlor_model::Command,
}
