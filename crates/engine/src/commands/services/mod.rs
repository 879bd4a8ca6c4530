//! Commands on services, which are models that answer as agents inside the hub.

mod change_service;
mod create_service;
mod hosting;
mod remove_service;
mod texts;

use super::model_access::ModelFields;
use parlor_model::audit::{Subject, SubjectKind};
use parlor_model::{Agent, Field};

/// Request fields of a service's model.
const MODEL_FIELDS: ModelFields =
    ModelFields { base_url: Field::ServiceBaseUrl, model: Field::ServiceModel, key: Field::ServiceKey };

/// The service's agent as the audit log names it.
fn subject(agent: &Agent) -> Subject {
    Subject { kind: SubjectKind::Agent, id: agent.id.as_str().into(), name: Some(agent.name.clone()) }
}
