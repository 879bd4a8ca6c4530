//! Stateless validation of commands and queries: lengths, ranges and formats. The first step of the write
//! pipeline; needs neither the caller nor the store.

use crate::Limits;
use parlor_model::characters::{is_deceptive, is_visible};
use parlor_model::{FieldError, GatewayRequest, Post, Refusal};

/// Validates a request to a gateway.
pub fn validate_gateway_request(gateway_request: &GatewayRequest) -> Result<(), Refusal> {
    let mut field_errors = FieldErrors::default();
    // Requests about credentials are validated by the gateway itself.
    if let GatewayRequest::Spawn(spawn) = gateway_request {
        field_errors.line("agentType", &spawn.kind, 64);
        field_errors.line("name", &spawn.name, 100);
        if let Some(folder) = &spawn.working_directory {
            field_errors.line("workingDirectory", folder, 4096);
        }
        if let Some(credential) = &spawn.credential {
            field_errors.line("credentialId", credential, 100);
        }
    }
    field_errors.into_result()
}

/// The rules that a new password violates; empty if it is acceptable. The password itself never enters a
/// command.
pub fn password_errors(password: &str) -> Vec<FieldError> {
    let mut field_errors = FieldErrors::default();
    let length = password.chars().count();
    field_errors.unless(length >= 8, "password", "must have at least 8 characters");
    field_errors.unless(length <= 128, "password", "must have at most 128 characters");
    field_errors.unless(password.chars().any(char::is_lowercase), "password", "needs a lower-case letter");
    field_errors.unless(password.chars().any(char::is_uppercase), "password", "needs an upper-case letter");
    field_errors.unless(password.chars().any(|c| c.is_ascii_digit()), "password", "needs a digit");
    field_errors.0
}

pub(crate) fn fits(text: &str, limit: usize) -> Result<(), Refusal> {
    // The number of bytes is an upper bound for the number of characters, so short texts need not be counted.
    if text.len() <= limit {
        return Ok(());
    }
    match text.chars().count() {
        got if got > limit => Err(Refusal::TooLarge { limit, got }),
        _ => Ok(()),
    }
}

#[derive(Default)]
pub(crate) struct FieldErrors(Vec<FieldError>);

impl FieldErrors {
    pub(crate) fn add(&mut self, field: &'static str, rule: &'static str) {
        self.0.push(FieldError { field: field.into(), rule: rule.into() });
    }

    pub(crate) fn unless(&mut self, good: bool, field: &'static str, rule: &'static str) {
        if !good {
            self.add(field, rule);
        }
    }

    /// One line of visible text, such as a name or a title.
    pub(crate) fn line(&mut self, field: &'static str, text: &str, limit: usize) {
        self.unless(text.chars().any(is_visible), field, "must not be empty");
        self.unless(text.chars().count() <= limit, field, "is too long");
        self.unless(!text.chars().any(is_deceptive), field, "must not contain control characters");
    }

    pub(crate) fn post(&mut self, post: &Post, limits: &Limits) -> Result<(), Refusal> {
        fits(&post.text, limits.message_characters)?;
        let has_content = !post.text.trim().is_empty() || !post.attachments.is_empty();
        self.unless(has_content, "content", "must not be empty");
        self.unless(post.mentions.len() <= 50, "mentions", "at most 50");
        self.unless(post.attachments.len() <= limits.attachments, "attachmentIds", "too many attachments");
        self.client_message_id(post.client_message_id.as_deref());
        Ok(())
    }

    pub(crate) fn client_message_id(&mut self, id: Option<&str>) {
        let fits = id.is_none_or(|id| (1..=128).contains(&id.len()));
        self.unless(fits, "clientMessageId", "must have 1 to 128 characters");
    }

    /// Source of a message from outside, and its id there.
    pub(crate) fn origin(&mut self, source: &str, external_id: Option<&str>) {
        self.line("source", source, 100);
        let fits = external_id.is_none_or(|id| (1..=500).contains(&id.len()));
        self.unless(fits, "externalId", "must have 1 to 500 characters");
    }

    pub(crate) fn into_result(self) -> Result<(), Refusal> {
        if self.0.is_empty() { Ok(()) } else { Err(Refusal::Invalid(self.0)) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_name_is_visible_and_has_no_direction_marks() {
        let is_valid = |name: &str| {
            let mut field_errors = FieldErrors::default();
            field_errors.line("name", name, 100);
            field_errors.into_result().is_ok()
        };
        for good in ["Ada", "شبكه\u{200c}های", "क्\u{200d}ष", "\u{2764}\u{fe0f}"] {
            assert!(is_valid(good), "{good:?}");
        }
        for bad in
            ["", " ", "\u{200b}\u{200b}", "\u{3164}", "\u{2800}", "A\u{200f}da", "A\u{202e}da", "A\u{2028}da"]
        {
            assert!(!is_valid(bad), "{bad:?}");
        }
    }
}
