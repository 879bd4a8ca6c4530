//! Commands on routers, which are models that select the agents that answer an unaddressed message.

mod change_router;
mod create_router;
mod remove_router;

use super::model_access::ModelFields;
use parlor_model::audit::{Subject, SubjectKind};
use parlor_model::{Field, Router};

/// Request fields of a router's model.
const MODEL_FIELDS: ModelFields =
    ModelFields { base_url: Field::RouterBaseUrl, model: Field::RouterModel, key: Field::RouterKey };

/// The router as the audit log names it.
fn subject(router: &Router) -> Subject {
    Subject { kind: SubjectKind::Router, id: router.id.as_str().into(), name: Some(router.name.clone()) }
}
