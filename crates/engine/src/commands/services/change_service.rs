//! Changes a service and its agent.

use super::hosting::hosted_by_hub;
use super::texts::ServiceTexts;
use super::{MODEL_FIELDS, subject};
use crate::Limits;
use crate::changes::ModelChange;
use crate::commands::Command;
use crate::commands::agents::existing_agent::ExistingAgent;
use crate::commands::model_access::audit_detail;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, ManagedService, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::{ChangeService, ServiceWithAgent};
use parlor_model::{Agent, Refusal, Service};
use std::sync::Arc;

pub struct Facts {
    /// The service before the change.
    service: Service,
    existing: ExistingAgent,
}

impl Command for ChangeService {
    type Facts = Facts;
    type Receipt = ServiceWithAgent;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let (changes, mut field_errors) = (&self.changes, FieldErrors::default());
        MODEL_FIELDS.validate_changes(&changes.model, &mut field_errors);
        let texts = ServiceTexts {
            name: changes.name.as_deref(),
            description: changes.description.as_deref(),
            fallback: changes.fallback.new_value().map(|text| &**text),
            instructions: changes.instructions.new_value().map(|text| &**text),
            most_tokens: changes.most_tokens.new_value().copied(),
        };
        texts.validate(&mut field_errors);
        field_errors.into_result()
    }

    /// Allowed for site admins, whoever created the service.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let ManagedService { agent, service } = view.managed_service(caller, &self.agent)?;
        let name = self.changes.name.as_deref().map(str::trim);
        Ok(Facts { service, existing: ExistingAgent::load(agent, name, view)? })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<ServiceWithAgent, Refusal> {
        let (changes, mut service) = (self.changes, facts.service);
        service.model.change(&changes.model);
        service.active = changes.active.unwrap_or(service.active);
        changes.fallback.apply_to(&mut service.fallback);
        changes.instructions.apply_to(&mut service.instructions);
        changes.most_tokens.apply_to(&mut service.most_tokens);
        service.updated_at = effects.now;
        let mut agent = Agent::clone(&facts.existing.agent);
        if let Some(name) = changes.name {
            agent.name = name.trim().into();
        }
        if let Some(description) = changes.description {
            agent.description = description;
        }
        agent.host = hosted_by_hub(&service.model.model, effects.now);
        let (agent, service) = (facts.existing.replace(agent, effects), Arc::new(service));
        effects.change(ModelChange::PutService(service.clone()));
        effects.audit(Action::ServiceChanged, Some(subject(&agent)), Some(audit_detail(&service.model)));
        Ok(ServiceWithAgent { agent, service })
    }
}
