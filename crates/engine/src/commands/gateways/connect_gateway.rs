//! Creates a gateway, or marks a known gateway as online.

use crate::HUB;
use crate::Limits;
use crate::changes::AgentChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::characters::is_deceptive;
use parlor_model::command::ConnectGateway;
use parlor_model::{Device, EntityKind, Field, Gateway, Refusal, Scope};
use std::sync::Arc;

/// Maximum number of gateways stored per user; beyond that, the one that disconnected first is removed.
const MAX_GATEWAYS: usize = 100;

pub struct Facts {
    caller: Arc<AuthContext>,
    existing: Option<Gateway>,
    /// All gateways of the caller.
    gateways: Vec<Gateway>,
}

impl Command for ConnectGateway {
    type Facts = Facts;
    type Receipt = Arc<Gateway>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        let Device { hostname, platform, arch, runtime } = &self.device;
        let short = [hostname, platform, arch, runtime]
            .iter()
            .all(|word| word.chars().count() <= 255 && !word.chars().any(is_deceptive));
        let rule = "must have at most 255 characters each, without control characters";
        field_errors.unless(short, Field::Device, rule);
        field_errors.into_result()
    }

    /// Allowed for every user, with a new id or that of an own gateway. A caller with the hub's own gateway id
    /// could make the hub start agents and request credentials from it.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let caller = caller.signed_in(Scope::Hosting)?;
        let existing = view.store.gateway(&self.id)?;
        let is_anothers = existing.as_ref().is_some_and(|gateway| gateway.owner != caller.user.id);
        if is_anothers || self.id.as_str() == HUB {
            return Err(Refusal::BelongsToAnother(EntityKind::Gateway).into());
        }
        Ok(Facts { gateways: view.store.gateways(Some(&caller.user.id))?, existing, caller })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Gateway>, Refusal> {
        let others = || facts.gateways.iter().filter(|other| other.id != self.id);
        let oldest = others().filter(|other| other.disconnected_at.is_some());
        let oldest = oldest.min_by_key(|other| other.disconnected_at).map(|other| other.id.clone());
        if let Some(oldest) = oldest.filter(|_| others().count() >= MAX_GATEWAYS) {
            effects.change(AgentChange::RemoveGateway(oldest));
        }
        let gateway = Arc::new(Gateway {
            id: self.id,
            owner: facts.caller.user.id.clone(),
            device: self.device,
            ephemeral: self.ephemeral,
            connected_at: effects.now,
            disconnected_at: None,
            pending_removals: facts.existing.map(|existing| existing.pending_removals).unwrap_or_default(),
        });
        effects.change(AgentChange::PutGateway(gateway.clone()));
        Ok(gateway)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::{auth, decide, gateway};
    use parlor_model::{AgentId, GatewayId, Time};

    fn connect(id: &str) -> ConnectGateway {
        ConnectGateway { id: GatewayId::stored(id), device: Device::default(), ephemeral: false }
    }

    #[test]
    fn the_number_of_stored_gateways_is_limited() {
        let disconnected = |n: usize| gateway(&format!("g{n}"), Some(Time(((n + 7) % MAX_GATEWAYS) as i64)));
        let full = || {
            let gateways = (0..MAX_GATEWAYS).map(disconnected).collect();
            Facts { caller: auth("ann"), existing: None, gateways }
        };
        let (_, effects) = decide(connect("new"), full()).unwrap();
        let [
            Change::Agent(AgentChange::RemoveGateway(forgotten)),
            Change::Agent(AgentChange::PutGateway(new)),
        ] = &effects.changes[..]
        else {
            panic!("one removal, one new gateway: {:?}", effects.changes)
        };
        assert_eq!((forgotten.as_str(), new.id.as_str()), ("g93", "new"));
        let (_, effects) = decide(connect("g93"), full()).unwrap();
        assert!(matches!(&effects.changes[..], [Change::Agent(AgentChange::PutGateway(_))]));
    }

    #[test]
    fn a_gateway_that_reconnects_still_has_its_pending_removals() {
        let pending_removals = vec![AgentId::stored("coder")];
        let away = Gateway { pending_removals, ..gateway("laptop", Some(Time(5))) };
        let facts = Facts { caller: auth("ann"), existing: Some(away.clone()), gateways: vec![away.clone()] };
        let (back, _) = decide(connect("laptop"), facts).unwrap();
        assert_eq!(back.pending_removals, away.pending_removals);
    }
}
