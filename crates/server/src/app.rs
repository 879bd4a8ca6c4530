//! State shared by all handlers: the hub, its configuration, authentication, limiters and metrics.

use crate::ably::Connections;
use crate::ably::credentials::AblySecrets;
use crate::auth::passwords::Passwords;
use crate::auth::rate_limiter::KeyedRateLimiter;
use crate::auth::seal::Seal;
use crate::auth::second_factor::SecondFactors;
use crate::auth::tickets::Tickets;
use crate::auth::tokens::Tokens;
use crate::connection::concurrency::ConcurrencyLimiter;
use crate::connection::open_sockets::OpenSockets;
use crate::encoders::Encoders;
use crate::http::rate_limits::RateLimits;
use crate::metrics::HttpMetrics;
use crate::models::MODEL_KEYS;
use crate::tools::Tools;
use crate::{Config, Tls};
use parlor_engine::Hub;
use parlor_engine::ports::BlobStore;
use parlor_engine::tasks::Tasks;
use parlor_wire::ably::channel::Channel;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

/// Purpose of the key that encrypts the tokens of invitations to rooms.
const INVITATION_TOKENS: &str = "parlor room invitations 1";

pub struct App {
    pub hub: Hub,
    pub config: Config,
    pub(crate) tokens: Tokens,
    pub(crate) second_factors: SecondFactors,
    pub(crate) model_keys: Seal,
    /// Encrypts the tokens of invitations to rooms.
    pub(crate) invitation_tokens: Seal,
    pub(crate) ably: AblySecrets,
    pub(crate) passwords: Passwords,
    pub(crate) logins: KeyedRateLimiter<IpAddr>,
    pub(crate) refreshes: KeyedRateLimiter<IpAddr>,
    pub(crate) limits: RateLimits,
    pub(crate) connection_limiter: ConcurrencyLimiter,
    pub(crate) blobs: Arc<dyn BlobStore>,
    /// Limits concurrent uploads.
    pub(crate) upload_limiter: ConcurrencyLimiter,
    pub(crate) encoders: Arc<Encoders>,
    pub(crate) tickets: Tickets,
    /// Limits concurrent workspace scans to `MAX_WORKSPACE_SCANS`; further scans wait.
    pub(crate) workspace_scans: Arc<Semaphore>,
    pub(crate) open_sockets: OpenSockets,
    pub(crate) ably_connections: Connections,
    /// WebSocket connections, and other tasks that outlive the request which started them.
    pub(crate) tasks: Tasks,
    pub(crate) http_metrics: HttpMetrics,
    pub(crate) tls: Option<Arc<Tls>>,
    pub(crate) tools: Tools,
}

/// Maximum concurrent uploads of one user. Each needs some memory and disk space.
const MAX_CONCURRENT_UPLOADS_PER_USER: usize = 3;
/// Maximum concurrent uploads of all users.
const MAX_TOTAL_UPLOADS: usize = 64;
/// Maximum concurrent workspace scans. Each occupies a blocking thread and the disk.
const MAX_WORKSPACE_SCANS: usize = 2;

impl App {
    pub fn new(
        hub: Hub,
        blobs: Arc<dyn BlobStore>,
        passwords: Passwords,
        config: Config,
        tls: Option<Arc<Tls>>,
    ) -> Arc<Self> {
        hub.derive_users_in(&Channel::GlobalPresence.destination().path());
        Arc::new(Self {
            tokens: Tokens::new(&config.token_secret, config.access_token_ttl),
            second_factors: SecondFactors::new(&config.token_secret),
            model_keys: Seal::new(&config.token_secret, MODEL_KEYS),
            invitation_tokens: Seal::new(&config.token_secret, INVITATION_TOKENS),
            ably: AblySecrets::new(&config.token_secret, hub.now()),
            passwords,
            logins: KeyedRateLimiter::per_minute(config.login_per_minute),
            refreshes: KeyedRateLimiter::per_minute(config.refresh_per_minute),
            limits: RateLimits::new(&config),
            connection_limiter: ConcurrencyLimiter::new(&config),
            blobs,
            upload_limiter: ConcurrencyLimiter::of(MAX_CONCURRENT_UPLOADS_PER_USER, MAX_TOTAL_UPLOADS),
            encoders: Arc::new(Encoders::new(hub.epoch(), &hub.names())),
            tickets: Tickets::default(),
            workspace_scans: Arc::new(Semaphore::new(MAX_WORKSPACE_SCANS)),
            open_sockets: OpenSockets::default(),
            ably_connections: Connections::new(hub.now()),
            tasks: Tasks::default(),
            http_metrics: HttpMetrics::new(),
            tls,
            tools: Tools::default(),
            hub,
            config,
        })
    }
}
