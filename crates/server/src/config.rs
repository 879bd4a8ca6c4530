//! What the listeners need to know; `None` is no limit.

use crate::http::forwarded::Network;
use crate::models::Models;
use parlor_engine::fanout::OutboxLimits;
use parlor_wire::agentim::ingress::FrameLimits;
use parlor_wire::agentim::rest::Limit;
use std::sync::Arc;
use std::time::Duration;

#[derive(Clone)]
pub struct Config {
    pub token_secret: Vec<u8>,
    pub access_token_ttl: Duration,
    pub refresh_token_ttl: Duration,
    pub refresh_grace: Duration,
    pub lockout_failures: u32,
    pub lockout: Duration,
    pub auth_timeout: Duration,
    /// How long a WebSocket waits for its peer to close, after the hub has sent its close frame.
    pub close_timeout: Duration,
    pub login_per_minute: Option<u32>,
    pub refresh_per_minute: Option<u32>,
    /// Of one person, or of one address that nobody signed in from.
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
    /// Of any kind, before they become a socket.
    pub connections_per_address: Option<usize>,
    /// Who is believed about whom it speaks for.
    pub trusted_proxies: Vec<Network>,
    pub frames: FrameLimits,
    pub gateway_frames: FrameLimits,
    pub outbox: OutboxLimits,
    /// Full origins, such as `https://chat.example.org`.
    pub allowed_origins: Vec<String>,
    /// Host names with or without a port.
    pub allowed_hosts: Vec<String>,
    /// The largest file, in bytes.
    pub upload_bytes: u64,
    /// The largest picture of a person, in bytes.
    pub avatar_bytes: u64,
    /// Where people reach this hub, without a slash at the end.
    pub public_url: Option<String>,
    pub secure_cookies: bool,
    /// What is told of limits, those of the engine too.
    pub limits: Vec<Limit>,
    /// When the last backup was made, in seconds since 1970, if one was.
    pub last_backup: Arc<dyn Fn() -> Option<u64> + Send + Sync>,
    pub models: Arc<dyn Models>,
}
