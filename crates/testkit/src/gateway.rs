//! A gateway client on `/ws/gateway` for tests, implemented from the protocol document alone.

use std::ops::{Deref, DerefMut};

use anyhow::{Result, ensure};
use serde_json::{Value, json};

use crate::agentim::check_frame;
use crate::rest::RestClient;
use crate::socket::{Socket, TEST_TIMEOUT};

/// A gateway connection; it dereferences to [`Socket`].
pub struct Gateway(pub Socket);

impl Gateway {
    /// Connects without authenticating. Every received frame is checked with [`check_frame`].
    pub async fn open(url: &str) -> Result<Self> {
        Ok(Self(Socket::open(url, "/ws/gateway", &[]).await?.hold_to(check_frame)))
    }

    /// Connects and authenticates as a gateway of this user.
    pub async fn connect(person: &RestClient, id: &str) -> Result<Self> {
        let mut gateway = Self::open(person.url()).await?;
        gateway.send(&auth(person.token(), id)).await?;
        let result = gateway.wait_for_type("server:gateway_auth_result").await?;
        ensure!(result["ok"] == true, "not authenticated: {result}");
        Ok(gateway)
    }

    pub async fn register(&mut self, id: &str, name: &str) -> Result<()> {
        let agent = json!({
            "id": id, "name": name, "type": "claude-code",
            "workingDirectory": "/tmp", "capabilities": ["code"],
        });
        self.send(&json!({ "type": "gateway:register_agent", "agent": agent })).await?;
        self.settled().await
    }

    /// Waits until the hub has processed all frames sent so far. It processes frames in order, so the reply
    /// to a ping proves it.
    pub async fn settled(&mut self) -> Result<()> {
        let ts = std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64;
        self.send(&json!({ "type": "gateway:ping", "ts": ts })).await?;
        let pong = |frame: &Value| frame["type"] == "server:pong" && frame["ts"] == ts;
        self.wait_for(TEST_TIMEOUT, pong).await.map(drop)
    }

    /// Waits for the next run of any agent.
    pub async fn turn(&mut self) -> Result<Value> {
        self.wait_for_type("server:send_to_agent").await
    }

    pub async fn chunk(&mut self, turn: &Value, reply: &str, kind: &str, content: &str) -> Result<()> {
        self.send(&json!({
            "type": "gateway:message_chunk", "roomId": turn["roomId"], "agentId": turn["agentId"],
            "messageId": reply, "chunk": { "type": kind, "content": content },
        }))
        .await
    }

    pub async fn complete(&mut self, turn: &Value, reply: &str, content: &str) -> Result<()> {
        self.send(&json!({
            "type": "gateway:message_complete", "roomId": turn["roomId"], "agentId": turn["agentId"],
            "messageId": reply, "fullContent": content,
            "conversationId": turn["conversationId"], "depth": turn["depth"],
        }))
        .await
    }

    pub async fn status(&mut self, agent: &str, status: &str) -> Result<()> {
        self.send(&json!({ "type": "gateway:agent_status", "agentId": agent, "status": status })).await
    }
}

/// Returns a `gateway:auth` frame.
pub fn auth(token: &str, id: &str) -> Value {
    let device =
        json!({ "hostname": "test-machine", "platform": "linux", "arch": "x64", "nodeVersion": "v22.0.0" });
    json!({ "type": "gateway:auth", "token": token, "gatewayId": id, "deviceInfo": device, "protocolVersion": "1" })
}

impl Deref for Gateway {
    type Target = Socket;

    fn deref(&self) -> &Socket {
        &self.0
    }
}

impl DerefMut for Gateway {
    fn deref_mut(&mut self) -> &mut Socket {
        &mut self.0
    }
}
