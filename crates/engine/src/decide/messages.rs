//! Parts of the commands that post a message and have no file of their own yet.

use super::{EffectsBuilder, runs};
use crate::commands::messages::recipients;
use parlor_model::Message;
use parlor_model::command::Posted;
use std::sync::Arc;

/// Posts a message and creates runs for the agents that it addresses.
pub fn post_and_start_runs(message: Message, effects_builder: &mut EffectsBuilder) -> Posted {
    let posted = post(message, effects_builder);
    if let Some(message) = &posted.message {
        runs::create_runs(message, None, None, effects_builder);
    }
    posted
}

/// Posts a message, with its deliveries to mailboxes.
pub fn post(message: Message, effects_builder: &mut EffectsBuilder) -> Posted {
    let facts = effects_builder.facts;
    let deliveries = recipients::deliveries(&message, &facts.recipients, &[]);
    recipients::put_message(Arc::new(message), deliveries, None, effects_builder)
}
