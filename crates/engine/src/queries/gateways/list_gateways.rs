//! Lists gateways.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListGateways;
use parlor_model::{Gateway, Scope, UserId};

pub struct Facts {
    /// `None` lists the gateways of all users.
    owner: Option<UserId>,
}

impl Query for ListGateways {
    type Facts = Facts;
    type Answer = Vec<Gateway>;

    /// Users see their own gateways, the operator all gateways.
    fn permit(&self, caller: &CallerContext, _view: &mut ReadView<'_>) -> Result<Facts, PermitError> {
        let user = if caller.is_operator() { None } else { Some(caller.signed_in(Scope::Read)?) };
        Ok(Facts { owner: user.map(|caller| caller.user.id.clone()) })
    }

    fn answer(
        &self,
        facts: Facts,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Gateway>, Fault> {
        store.gateways(facts.owner.as_ref())
    }
}
