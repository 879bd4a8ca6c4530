//! Queries: one file per query, which contains everything that the engine knows about it.
//!
//! A query's data and answer are in `parlor_model::query`. The list below generates its name and its variants of
//! `AnyQuery` and `AnyAnswer`; a query that is not listed does not compile.

mod accounts;
mod agents;
mod annotations;
pub(crate) mod answer_budget;
mod approvals;
mod gateways;
mod invitations;
mod keys;
mod legacy;
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

pub(crate) use legacy::facts;

use crate::cache::Cache;
use crate::permission::{CallerContext, PermitError};
use crate::ports::{Head, Snapshot};
use crate::read_view::ReadView;
use crate::{Fault, Hub, Limits};
use parlor_model::{Caller, Position, Refusal, Time};

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
    ($($name:ident = $data:ty,)+) => {
        $(
            impl Listed for $data {
                const NAME: &'static str = stringify!($name);
            }

            impl From<$data> for AnyQuery {
                fn from(query: $data) -> Self {
                    Self::$name(query)
                }
            }
        )+

        /// Any listed query, for code that handles all of them alike, such as tests.
        #[derive(Debug, Clone, PartialEq)]
        pub enum AnyQuery {
            $($name($data),)+
        }

        /// The answer to the query with the same name.
        #[derive(Debug, Clone, PartialEq)]
        #[allow(clippy::large_enum_variant, reason = "few of them exist at the same time")]
        pub enum AnyAnswer {
            $($name(<$data as Query>::Answer),)+
        }

        impl AnyQuery {
            /// The names of all listed queries.
            pub const NAMES: &[&str] = &[$(<$data>::NAME,)+];

            pub fn name(&self) -> &'static str {
                match self {
                    $(Self::$name(_) => <$data>::NAME,)+
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
    CountReplies = parlor_model::query::CountReplies,
    GetAgent = parlor_model::query::GetAgent,
    GetAgentCard = parlor_model::query::GetAgentCard,
    GetApproval = parlor_model::query::GetApproval,
    GetIdlePrompt = parlor_model::query::GetIdlePrompt,
    GetOwnRouter = parlor_model::query::GetOwnRouter,
    GetRun = parlor_model::query::GetRun,
    GetRunMessages = parlor_model::query::GetRunMessages,
    GetService = parlor_model::query::GetService,
    ListAgentCards = parlor_model::query::ListAgentCards,
    ListAgents = parlor_model::query::ListAgents,
    ListApprovalRules = parlor_model::query::ListApprovalRules,
    ListApprovals = parlor_model::query::ListApprovals,
    ListBookmarks = parlor_model::query::ListBookmarks,
    ListChildRuns = parlor_model::query::ListChildRuns,
    ListGateways = parlor_model::query::ListGateways,
    ListHistory = parlor_model::query::ListHistory,
    ListKeys = parlor_model::query::ListKeys,
    ListMissions = parlor_model::query::ListMissions,
    ListOpenQuestions = parlor_model::query::ListOpenQuestions,
    ListOwnTasks = parlor_model::query::ListOwnTasks,
    ListPins = parlor_model::query::ListPins,
    ListPlans = parlor_model::query::ListPlans,
    ListRecent = parlor_model::query::ListRecent,
    ListReplies = parlor_model::query::ListReplies,
    ListRevisions = parlor_model::query::ListRevisions,
    ListRouters = parlor_model::query::ListRouters,
    ListRuns = parlor_model::query::ListRuns,
    ListRunsOfAgent = parlor_model::query::ListRunsOfAgent,
    ListRunsOfMessage = parlor_model::query::ListRunsOfMessage,
    ListServices = parlor_model::query::ListServices,
    ListSharedAgentCards = parlor_model::query::ListSharedAgentCards,
    ListSignIns = parlor_model::query::ListSignIns,
    ListTasks = parlor_model::query::ListTasks,
    MayCreateRouter = parlor_model::query::MayCreateRouter,
    MayInquire = parlor_model::query::MayInquire,
    MayManageCredentials = parlor_model::query::MayManageCredentials,
    MaySpawnAgents = parlor_model::query::MaySpawnAgents,
    MayStopRuns = parlor_model::query::MayStopRuns,
    SearchMessages = parlor_model::query::SearchMessages,
    Legacy = parlor_model::Query,
}
