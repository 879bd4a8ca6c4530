//! Tests of chat events: the stream, the same events over `/ws/client`, and the REST calls for runs.

mod access;
mod busy;
mod fields;
mod missions;
mod plans;
mod questions;
mod resuming;
mod roots;
mod socket;
mod syncs;
mod table;
mod turns;

use anyhow::{Result, ensure};
use jsonschema::Validator;
use parlor_testkit::events::EventReader;
use parlor_testkit::rest::RestClient;
use serde_json::Value;
use std::sync::LazyLock;

static SCHEMA: LazyLock<Validator> = LazyLock::new(|| {
    let schema = include_str!("../../../../docs/protocols/chat-events.schema.json");
    jsonschema::draft202012::new(&serde_json::from_str(schema).unwrap()).unwrap()
});

/// Checks an event against the documented JSON schema. Every stream of these tests applies it to all events.
fn check_schema(event: &Value) -> Result<()> {
    let errors: Vec<String> = SCHEMA.iter_errors(event).map(|error| error.to_string()).collect();
    ensure!(errors.is_empty(), "{errors:?}");
    Ok(())
}

/// Opens a stream of this user and waits until it is live.
async fn live(user: &RestClient) -> EventReader {
    EventReader::live(user, "").await.unwrap().hold_to(check_schema)
}

/// Opens a stream of this user that resumes from a position.
async fn resumed(user: &RestClient, position: &str) -> EventReader {
    EventReader::open(user, "", Some(position)).await.unwrap().hold_to(check_schema)
}

/// Opens a stream with a filter; it resumes from `last`, or starts with live events if `last` is `None`.
async fn filtered(user: &RestClient, query: &str, last: Option<&str>) -> EventReader {
    let stream = match last {
        Some(_) => EventReader::open(user, query, last).await,
        None => EventReader::live(user, query).await,
    };
    stream.unwrap().hold_to(check_schema)
}

/// Returns the texts of all chat messages among these events.
fn texts(events: &[Value]) -> Vec<&str> {
    let chat = events.iter().filter(|message| message["kind"] == "message" && message.get("phase").is_none());
    chat.map(|message| message["text"].as_str().unwrap()).collect()
}
