//! Configuration of the server. `None` in an optional limit means unlimited.

use crate::http::forwarded::Network;
use crate::models::Models;
use crate::tools::ToolPrograms;
use parlor_engine::feed::OutboxLimits;
use parlor_engine::ports::AgentFolders;
use parlor_wire::agentim::ingress::FrameLimits;
use parlor_wire::agentim::rest::Limit;
use std::sync::Arc;
use std::time::Duration;

/// Limits of connections of the Ably protocol.
#[derive(Clone)]
pub struct AblyLimits {
    /// Maximum size of the messages of one frame, in bytes.
    pub message_bytes: usize,
    /// Maximum frames that one connection may send per `client_window`.
    pub frames: Option<u32>,
    /// Maximum number of attached channels of one connection.
    pub channels: usize,
}

#[derive(Clone)]
pub struct Config {
    pub token_secret: Vec<u8>,
    pub access_token_ttl: Duration,
    pub refresh_token_ttl: Duration,
    pub refresh_grace: Duration,
    pub lockout_failures: u32,
    pub lockout: Duration,
    pub auth_timeout: Duration,
    /// Time without a frame from the client after which the hub pings a WebSocket.
    pub heartbeat: Duration,
    /// Timeout for the peer to close a WebSocket after the hub has sent its close frame.
    pub close_timeout: Duration,
    pub login_per_minute: Option<u32>,
    pub refresh_per_minute: Option<u32>,
    /// Requests per minute per user, or per address for unauthenticated requests.
    pub requests_per_minute: Option<u32>,
    pub passwords_per_minute: Option<u32>,
    pub searches_per_minute: Option<u32>,
    pub uploads_per_minute: Option<u32>,
    pub router_tests_per_minute: Option<u32>,
    pub client_window: Duration,
    pub client_max: Option<u32>,
    pub connections_per_user: Option<usize>,
    pub connections_total: Option<usize>,
    pub unauthenticated_per_address: Option<usize>,
    /// Maximum simultaneous HTTP connections per address. A connection that became a WebSocket no longer
    /// counts.
    pub connections_per_address: Option<usize>,
    /// Proxies whose `X-Forwarded-For` header is trusted.
    pub trusted_proxies: Vec<Network>,
    pub frames: FrameLimits,
    pub ably: AblyLimits,
    pub gateway_frames: FrameLimits,
    pub outbox: OutboxLimits,
    /// Additional origins whose pages may open a WebSocket or use the refresh cookie:
    /// `https://chat.example.org`.
    pub allowed_origins: Vec<String>,
    /// Host names of this hub, with or without a port. Under any other name except `localhost`, a request can
    /// neither open a WebSocket nor use the refresh cookie.
    pub allowed_hosts: Vec<String>,
    /// Maximum size of an uploaded file, in bytes.
    pub upload_bytes: u64,
    /// Maximum size of an avatar, in bytes.
    pub avatar_bytes: u64,
    /// Public base URL of this hub, without a trailing slash.
    pub public_url: Option<String>,
    pub secure_cookies: bool,
    /// Limits that admins see under `/api/limits`, including those of the engine.
    pub limits: Vec<Limit>,
    /// Returns the Unix time of the last backup in seconds, if there is one.
    pub last_backup: Arc<dyn Fn() -> Option<u64> + Send + Sync>,
    pub models: Arc<dyn Models>,
    /// Folders of the agents on the hub's machine.
    pub folders: Arc<dyn AgentFolders>,
    /// Starts the programs that agents call as tools.
    pub tools: Arc<dyn ToolPrograms>,
    /// Base URL of this hub for programs on the same machine, without a trailing slash.
    pub local_url: String,
}
