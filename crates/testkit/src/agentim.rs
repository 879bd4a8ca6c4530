//! A user's client on `/ws/client` for tests.

use std::ops::{Deref, DerefMut};

use anyhow::{Result, ensure};
use parlor_wire::agentim::frames::ClientFrame;
use parlor_wire::agentim::frames::client::{Auth, JoinRoom, SendMessage};
use serde_json::Value;

use crate::rest::{RestClient, text};
use crate::socket::{Socket, TEST_TIMEOUT};

/// A client connection; it dereferences to [`Socket`].
pub struct Client(pub Socket);

/// Acknowledgement of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    pub client_message_id: String,
    pub message_id: String,
    pub seq: u64,
    pub epoch: String,
}

/// Result of joining a room from a position.
#[derive(Debug)]
pub struct Joined {
    /// Messages since the position, in order; empty after a resync.
    pub missed: Vec<Value>,
    pub position: String,
    /// Whether the hub could not resume from the position, so that the client must reload the history.
    pub resync: bool,
}

impl Client {
    /// Connects without authenticating. Every received frame is checked with [`check_frame`].
    pub async fn open(url: &str) -> Result<Self> {
        Ok(Self(Socket::open(url, "/ws/client", &[]).await?.hold_to(check_frame)))
    }

    /// Connects and authenticates.
    pub async fn connect(person: &RestClient) -> Result<Self> {
        let mut client = Self::open(person.url()).await?;
        let auth = Auth { token: person.token().into(), protocol_version: None };
        client.send(&ClientFrame::Auth(auth)).await?;
        let result = client.wait_for_type("server:auth_result").await?;
        ensure!(result["ok"] == true, "not authenticated: {result}");
        Ok(client)
    }

    /// Joins a room without replay and returns the current position.
    pub async fn join(&mut self, room: &str) -> Result<String> {
        Ok(self.join_since(room, "now").await?.position)
    }

    /// Joins a room and receives the messages since a position.
    pub async fn join_since(&mut self, room: &str, since: &str) -> Result<Joined> {
        let join = JoinRoom { room_id: room.into(), since: Some(since.into()) };
        self.send(&ClientFrame::JoinRoom(join)).await?;
        let mut missed = Vec::new();
        loop {
            let of_this_room = |frame: &Value| match frame["type"].as_str() {
                Some("server:room_joined" | "server:resync") => frame["roomId"] == room,
                Some("server:new_message") => frame["message"]["roomId"] == room,
                Some("server:error") => true,
                _ => false,
            };
            let frame = self.wait_for(TEST_TIMEOUT, of_this_room).await?;
            match frame["type"].as_str() {
                Some("server:new_message") => missed.push(frame),
                Some("server:error") => anyhow::bail!("not joined: {frame}"),
                kind => {
                    let position = text(&frame, "/position")?;
                    return Ok(Joined { missed, position, resync: kind == Some("server:resync") });
                }
            }
        }
    }

    pub async fn say(&mut self, room: &str, content: &str, client_message_id: &str) -> Result<()> {
        self.send(&message(room, content, client_message_id)).await
    }

    /// Sends a message and waits for its acknowledgement; a refusal is an error.
    pub async fn say_and_wait(&mut self, room: &str, content: &str, client_message_id: &str) -> Result<Ack> {
        self.say(room, content, client_message_id).await?;
        let answers = |frame: &Value| {
            matches!(frame["type"].as_str(), Some("server:message_ack" | "server:error"))
                && frame["clientMessageId"] == client_message_id
        };
        let answer = self.wait_for(TEST_TIMEOUT, answers).await?;
        Ack::of(&answer)?.ok_or_else(|| anyhow::anyhow!("refused: {answer}"))
    }
}

/// Checks what real clients require of every frame: no `null` values, and all lists of a message present.
pub fn check_frame(frame: &Value) -> Result<()> {
    let kind = frame["type"].as_str().unwrap_or_default();
    ensure!(kind.starts_with("server:"), "no type");
    // Chat events inside a frame keep their own format, which allows `null`; only clients that subscribe get
    // them.
    ensure!(frame["type"] == "server:event" || !has_null(frame), "null");
    match kind {
        "server:new_message" | "server:message_edited" => {
            for list in ["mentions", "attachments", "reactions"] {
                ensure!(frame["message"][list].is_array(), "no {list}");
            }
            let edited = frame["message"].get("editedAt").is_some();
            ensure!(edited == frame["message"].get("updatedAt").is_some(), "editedAt without updatedAt");
            ensure!(edited || kind == "server:new_message", "an edited message without editedAt");
        }
        "server:reaction_update" => {
            for reaction in frame["reactions"].as_array().into_iter().flatten() {
                let count = |list: &str| reaction[list].as_array().map(Vec::len);
                ensure!(count("userIds").is_some_and(|ids| ids > 0), "a reaction without users");
                ensure!(count("userIds") == count("usernames"), "user IDs without usernames");
            }
        }
        "server:error" => {
            ensure!(frame["code"].is_string() && frame["message"].is_string(), "no code or no message");
        }
        _ => {}
    }
    Ok(())
}

fn has_null(value: &Value) -> bool {
    match value {
        Value::Null => true,
        Value::Array(items) => items.iter().any(has_null),
        Value::Object(fields) => fields.values().any(has_null),
        _ => false,
    }
}

/// Returns a `client:send_message` frame.
pub fn message(room: &str, content: &str, client_message_id: &str) -> Value {
    let frame = ClientFrame::SendMessage(SendMessage {
        room_id: room.into(),
        content: content.into(),
        mentions: None,
        reply_to_id: None,
        attachment_ids: None,
        client_message_id: Some(client_message_id.into()),
    });
    serde_json::to_value(frame).expect("a frame consists of texts")
}

impl Ack {
    /// Parses an acknowledgement. Returns `None` for any other frame.
    pub fn of(frame: &Value) -> Result<Option<Self>> {
        if frame["type"] != "server:message_ack" {
            return Ok(None);
        }
        Ok(Some(Self {
            client_message_id: text(frame, "/clientMessageId")?,
            message_id: text(frame, "/messageId")?,
            seq: text(frame, "/seq")?.parse()?,
            epoch: text(frame, "/epoch")?,
        }))
    }
}

impl Deref for Client {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.0
    }
}

impl DerefMut for Client {
    fn deref_mut(&mut self) -> &mut Socket {
        &mut self.0
    }
}
