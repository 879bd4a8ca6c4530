//! Stateless validation of commands and queries: lengths, ranges and formats. The first step of the write
//! pipeline; needs neither the caller nor the store.

use crate::Limits;
use parlor_model::characters::{is_deceptive, is_visible};
use parlor_model::{Field, FieldError, GatewayRequest, Origin, Post, Refusal};

/// Maximum bytes of the connection, the client id and the unknown fields of a published message.
const MAX_ORIGIN_BYTES: usize = 64 * 1024;

/// Validates a request to a gateway.
pub fn validate_gateway_request(gateway_request: &GatewayRequest) -> Result<(), Refusal> {
    let mut field_errors = FieldErrors::default();
    // Requests about credentials are validated by the gateway itself.
    if let GatewayRequest::Spawn(spawn) = gateway_request {
        field_errors.line(Field::SpawnKind, &spawn.kind, 64);
        field_errors.line(Field::Name, &spawn.name, 100);
        if let Some(folder) = &spawn.working_directory {
            field_errors.line(Field::WorkingDirectory, folder, 4096);
        }
        if let Some(credential) = &spawn.credential {
            field_errors.line(Field::Credential, credential, 100);
        }
    }
    field_errors.into_result()
}

/// The rules that a new password violates; empty if it is acceptable. The password itself never enters a
/// command.
pub fn password_errors(password: &str) -> Vec<FieldError> {
    let mut field_errors = FieldErrors::default();
    let length = password.chars().count();
    field_errors.unless(length >= 8, Field::Password, "must have at least 8 characters");
    field_errors.unless(length <= 128, Field::Password, "must have at most 128 characters");
    field_errors.unless(
        password.chars().any(char::is_lowercase),
        Field::Password,
        "needs a lower-case letter",
    );
    field_errors.unless(
        password.chars().any(char::is_uppercase),
        Field::Password,
        "needs an upper-case letter",
    );
    field_errors.unless(password.chars().any(|c| c.is_ascii_digit()), Field::Password, "needs a digit");
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
    pub(crate) fn add(&mut self, field: Field, rule: &'static str) {
        self.0.push(FieldError { field, rule: rule.into() });
    }

    pub(crate) fn unless(&mut self, good: bool, field: Field, rule: &'static str) {
        if !good {
            self.add(field, rule);
        }
    }

    /// One line of visible text, such as a name or a title.
    pub(crate) fn line(&mut self, field: Field, text: &str, limit: usize) {
        self.unless(text.chars().any(is_visible), field, "must not be empty");
        self.unless(text.chars().count() <= limit, field, "is too long");
        self.unless(!text.chars().any(is_deceptive), field, "must not contain control characters");
    }

    pub(crate) fn post(&mut self, post: &Post, limits: &Limits) -> Result<(), Refusal> {
        self.content(&post.text, &post.attachments, limits)?;
        self.unless(post.mentions.len() <= 50, Field::Mentions, "at most 50");
        self.attachments(&post.attachments, limits);
        self.client_message_id(post.client_message_id.as_deref());
        self.publication(post.origin.as_deref());
        let claimed = post.author.as_ref().map_or(0, |author| author.claimed_chain.len());
        self.unless(claimed <= 50, Field::Agents, "at most 50");
        Ok(())
    }

    /// Text of a message with these attachments.
    pub(crate) fn content(
        &mut self,
        text: &str,
        attachments: &[Box<str>],
        limits: &Limits,
    ) -> Result<(), Refusal> {
        fits(text, limits.message_characters)?;
        let has_content = !text.trim().is_empty() || !attachments.is_empty();
        self.unless(has_content, Field::Text, "must not be empty");
        Ok(())
    }

    pub(crate) fn attachments(&mut self, attachments: &[Box<str>], limits: &Limits) {
        self.unless(attachments.len() <= limits.attachments, Field::Attachments, "too many attachments");
    }

    pub(crate) fn client_message_id(&mut self, id: Option<&str>) {
        let fits = id.is_none_or(|id| (1..=128).contains(&id.len()));
        self.unless(fits, Field::ClientMessageId, "must have 1 to 128 characters");
    }

    /// Connection that publishes a message.
    pub(crate) fn publication(&mut self, origin: Option<&Origin>) {
        let fits = origin.is_none_or(|origin| origin.length() <= MAX_ORIGIN_BYTES);
        self.unless(fits, Field::Payload, "is too long");
    }

    /// Source of a message from outside, and its id there.
    pub(crate) fn origin(&mut self, source: &str, external_id: Option<&str>) {
        self.line(Field::Source, source, 100);
        let fits = external_id.is_none_or(|id| (1..=500).contains(&id.len()));
        self.unless(fits, Field::ExternalId, "must have 1 to 500 characters");
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
            field_errors.line(Field::Name, name, 100);
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
