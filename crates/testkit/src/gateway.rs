//! A gateway client on `/ws/gateway` for tests. It sends the frames of `parlor-wire`, whose bytes golden lines pin,
//! and reads the hub's frames as plain JSON.

use std::borrow::Cow;
use std::ops::{Deref, DerefMut};

use anyhow::{Result, ensure};
use parlor_wire::agentim::gateway::frames::GatewayFrame;
use parlor_wire::agentim::gateway::frames::gateway::{
    Auth, Chunk, Device, MessageChunk, MessageComplete, Ping, RegisterAgent, RegisteredAgent,
};
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
        let agent = RegisteredAgent {
            id: id.into(),
            name: name.into(),
            kind: "claude-code".into(),
            working_directory: Some("/tmp".into()),
            capabilities: Some(vec!["code".into()]),
            model: None,
            slash_commands: None,
            mcp_servers: None,
        };
        self.send(&GatewayFrame::RegisterAgent(RegisterAgent { agent })).await?;
        self.settled().await
    }

    /// Waits until the hub has processed all frames sent so far. It processes frames in order, so the reply
    /// to a ping proves it.
    pub async fn settled(&mut self) -> Result<()> {
        let ts = std::time::UNIX_EPOCH.elapsed()?.as_nanos() as u64;
        self.send(&GatewayFrame::Ping(Ping { ts: ts.into() })).await?;
        let pong = |frame: &Value| frame["type"] == "server:pong" && frame["ts"] == ts;
        self.wait_for(TEST_TIMEOUT, pong).await.map(drop)
    }

    /// Waits for the next run of any agent.
    pub async fn turn(&mut self) -> Result<Value> {
        self.wait_for_type("server:send_to_agent").await
    }

    pub async fn chunk(&mut self, turn: &Value, reply: &str, kind: &str, content: &str) -> Result<()> {
        let frame = GatewayFrame::MessageChunk(MessageChunk {
            room_id: Some(field(turn, "roomId")),
            session_id: None,
            agent_id: field(turn, "agentId"),
            message_id: reply.into(),
            run_id: None,
            target_agent_name: None,
            chunk: Chunk { kind: kind.into(), content: content.into(), metadata: None },
        });
        self.send(&frame).await
    }

    pub async fn complete(&mut self, turn: &Value, reply: &str, content: &str) -> Result<()> {
        let frame = GatewayFrame::MessageComplete(MessageComplete {
            room_id: Some(field(turn, "roomId")),
            session_id: None,
            agent_id: field(turn, "agentId"),
            message_id: reply.into(),
            run_id: None,
            target_agent_name: None,
            full_content: Some(content.into()),
            chunks: None,
            conversation_id: turn["conversationId"].as_str().map(Into::into),
            depth: turn["depth"].as_u64().and_then(|depth| depth.try_into().ok()),
            outcome: None,
            reason: None,
        });
        self.send(&frame).await
    }

    pub async fn status(&mut self, agent: &str, status: &str) -> Result<()> {
        self.send(&json!({ "type": "gateway:agent_status", "agentId": agent, "status": status })).await
    }
}

/// Text of a field of a frame from the hub; empty if absent.
fn field<'a>(frame: &'a Value, name: &str) -> Cow<'a, str> {
    frame[name].as_str().unwrap_or_default().into()
}

/// Returns a `gateway:auth` frame.
pub fn auth(token: &str, id: &str) -> Value {
    let device = Device {
        hostname: "test-machine".into(),
        platform: "linux".into(),
        arch: "x64".into(),
        node_version: "v22.0.0".into(),
    };
    let frame = GatewayFrame::Auth(Auth {
        token: token.into(),
        gateway_id: id.into(),
        protocol_version: Some("1".into()),
        device_info: Some(device),
        ephemeral: None,
        parlor: None,
    });
    serde_json::to_value(frame).expect("a frame consists of texts")
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
