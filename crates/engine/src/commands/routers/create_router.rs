//! Creates a router.

use super::{MODEL_FIELDS, subject};
use crate::Limits;
use crate::changes::ModelChange;
use crate::commands::Command;
use crate::commands::model_access::audit_detail;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::CreateRouter;
use parlor_model::{Field, Refusal, Router, RouterId};
use std::sync::Arc;

/// Maximum number of routers of one user.
const MAX_ROUTERS: usize = 50;

pub struct Facts {
    caller: Arc<AuthContext>,
    /// Number of routers created by the caller.
    router_count: usize,
}

impl Command for CreateRouter {
    type Facts = Facts;
    type Receipt = Arc<Router>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.line(Field::Name, &self.name, 100);
        MODEL_FIELDS.validate(&self.model, &mut field_errors);
        field_errors.into_result()
    }

    /// Any user may create a private router; only site admins may create a shared one.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let caller = caller.may_create_router(self.shared)?;
        let own = &caller.user.id;
        let routers = view.store.routers(own)?;
        let router_count = routers.iter().filter(|router| router.created_by == *own).count();
        Ok(Facts { caller, router_count })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Router>, Refusal> {
        if facts.router_count >= MAX_ROUTERS {
            return Err(Refusal::invalid(Field::Name, "exceeds the limit of 50 routers per user"));
        }
        let router = Arc::new(Router {
            id: RouterId::stored(effects.new_id()),
            name: self.name.trim().into(),
            shared: self.shared,
            model: self.model,
            created_by: facts.caller.user.id.clone(),
            created_at: effects.now,
            updated_at: effects.now,
        });
        effects.change(ModelChange::PutRouter(router.clone()));
        effects.audit(Action::RouterCreated, Some(subject(&router)), Some(audit_detail(&router.model)));
        Ok(router)
    }
}
