//! Searches messages in the caller's rooms.

use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::search::{self, SearchTerms};
use crate::{Fault, Limits};
use parlor_model::query::{SearchMessages, SearchResults};
use parlor_model::{MemberId, Refusal, RoomRole, Scope};
use std::sync::Arc;

pub struct Facts {
    caller: Arc<AuthContext>,
    terms: SearchTerms,
}

impl Query for SearchMessages {
    type Facts = Facts;
    type Answer = SearchResults;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        SearchTerms::parse(&self.text).map(drop)
    }

    fn is_search(&self) -> bool {
        true
    }

    /// Allowed for every user. A search in one room requires that the caller is a member of it.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Facts, PermitError> {
        let caller = match &self.room {
            None => caller.signed_in(Scope::Read)?,
            Some(room) => view.in_room(caller, room, RoomRole::Member, Scope::Read)?.caller,
        };
        Ok(Facts { caller, terms: SearchTerms::parse(&self.text)? })
    }

    fn answer(
        &self,
        facts: Facts,
        store: &mut dyn Snapshot,
        limits: &Limits,
    ) -> Result<SearchResults, Fault> {
        let memberships = store.memberships(&MemberId::User(facts.caller.user.id.clone()))?;
        search::search(self, &facts.terms, &memberships, limits.search_timeout, store)
    }
}
