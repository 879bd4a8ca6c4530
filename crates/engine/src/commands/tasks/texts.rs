//! Length limits of the texts of a task.

use crate::validate::FieldErrors;
use parlor_model::Field;

/// Checks the texts of a task that a command sets.
pub fn check_texts(
    title: Option<&str>,
    description: Option<&str>,
    result: Option<&str>,
    field_errors: &mut FieldErrors,
) {
    if let Some(title) = title {
        field_errors.line(Field::Title, title, 200);
    }
    let long = |text: Option<&str>, limit| text.is_some_and(|text| text.chars().count() > limit);
    field_errors.unless(!long(description, 10_000), Field::Description, "is longer than 10000 characters");
    field_errors.unless(!long(result, 100_000), Field::Result, "is longer than 100000 characters");
}
