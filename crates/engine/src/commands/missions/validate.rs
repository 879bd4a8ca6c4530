//! Validation that setting a mission and setting an idle prompt share.

use crate::validate::FieldErrors;
use parlor_model::characters::is_visible;
use parlor_model::{Field, IdlePrompt};

/// Text of several lines, not empty, of at most 10000 characters.
pub fn validate_text(field: Field, text: &str, field_errors: &mut FieldErrors) {
    field_errors.unless(text.chars().any(is_visible), field, "must not be empty");
    field_errors.unless(text.chars().count() <= 10_000, field, "is longer than 10000 characters");
}

pub fn validate_idle_prompt(idle: &IdlePrompt, field_errors: &mut FieldErrors) {
    if let Some(prompt) = &idle.prompt {
        validate_text(Field::IdlePrompt, prompt, field_errors);
    }
    let range = IdlePrompt::MIN_INTERVAL_SECS..=IdlePrompt::MAX_INTERVAL_SECS;
    let fits = idle.interval.is_none_or(|seconds| range.contains(&seconds));
    field_errors.unless(fits, Field::IdleInterval, "must lie between 30 and 86400");
}
