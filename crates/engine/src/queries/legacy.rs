//! Adapter that answers the variants of `parlor_model::Query` which have no file of their own yet.

use super::Query;
use crate::authorise::authorise_query;
use crate::facts::Facts;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::read_view::ReadView;
use crate::{Fault, Limits, hub};
use parlor_model::Answer;

impl Query for parlor_model::Query {
    type Facts = Box<Facts>;
    type Answer = Answer;

    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Box<Facts>, PermitError> {
        let facts = facts(self, caller, view)?;
        authorise_query(&caller.caller, self, &facts)?;
        Ok(facts)
    }

    fn answer(&self, facts: Box<Facts>, store: &mut dyn Snapshot, limits: &Limits) -> Result<Answer, Fault> {
        hub::answer(self, &facts, limits, store)
    }
}

/// Loads the facts for authorising and answering a query.
pub(crate) fn facts(
    query: &parlor_model::Query,
    caller: &CallerContext,
    view: &mut ReadView<'_>,
) -> Result<Box<Facts>, Fault> {
    let mut facts = Box::new(Facts::empty(view.now, view.head.epoch, view.head.seq));
    facts.standing = caller.auth.clone();
    facts.load_for_query(&caller.caller, query, view.store)?;
    let root = match query {
        parlor_model::Query::RoomsAt { root, .. } => Some(&**root),
        _ => facts.room.as_ref().and_then(|room| room.project_root.as_deref()),
    };
    facts.root_allowed = root.is_some_and(|root| view.limits.allows_root(root));
    Ok(facts)
}
