//! Parts of the commands that post a message and have no file of their own yet.

use super::{EffectsBuilder, runs};
use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::commands::messages::recipients;
use parlor_model::command::Posted;
use parlor_model::{Message, Refusal};
use std::sync::Arc;

/// The receipt of the first request, if this is a retry; a refusal, if the key was used for a different
/// request.
pub fn first_receipt(effects_builder: &EffectsBuilder) -> Result<Option<Posted>, Refusal> {
    IdempotencyCheck::first_receipt(effects_builder.facts.once.as_ref(), effects_builder)
}

/// Posts a message and creates runs for the agents that it addresses.
pub fn post_and_start_runs(message: Message, effects_builder: &mut EffectsBuilder) -> Posted {
    let posted = post(message, effects_builder);
    if let Some(message) = &posted.message {
        runs::create_runs(message, None, None, effects_builder);
    }
    posted
}

/// Posts a message, with its deliveries to mailboxes, and stores its idempotency key.
pub fn post(message: Message, effects_builder: &mut EffectsBuilder) -> Posted {
    let facts = effects_builder.facts;
    let deliveries = recipients::deliveries(&message, &facts.recipients, &facts.observers);
    recipients::put_message(Arc::new(message), deliveries, facts.once.as_ref(), effects_builder)
}
