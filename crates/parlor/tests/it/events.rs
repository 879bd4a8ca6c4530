//! Chat events: the stream, and talking to agents over plain HTTP.

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

static FORM: LazyLock<Validator> = LazyLock::new(|| {
    let form = include_str!("../../../../docs/protocols/chat-events.schema.json");
    jsonschema::draft202012::new(&serde_json::from_str(form).unwrap()).unwrap()
});

/// Everything that a test reads is of the form that is documented.
fn is_lawful(message: &Value) -> Result<()> {
    let flaws: Vec<String> = FORM.iter_errors(message).map(|flaw| flaw.to_string()).collect();
    ensure!(flaws.is_empty(), "{flaws:?}");
    Ok(())
}

/// A stream of this person that is live.
async fn live(person: &RestClient) -> EventReader {
    EventReader::live(person, "").await.unwrap().hold_to(is_lawful)
}

/// A stream that goes on from a position.
async fn resumed(person: &RestClient, position: &str) -> EventReader {
    EventReader::open(person, "", Some(position)).await.unwrap().hold_to(is_lawful)
}

/// A stream of what is wanted only, that is live; or goes on from `last`.
async fn filtered(person: &RestClient, query: &str, last: Option<&str>) -> EventReader {
    let stream = match last {
        Some(_) => EventReader::open(person, query, last).await,
        None => EventReader::live(person, query).await,
    };
    stream.unwrap().hold_to(is_lawful)
}

/// The texts of the messages among these.
fn texts(messages: &[Value]) -> Vec<&str> {
    let said =
        messages.iter().filter(|message| message["kind"] == "message" && message.get("phase").is_none());
    said.map(|message| message["text"].as_str().unwrap()).collect()
}
