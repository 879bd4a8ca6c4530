//! Changes a router.

use super::{MODEL_FIELDS, subject};
use crate::Limits;
use crate::changes::ModelChange;
use crate::commands::Command;
use crate::commands::model_access::audit_detail;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, OwnRouter, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::ChangeRouter;
use parlor_model::{Field, Refusal, Router, Scope};
use std::sync::Arc;

impl Command for ChangeRouter {
    type Facts = OwnRouter;
    type Receipt = Arc<Router>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        if let Some(name) = &self.changes.name {
            field_errors.line(Field::Name, name, 100);
        }
        MODEL_FIELDS.validate_changes(&self.changes.model, &mut field_errors);
        field_errors.into_result()
    }

    /// Allowed for the user who created the router and, if it is shared, for site admins. Only site admins
    /// may make a router shared.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<OwnRouter, PermitError> {
        let own = view.own_router(caller, &self.router, Scope::Write)?;
        if self.changes.shared == Some(true) {
            caller.site_admin()?;
        }
        Ok(own)
    }

    fn decide(self, own: OwnRouter, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Router>, Refusal> {
        let (mut router, changes) = (own.router, self.changes);
        if let Some(name) = changes.name {
            router.name = name.trim().into();
        }
        router.shared = changes.shared.unwrap_or(router.shared);
        router.model.change(&changes.model);
        router.updated_at = effects.now;
        let router = Arc::new(router);
        effects.change(ModelChange::PutRouter(router.clone()));
        effects.audit(Action::RouterChanged, Some(subject(&router)), Some(audit_detail(&router.model)));
        Ok(router)
    }
}
