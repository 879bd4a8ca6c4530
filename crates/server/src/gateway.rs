//! AgentIM protocol for gateways, which host agents: the WebSocket connections of `/ws/gateway`, and agents in
//! this process.

mod agents;
mod host_commands;
mod local;

pub use local::host_locally;

use crate::App;
use crate::agentim::closing;
use crate::auth;
use crate::connection::peer::Peer;
use crate::connection::protocol::{Protocol, Reply};
use crate::connection::upgrade::upgrade;
use crate::connection::{SocketMessage, frame, session_loop};
use crate::encoders::{Encoder, GATEWAY};
use crate::http::problem::Problem;
use agents::GatewayAgents;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use parlor_engine::feed::{DisconnectReason, Encoding, Outbox};
use parlor_engine::runs::{Host, HostCommand};
use parlor_model::{EntityKind, Refusal};
use parlor_wire::agentim::egress as common;
use parlor_wire::agentim::gateway::egress;
use parlor_wire::agentim::gateway::ingress::{self, Auth, GatewayMessage};
use parlor_wire::agentim::ingress::FrameError;
use std::sync::Arc;

/// Maximum bytes of a message. A larger one ends the connection; one above `gateway_frames` only is rejected.
const MAX_MESSAGE_BYTES: usize = 12 * 1024 * 1024;

/// Encoder of gateways: they receive commands for their agents, and no items.
pub struct GatewayEncoder;

impl Encoder for GatewayEncoder {
    fn disconnect(&self, reason: DisconnectReason) -> Bytes {
        closing::disconnect_frame(reason, "The client reads too slowly")
    }
}

pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let shared = app.clone();
    upgrade(&app, request, move |upgraded| session_loop::run(shared, upgraded, Gateway::default(), None))
}

/// State of one gateway connection.
#[derive(Default)]
struct Gateway {
    /// `None` until the gateway has authenticated.
    agents: Option<GatewayAgents>,
}

impl Protocol for Gateway {
    type Request = GatewayMessage;
    type ParseError = FrameError;

    fn encoding(&self) -> Encoding {
        GATEWAY
    }

    fn max_message_bytes(_: &App) -> usize {
        MAX_MESSAGE_BYTES
    }

    fn parse(&self, app: &App, message: &SocketMessage) -> Result<GatewayMessage, FrameError> {
        match message {
            SocketMessage::Text(text) => ingress::read(text, &app.config.gateway_frames),
            SocketMessage::Binary(_) => Err(FrameError::Unknown),
        }
    }

    // No request is pipelined: a frame about an agent must follow its registration.
    async fn handle(&mut self, peer: &mut Peer, message: GatewayMessage) -> Reply {
        match (message, &self.agents) {
            (GatewayMessage::Ping { ts }, _) => return Reply::text(&common::pong(&ts)),
            (GatewayMessage::Auth(auth), _) => self.authenticate(peer, auth).await,
            (_, None) => peer.close(1008, "Not authenticated"),
            (message, Some(agents)) => {
                if let Err(refusal) = agents.handle(&peer.app, message).await {
                    return Reply::text(&egress::refusal(&refusal));
                }
            }
        }
        Reply::None
    }

    fn unreadable(&self, error: FrameError) -> Bytes {
        let (code, words) = error.words();
        frame::text(&common::error(code, words))
    }

    fn too_large(&self) -> Option<Bytes> {
        Some(self.unreadable(FrameError::TooLarge))
    }

    async fn end(self, peer: &Peer) {
        if let Some(agents) = self.agents {
            agents.end(&peer.app).await;
        }
    }
}

impl Gateway {
    async fn authenticate(&mut self, peer: &mut Peer, auth: Auth) {
        if !closing::check_version(peer, "gateway", auth.version.as_deref()) {
            return;
        }
        let error = match self.sign_in(peer, auth).await {
            Ok(()) => return,
            Err(Refusal::TooManyConnections) => "Too many gateway connections",
            Err(Refusal::AtCapacity | Refusal::Unavailable) => "Server at capacity",
            Err(Refusal::BelongsToAnother(EntityKind::Gateway)) => "Gateway ID belongs to another user",
            Err(_) => "Authentication failed",
        };
        peer.sign_in_failed(&egress::not_authenticated(error));
    }

    async fn sign_in(&mut self, peer: &mut Peer, auth: Auth) -> Result<(), Refusal> {
        let caller = auth::caller(&peer.app, &auth.token).await?;
        let greeting = frame::text(&egress::authenticated());
        if peer.has_signed_in_as(&caller).await? {
            peer.outbox.push(greeting);
            return Ok(());
        }
        let host = Arc::new(SocketHost { outbox: peer.outbox.clone() });
        let agents = GatewayAgents::begin(&peer.app, caller.clone(), auth, host).await?;
        match peer.admit(caller, greeting).await {
            Ok(_) => {
                self.agents = Some(agents);
                Ok(())
            }
            Err(refusal) => {
                agents.end(&peer.app).await;
                Err(refusal)
            }
        }
    }
}

/// Gateway behind a WebSocket: commands of the engine are sent as frames.
struct SocketHost {
    outbox: Arc<Outbox>,
}

impl Host for SocketHost {
    fn send(&self, command: HostCommand) {
        self.outbox.push(frame::text(&host_commands::encode(&command)));
    }
}
