//! Searches messages in the rooms of an agent.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::search::{self, SearchTerms};
use crate::{Fault, Limits};
use parlor_model::query::{SearchAsAgent, SearchResults};
use parlor_model::{EntityKind, Mailbox, MemberId, Refusal};

impl Query for SearchAsAgent {
    type Facts = SearchTerms;
    type Answer = SearchResults;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        SearchTerms::parse(&self.search.text).map(drop)
    }

    fn is_search(&self) -> bool {
        true
    }

    /// Allowed for the owner of the agent, and for programs of the agent. A search in one room requires that the agent
    /// is a member of it.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<SearchTerms, PermitError> {
        view.as_agent(caller, &Mailbox::of(self.agent.clone()))?;
        if let Some(room) = &self.search.room
            && view.store.member(room, &MemberId::Agent(self.agent.clone()))?.is_none()
        {
            return Err(Refusal::NotFound(EntityKind::Room).into());
        }
        Ok(SearchTerms::parse(&self.search.text)?)
    }

    fn answer(
        &self,
        terms: SearchTerms,
        store: &mut dyn Snapshot,
        limits: &Limits,
    ) -> Result<SearchResults, Fault> {
        let memberships = store.memberships(&MemberId::Agent(self.agent.clone()))?;
        search::search(&self.search, &terms, &memberships, limits.search_timeout, store)
    }
}
