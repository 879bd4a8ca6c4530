//! Lists API keys.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListKeys;
use parlor_model::{ApiKey, UserId};

pub struct Facts {
    /// `None` lists the keys of all users.
    owner: Option<UserId>,
}

impl Query for ListKeys {
    type Facts = Facts;
    type Answer = Vec<ApiKey>;

    /// Users see their own keys, the operator all keys. Keys see none.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<Facts, PermitError> {
        let person = if caller.is_operator() { None } else { Some(caller.person()?) };
        Ok(Facts { owner: person.map(|person| person.user.id.clone()) })
    }

    fn answer(&self, facts: Facts, store: &mut dyn Snapshot, _limits: &Limits) -> Result<Vec<ApiKey>, Fault> {
        store.keys(facts.owner.as_ref())
    }
}
