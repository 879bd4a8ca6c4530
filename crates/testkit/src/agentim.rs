//! A person's client on `/ws/client`, for tests.

use std::ops::{Deref, DerefMut};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::rest::{Rest, text};
use crate::socket::{PATIENCE, Socket};

/// A signed-in connection; everything a [`Socket`] can do it can do too.
pub struct Client(pub Socket);

/// The acknowledgement of one message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Ack {
    pub client_message_id: String,
    pub message_id: String,
    pub seq: u64,
    pub epoch: String,
}

/// What a join with a position brought.
#[derive(Debug)]
pub struct Joined {
    /// The messages since the position, in order; empty after a resync.
    pub missed: Vec<Value>,
    pub position: String,
    /// The hub could not say what was missed: read the history.
    pub resync: bool,
}

impl Client {
    /// Connects and authenticates.
    pub async fn connect(person: &Rest) -> Result<Self> {
        let mut client = Self(Socket::open(person.url(), "/ws/client", &[]).await?);
        client.send(&json!({ "type": "client:auth", "token": person.token() })).await?;
        let result = client.wait_for_type("server:auth_result").await?;
        ensure!(result["ok"] == true, "not authenticated: {result}");
        Ok(client)
    }

    /// Joins a room from now on; returns the position.
    pub async fn join(&mut self, room: &str) -> Result<String> {
        Ok(self.join_since(room, "now").await?.position)
    }

    /// Joins a room and takes what was missed since a position.
    pub async fn join_since(&mut self, room: &str, since: &str) -> Result<Joined> {
        self.send(&json!({ "type": "client:join_room", "roomId": room, "since": since })).await?;
        let mut missed = Vec::new();
        loop {
            let of_this_room = |frame: &Value| match frame["type"].as_str() {
                Some("server:room_joined" | "server:resync") => frame["roomId"] == room,
                Some("server:new_message") => frame["message"]["roomId"] == room,
                Some("server:error") => true,
                _ => false,
            };
            let frame = self.wait_for(PATIENCE, of_this_room).await?;
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
    pub async fn say_acked(&mut self, room: &str, content: &str, client_message_id: &str) -> Result<Ack> {
        self.say(room, content, client_message_id).await?;
        let answers = |frame: &Value| {
            matches!(frame["type"].as_str(), Some("server:message_ack" | "server:error"))
                && frame["clientMessageId"] == client_message_id
        };
        let answer = self.wait_for(PATIENCE, answers).await?;
        Ack::of(&answer)?.ok_or_else(|| anyhow::anyhow!("refused: {answer}"))
    }
}

/// A `client:send_message` frame.
pub fn message(room: &str, content: &str, client_message_id: &str) -> Value {
    json!({
        "type": "client:send_message",
        "roomId": room,
        "content": content,
        "clientMessageId": client_message_id,
    })
}

impl Ack {
    /// Reads an acknowledgement; `None` for every other frame.
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
