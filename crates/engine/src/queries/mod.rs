//! Queries: one file per query, which contains everything that the engine knows about it.
//!
//! A query's data and answer are in `parlor_model::query`. The list below generates its name and its variants of
//! `AnyQuery` and `AnyAnswer`; a query that is not listed does not compile.

mod accounts;
mod agents;
mod annotations;
pub(crate) mod answer_budget;
mod approvals;
mod conversations;
mod gateways;
mod invitations;
mod keys;
mod mail;
mod messages;
mod missions;
mod occupants;
mod plans;
mod rooms;
mod routers;
mod runs;
mod services;
mod sessions;
mod settings;
mod sign_ins;
mod tasks;
mod tools;
mod turns;
mod uploads;

use crate::cache::Cache;
use crate::permission::{CallerContext, PermitError};
use crate::ports::{Head, Snapshot};
use crate::read_view::ReadView;
use crate::{Fault, Hub, Limits};
use parlor_model::{Caller, Position, Refusal, Time, query};

/// A request to read. Changes nothing.
pub trait Query: Listed + Send + 'static {
    /// Input of `answer`. Whatever `permit` has proved is not optional here.
    type Facts;
    type Answer: Send + 'static;

    /// Stateless check of the query's form.
    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        Ok(())
    }

    /// Whether the query is expensive and waits for one of the permits for searches.
    fn is_search(&self) -> bool {
        false
    }

    /// Refuses the caller, or returns the facts that `answer` needs.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Self::Facts, PermitError>;

    /// Reads the answer from the snapshot that `permit` has read from.
    fn answer(
        &self,
        facts: Self::Facts,
        store: &mut dyn Snapshot,
        limits: &Limits,
    ) -> Result<Self::Answer, Fault>;
}

/// A query in the list of this file, which alone implements this trait.
pub trait Listed {
    const NAME: &'static str;
}

impl AnyQuery {
    /// Whether a caller may run the query on this snapshot. For the permission table.
    pub fn is_permitted(
        &self,
        caller: &Caller,
        now: Time,
        limits: &Limits,
        store: &mut dyn Snapshot,
    ) -> Result<Result<(), Refusal>, Fault> {
        let Head { epoch, seq, .. } = store.head()?;
        let mut cache = Cache::new(0);
        let mut view = ReadView::new(now, Position { epoch, seq }, limits, store, &mut cache);
        let caller = view.caller_context(caller)?;
        PermitError::split(self.permit(&caller, &mut view))
    }
}

macro_rules! queries {
    ($($name:ident,)+) => {
        $(
            impl Listed for query::$name {
                const NAME: &'static str = stringify!($name);
            }

            impl From<query::$name> for AnyQuery {
                fn from(query: query::$name) -> Self {
                    Self::$name(query)
                }
            }
        )+

        /// Any listed query, for code that handles all of them alike, such as tests.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyQuery {
            $($name(query::$name),)+
        }

        /// The answer to the query with the same name.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "few of them exist at the same time")]
        pub enum AnyAnswer {
            $($name(<query::$name as Query>::Answer),)+
        }

        impl AnyQuery {
            /// The names of all listed queries.
            pub const NAMES: &[&str] = &[$(query::$name::NAME,)+];

            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => query::$name::NAME,)+
                }
            }

            /// Whether the caller may run the query.
            pub fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<(), PermitError> {
                match self {
                    $(Self::$name(query) => query.permit(caller, view).map(drop),)+
                }
            }

            /// As [`Hub::read`].
            pub async fn read(self, hub: &Hub, caller: &Caller) -> Result<AnyAnswer, Refusal> {
                match self {
                    $(Self::$name(query) => hub.read(caller, query).await.map(AnyAnswer::$name),)+
                }
            }
        }
    };
}

queries! {
    CountReplies,
    FindAccount,
    FindKey,
    FindSigningKey,
    FindUser,
    GetAgent,
    GetAgentCard,
    GetAuthContext,
    GetIdlePrompt,
    GetMe,
    GetMessage,
    GetOwnRouter,
    GetRoom,
    GetRoomInvitation,
    GetRun,
    GetRunMessages,
    GetSecondFactor,
    GetService,
    GetSettings,
    GetTask,
    GetUpload,
    GetWorkspaceRoot,
    ListActiveSessions,
    ListAgentCards,
    ListAgents,
    ListApprovalRules,
    ListApprovals,
    ListAuditRecords,
    ListBookmarks,
    ListChildRuns,
    ListConversation,
    ListDeadLetters,
    ListDestinationHistory,
    ListGateways,
    ListHistory,
    ListInvitations,
    ListKeys,
    ListMail,
    ListMailboxes,
    ListMembers,
    ListMissions,
    ListNewMail,
    ListOpenQuestions,
    ListOwnApprovals,
    ListOwnTasks,
    ListPins,
    ListPlans,
    ListProjectRoots,
    ListQueue,
    ListReachableAgents,
    ListRecent,
    ListReplies,
    ListRevisions,
    ListRoomInvitations,
    ListRooms,
    ListRoomsWithAgent,
    ListRouters,
    ListRuns,
    ListRunsOfAgent,
    ListRunsOfMessage,
    ListServices,
    ListSessions,
    ListSharedAgentCards,
    ListSignIns,
    ListSubscriptions,
    ListTasks,
    ListTurns,
    ListUsers,
    MayCreateRouter,
    MayEnterPlace,
    MayFollowRoom,
    MayFollowSessions,
    MayInquire,
    MayInstructAgent,
    MayListOccupants,
    MayListenToMailbox,
    MayManageCredentials,
    MayPromptAgent,
    MayReadMetrics,
    MayReadOccupancy,
    MayReadOccupantHistory,
    MayReadRooms,
    MayRegister,
    MaySeeLimits,
    MaySpawnAgents,
    MayUpload,
    MayUseTools,
    NeedsSetup,
    ResolveRecipient,
    SearchAsAgent,
    SearchConversations,
    SearchMessages,
    SearchUsers,
}
