//! A broker client on `/ws/broker` for tests.

use std::ops::{Deref, DerefMut};

use anyhow::{Context, Result, ensure};
use serde_json::{Value, json};

use crate::rest::text;
use crate::socket::{Socket, TEST_TIMEOUT};

/// An authenticated broker connection; it dereferences to [`Socket`].
pub struct Broker {
    socket: Socket,
    requests: u64,
}

impl Broker {
    /// Connects and authenticates with a token or an API key.
    pub async fn connect(url: &str, token: &str) -> Result<Self> {
        let mut broker = Self { socket: Socket::open(url, "/ws/broker", &[]).await?, requests: 0 };
        broker.ok(json!({ "type": "auth", "token": token })).await?;
        Ok(broker)
    }

    /// Sends a frame with a new `reqId` and returns the reply to it, `….ok` or `….error`.
    pub async fn ask(&mut self, mut frame: Value) -> Result<Value> {
        self.requests += 1;
        let request = format!("r{}", self.requests);
        frame["reqId"] = json!(request);
        self.socket.send(&frame).await?;
        let reply = self.socket.wait_for(TEST_TIMEOUT, |reply| reply["reqId"] == request.as_str()).await;
        reply.with_context(|| format!("no reply to {frame}"))
    }

    /// Like [`Broker::ask`], but any reply other than the `….ok` of this frame is an error.
    pub async fn ok(&mut self, frame: Value) -> Result<Value> {
        let expected = format!("{}.ok", text(&frame, "/type")?);
        let reply = self.ask(frame).await?;
        ensure!(reply["type"] == expected.as_str(), "no {expected}: {reply}");
        Ok(reply)
    }

    pub async fn create_agent(&mut self, id: &str, subscriptions: &[&str]) -> Result<Value> {
        let config = json!({ "subscriptions": subscriptions });
        self.ok(json!({ "type": "agent.create", "id": id, "config": config })).await
    }

    pub async fn route(&mut self, from: &str, path: &str, payload: Value) -> Result<Value> {
        self.ok(json!({ "type": "msg.route", "from": from, "path": path, "payload": payload })).await
    }

    pub async fn listen(&mut self, agent: &str) -> Result<Value> {
        self.ok(json!({ "type": "msg.listen", "agentId": agent })).await
    }

    pub async fn receive(&mut self, agent: &str) -> Result<Vec<Value>> {
        let reply = self.ok(json!({ "type": "msg.receive", "agentId": agent })).await?;
        Ok(reply["messages"].as_array().context("messages")?.clone())
    }

    /// Waits for the next `msg.push` and returns its message.
    pub async fn pushed(&mut self) -> Result<Value> {
        Ok(self.socket.wait_for_type("msg.push").await?["message"].clone())
    }
}

impl Deref for Broker {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.socket
    }
}

impl DerefMut for Broker {
    fn deref_mut(&mut self) -> &mut Socket {
        &mut self.socket
    }
}
