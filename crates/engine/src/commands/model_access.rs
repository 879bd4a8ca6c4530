//! Parts that the commands on routers and on services share: how a model is reached.

use crate::validate::FieldErrors;
use parlor_model::command::ModelChanges;
use parlor_model::{Field, ModelAccess};

/// The fields that a refusal names for a model's URL, name and key.
#[derive(Clone, Copy)]
pub struct ModelFields {
    pub base_url: Field,
    pub model: Field,
    pub key: Field,
}

impl ModelFields {
    pub fn validate(self, model: &ModelAccess, field_errors: &mut FieldErrors) {
        self.validate_parts(Some(&model.base_url), Some(&model.model), field_errors);
    }

    pub fn validate_changes(self, changes: &ModelChanges, field_errors: &mut FieldErrors) {
        self.validate_parts(changes.base_url.as_deref(), changes.model.as_deref(), field_errors);
        let keyless = changes.base_url.is_some() && changes.key.is_keep();
        field_errors.unless(!keyless, self.key, "must be given again for another address");
    }

    fn validate_parts(self, base_url: Option<&str>, model: Option<&str>, field_errors: &mut FieldErrors) {
        if let Some(url) = base_url {
            field_errors.unless(url.len() <= 500, self.base_url, "is too long");
        }
        if let Some(model) = model {
            field_errors.line(self.model, model, 200);
        }
    }
}

/// Detail text of an audit entry: the model and its URL, without the key.
pub fn audit_detail(model: &ModelAccess) -> Box<str> {
    format!("{} at {}", model.model, model.base_url).into()
}
