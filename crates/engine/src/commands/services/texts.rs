//! Validation of a service's texts and limits. What is `None` is not given.

use crate::validate::FieldErrors;
use parlor_model::Field;

#[derive(Default)]
pub struct ServiceTexts<'a> {
    pub name: Option<&'a str>,
    pub description: Option<&'a str>,
    pub fallback: Option<&'a str>,
    pub instructions: Option<&'a str>,
    pub most_tokens: Option<u32>,
}

impl ServiceTexts<'_> {
    pub fn validate(&self, field_errors: &mut FieldErrors) {
        if let Some(name) = self.name {
            field_errors.line(Field::Name, name, 100);
        }
        if let Some(fallback) = self.fallback {
            field_errors.line(Field::Fallback, fallback, 200);
        }
        let short = |text: Option<&str>, limit| text.is_none_or(|text| text.chars().count() <= limit);
        field_errors.unless(
            short(self.description, 2000),
            Field::Description,
            "is longer than 2000 characters",
        );
        let rule = "is longer than 20000 characters";
        field_errors.unless(short(self.instructions, 20_000), Field::Instructions, rule);
        field_errors.unless(self.most_tokens != Some(0), Field::MostTokens, "must be above 0");
    }
}
