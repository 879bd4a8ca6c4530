//! The Ably protocol with a hub in the test process: rooms over several protocols, the recorded frames of the
//! Jaibber SDK, and hostile clients. Tests with the unmodified `ably` package are in `web/ably`.

mod agents;
mod credentials;
mod crossing;
mod hostile;
mod jaibber_invites;
mod jaibber_rest;
mod one_room;
mod replay;
mod rest;
mod resumes;
mod strangers;

use parlor_testkit::ably::{Ably, object_of};
use parlor_testkit::rest::RestClient;
use parlor_wire::ably::frames::{Format, Message};
use serde_json::{Value, json};

/// A token of this user for its rooms.
pub async fn token(user: &RestClient) -> String {
    let details = user.post("/api/ably/token", json!({})).await.unwrap();
    assert_eq!(details.status, 200, "{details:?}");
    details.body["token"].as_str().unwrap().to_owned()
}

/// Connects a client of this user, as the Jaibber SDK does.
pub async fn connect(user: &RestClient, format: Format) -> Ably {
    let query = [("access_token", &*token(user).await), ("clientId", user.user_id())];
    Ably::connect(user.url(), format, &query).await.unwrap()
}

/// Creates a key with this capability, as an admin; returns it as `app.key:secret`.
pub async fn key(admin: &RestClient, capability: Value) -> String {
    let body = json!({ "name": "tests", "scopes": [], "capability": capability.to_string() });
    let created = admin.post("/api/keys", body).await.unwrap().data().unwrap();
    created["key"].as_str().unwrap().to_owned()
}

/// Connects a client with a key.
pub async fn with_key(url: &str, key: &str, format: Format) -> Ably {
    Ably::connect(url, format, &[("key", key)]).await.unwrap()
}

/// Channel of a room.
pub fn project(room: &str) -> String {
    format!("jaibber:project:{room}")
}

/// Data of a message of a person in a project channel.
pub fn chat(user: &RestClient, name: &str, room: &str, text: &str, id: &str) -> Value {
    json!({
        "from": user.user_id(), "fromUsername": name, "projectId": room, "text": text, "messageId": id,
        "type": "message",
    })
}

/// Texts of the chat messages, without signals and tasks.
pub fn texts(messages: &[Message<'_>]) -> Vec<String> {
    let objects = messages.iter().map(object_of);
    let posted = |data: &Value| ["message", "response"].iter().any(|kind| data["type"] == *kind);
    objects.filter(posted).map(|data| data["text"].as_str().unwrap().to_owned()).collect()
}
