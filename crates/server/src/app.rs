//! What every handler shares.

use crate::agentim::ClientEgress;
use crate::auth::passwords::Passwords;
use crate::auth::seal::Seal;
use crate::auth::second_factor::SecondFactors;
use crate::auth::throttle::Throttle;
use crate::auth::tickets::Tickets;
use crate::auth::tokens::Tokens;
use crate::broker::BrokerEgress;
use crate::connection::census::Census;
use crate::connection::conversations::Conversations;
use crate::events::{EventsEgress, SocketEvents};
use crate::gateway::GatewayEgress;
use crate::http::limits::Limits;
use crate::measures::Measures;
use crate::models::MODEL_KEYS;
use crate::{Config, Tls};
use parlor_engine::Hub;
use parlor_engine::ports::BlobStore;
use std::net::IpAddr;
use std::sync::Arc;
use tokio::sync::Semaphore;

pub struct App {
    pub hub: Hub,
    pub config: Config,
    pub(crate) tokens: Tokens,
    pub(crate) second_factors: SecondFactors,
    pub(crate) model_keys: Seal,
    pub(crate) passwords: Passwords,
    pub(crate) logins: Throttle<IpAddr>,
    pub(crate) refreshes: Throttle<IpAddr>,
    pub(crate) limits: Limits,
    pub(crate) census: Census,
    pub(crate) blobs: Arc<dyn BlobStore>,
    /// Files on their way in.
    pub(crate) uploading: Census,
    /// One for each door, shared by all its connections: that is how a frame is encoded once.
    pub(crate) client_egress: Arc<ClientEgress>,
    pub(crate) broker_egress: Arc<BrokerEgress>,
    pub(crate) gateway_egress: Arc<GatewayEgress>,
    pub(crate) events_egress: Arc<EventsEgress>,
    pub(crate) socket_events: Arc<SocketEvents>,
    pub(crate) tickets: Tickets,
    /// Looks into folders at once; the rest wait.
    pub(crate) looks: Arc<Semaphore>,
    pub(crate) conversations: Conversations,
    pub(crate) measures: Measures,
    pub(crate) tls: Option<Arc<Tls>>,
}

/// Files that one person sends at once, and all together: each takes a little memory and a place on the disk.
const UPLOADS_AT_ONCE: usize = 3;
const UPLOADS_IN_ALL: usize = 64;
/// Each takes a thread and a disk for a while.
const LOOKS_AT_ONCE: usize = 2;

impl App {
    pub fn new(
        hub: Hub,
        blobs: Arc<dyn BlobStore>,
        passwords: Passwords,
        config: Config,
        tls: Option<Arc<Tls>>,
    ) -> Arc<Self> {
        Arc::new(Self {
            tokens: Tokens::new(&config.token_secret, config.access_token_ttl),
            second_factors: SecondFactors::new(&config.token_secret),
            model_keys: Seal::new(&config.token_secret, MODEL_KEYS),
            passwords,
            logins: Throttle::per_minute(config.login_per_minute),
            refreshes: Throttle::per_minute(config.refresh_per_minute),
            limits: Limits::new(&config),
            census: Census::new(&config),
            blobs,
            uploading: Census::of(UPLOADS_AT_ONCE, UPLOADS_IN_ALL),
            client_egress: Arc::new(ClientEgress),
            broker_egress: Arc::new(BrokerEgress),
            gateway_egress: Arc::new(GatewayEgress),
            events_egress: Arc::new(EventsEgress::new(hub.roots())),
            socket_events: Arc::new(SocketEvents::new(hub.roots())),
            tickets: Tickets::default(),
            looks: Arc::new(Semaphore::new(LOOKS_AT_ONCE)),
            conversations: Conversations::default(),
            measures: Measures::new(),
            tls,
            hub,
            config,
        })
    }
}
