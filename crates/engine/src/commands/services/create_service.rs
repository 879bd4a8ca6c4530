//! Creates a service together with its agent.

use super::hosting::hosted_by_hub;
use super::texts::ServiceTexts;
use super::{MODEL_FIELDS, subject};
use crate::Limits;
use crate::changes::ModelChange;
use crate::commands::Command;
use crate::commands::agents::new_agent::{check_agent_count, new_agent, put_new_agent};
use crate::commands::model_access::audit_detail;
use crate::effects::EffectsBuilder;
use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::{CreateService, ServiceWithAgent};
use parlor_model::{Agent, AgentId, Refusal, Scope, Service, Visibility};
use std::sync::Arc;

pub struct Facts {
    caller: Arc<AuthContext>,
    /// Number of agents of the caller.
    agent_count: usize,
}

impl Command for CreateService {
    type Facts = Facts;
    type Receipt = ServiceWithAgent;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        MODEL_FIELDS.validate(&self.model, &mut field_errors);
        let texts = ServiceTexts {
            name: Some(&self.name),
            description: Some(&self.description),
            fallback: self.fallback.as_deref(),
            instructions: self.instructions.as_deref(),
            most_tokens: self.most_tokens,
        };
        texts.validate(&mut field_errors);
        field_errors.into_result()
    }

    /// Allowed for site admins. Not for the operator: a service needs an account that owns it.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let caller = caller.signed_in(Scope::Admin)?;
        let agent_count = view.store.agents_of(&caller.user.id)?.len();
        Ok(Facts { caller, agent_count })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<ServiceWithAgent, Refusal> {
        let (id, now) = (AgentId::stored(effects.new_id()), effects.now);
        check_agent_count(facts.agent_count)?;
        let agent = Agent {
            description: self.description,
            host: hosted_by_hub(&self.model.model, now),
            // Visible to all users, so that every user can add it to a room.
            visibility: Visibility::All,
            ..new_agent(id.clone(), facts.caller.user.id.clone(), self.name.trim(), now)
        };
        let agent = put_new_agent(agent, &[], 0, effects)?.agent;
        let service = Arc::new(Service {
            agent: id,
            active: self.active,
            model: self.model,
            fallback: self.fallback,
            instructions: self.instructions,
            most_tokens: self.most_tokens,
            updated_at: now,
        });
        effects.change(ModelChange::PutService(service.clone()));
        effects.audit(Action::ServiceCreated, Some(subject(&agent)), Some(audit_detail(&service.model)));
        Ok(ServiceWithAgent { agent, service })
    }
}
