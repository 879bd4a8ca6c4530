//! The settings of a hub: one table entry per setting, from which everything else is derived.
//!
//! Owns: the table, and the rules that involve more than one setting. To add a setting, add one entry to the
//! table: its environment variable, its place in the example file and its validation follow from the entry.

mod example;
mod keywords;
pub mod layers;
mod limits;
mod limits_report;
mod show;
mod suggest;
pub mod table;
#[cfg(test)]
mod tests;
pub mod types;

pub use example::example;
pub use keywords::{LogFormat, LogLevel, ModelApi, Switch, Synchronous};
pub use layers::{Effective, Problem, SettingSource, Sources};
pub use limits::LimitsInForce;
pub use show::show;

use crate::secret::Secret;
use parlor_server::Network;
use std::{net::SocketAddr, path::PathBuf, time::Duration};
use types::{
    Address, Directory, FilePath, Host, HostAndPort, List, Networks, SecretText, SingleLine, Username,
    WebAddress, WholePath, bytes, choice, count, days, hours, seconds,
};
use url::Url;

const YEAR_IN_SECONDS: u64 = 366 * 86_400;

table::settings! {
    "Listener and data directory" {
        /// The address and port to listen on. Port 0 selects a free port. An address other than
        /// loopback is reachable from other machines: set tls_cert, or use a TLS proxy.
        listen: SocketAddr = Address, default "127.0.0.1:7878";
        /// The directory for the database and all other data. It is created if it is missing;
        /// a relative path starts at the working directory.
        data: PathBuf = Directory, default "./parlor-data";
        /// The URL at which users reach this hub, if it differs from the listen address. Its
        /// origin and host are allowed.
        public_url: Option<Url> = WebAddress, example "https://chat.example.org";
        /// Additional origins whose web pages may connect, such as "https://app.example.org".
        allowed_origins: Vec<String> = List(types::Origin), default Vec::<String>::new();
        /// Additional host names that requests may use (the Host header), such as "chat.local".
        /// Loopback names and the host of public_url are always allowed.
        allowed_hosts: Vec<String> = List(Host), default Vec::<String>::new();
    }
    "Reverse proxy" {
        /// Addresses or networks of proxies whose X-Forwarded-For header is trusted, such as
        /// "127.0.0.1" or "10.0.0.0/8". Without it, all clients behind a proxy count as one
        /// address.
        trusted_proxies: Vec<Network> = List(Networks), default Vec::<String>::new();
        /// Time without a frame after which the hub pings a WebSocket connection, in seconds, so
        /// that a proxy does not close it as idle. A client that answers no ping four times in a
        /// row is disconnected.
        heartbeat: Duration = seconds(1..=3600), default 30;
    }
    "TLS" {
        /// The certificate chain, in PEM format. With this and tls_key, Parlor serves HTTPS.
        /// Changed files are reloaded without a restart.
        tls_cert: Option<PathBuf> = FilePath, example "/etc/parlor/fullchain.pem";
        /// The private key of the certificate, in PEM format.
        tls_key: Option<PathBuf> = FilePath, example "/etc/parlor/privkey.pem";
    }
    "First admin and secrets" {
        /// The username of the first admin. The account is created at start-up if
        /// admin_password is set and no admin exists.
        admin_user: String = Username, default "admin";
        /// The password of the first admin. Without it, start-up prints a setup link instead.
        admin_password: Option<Secret> = SecretText { at_least: 1 }, secret;
        /// The secret that signs access tokens; minimum 32 characters. Without it, a secret is
        /// generated and stored in the data directory.
        token_secret: Option<Secret> = SecretText { at_least: 32 }, secret;
        /// Lifetime of the setup link for the first admin, in seconds.
        setup_link_ttl: Duration = seconds(60..=30 * 86_400), default 86_400;
    }
    "Sign-in" {
        /// Timeout for a WebSocket connection to authenticate, in seconds.
        auth_timeout: Duration = seconds(1..=300), default 5;
        /// Lifetime of an access token, in seconds.
        access_token_ttl: Duration = seconds(30..=86_400), default 900;
        /// Lifetime of a refresh token, in seconds. A user who is away for longer must sign in
        /// again.
        refresh_token_ttl: Duration = seconds(60..=YEAR_IN_SECONDS), default 604_800;
        /// Time after a refresh during which the previous refresh token is accepted once more,
        /// in seconds. It keeps a page signed in that refreshes twice at the same time.
        refresh_grace_seconds: Duration = seconds(1..=60), default 10;
        /// Number of consecutive wrong passwords that locks an account.
        lockout_failures: u32 = count(1..=1_000), default 5;
        /// Time for which an account stays locked, in seconds.
        lockout_seconds: Duration = seconds(1..=30 * 86_400), default 900;
        /// "on" lets everyone who can reach the hub create an account without an invitation, as
        /// programs of Jaibber do. Admins can always create accounts and invitations.
        open_registration: Switch = choice(), default "off";
        /// Maximum number of concurrent password hashes. Each uses about 19 MiB of memory.
        password_hashing_jobs: usize = count(1..=64), default 2;
    }
    "Limits" {
        /// "off" disables every rate limit and connection limit in this group, and no others.
        /// For tests and benchmarks; rejected unless listen is a loopback address.
        limits: Switch = choice(), default "on";
        /// Maximum sign-in attempts per minute from one address.
        login_rate_limit_max: u32 = count(1..=1_000_000), default 20;
        /// Maximum token refreshes per minute from one address.
        refresh_rate_limit_max: u32 = count(1..=1_000_000), default 60;
        /// Maximum requests under /api per minute: per user, or per address for requests that
        /// are not signed in.
        api_rate_limit_max: u32 = count(1..=1_000_000), default 1_200;
        /// Maximum password changes per minute by one user.
        password_rate_limit_max: u32 = count(1..=1_000_000), default 5;
        /// Maximum searches per minute by one user.
        search_rate_limit_max: u32 = count(1..=1_000_000), default 60;
        /// Maximum uploads per minute by one user.
        upload_rate_limit_max: u32 = count(1..=1_000_000), default 60;
        /// Maximum router tests per minute by one user. Each test sends a request to a model.
        router_test_rate_limit_max: u32 = count(1..=1_000_000), default 5;
        /// Window in which the frames of one WebSocket connection are counted, in seconds.
        client_rate_limit_window: Duration = seconds(1..=3_600), default 10;
        /// Maximum frames that one WebSocket connection may send per client_rate_limit_window.
        client_rate_limit_max: u32 = count(1..=1_000_000), default 30;
        /// Maximum frames that one connection of the Ably protocol may send per
        /// client_rate_limit_window.
        ably_rate_limit_max: u32 = count(1..=1_000_000), default 5_000;
        /// Maximum open WebSocket connections per user.
        max_ws_connections_per_user: usize = count(1..=1_000_000), default 10;
        /// Maximum open WebSocket connections in total.
        max_total_ws_connections: usize = count(1..=1_000_000), default 5_000;
        /// Maximum WebSocket connections per address that are not yet authenticated.
        max_unauthenticated_per_address: usize = count(1..=1_000_000), default 64;
        /// Maximum HTTP connections per address, without WebSockets. Trusted proxies may open
        /// more.
        max_connections_per_address: usize = count(1..=1_000_000), default 256;
    }
    "Sizes" {
        /// Maximum size of a frame that a WebSocket client sends, in bytes.
        max_ws_message_size: usize = bytes(1_024..=16_777_216), default 65_536;
        /// Maximum size of the messages in one frame of the Ably protocol, in bytes.
        max_ably_message_size: usize = bytes(65_536..=8_388_608), default 1_048_576;
        /// Maximum attached channels of one connection of the Ably protocol.
        max_ably_channels: usize = count(1..=100_000), default 5_000;
        /// Maximum members of all presence sets.
        max_presence_members: usize = count(1..=1_000_000), default 50_000;
        /// Maximum members of the presence set of one channel.
        max_presence_members_per_channel: usize = count(1..=1_000_000), default 5_000;
        /// Maximum members of presence sets that one connection enters.
        max_presence_members_per_connection: usize = count(1..=1_000_000), default 500;
        /// Maximum size of the names and data of one member of a presence set, in bytes.
        max_presence_member_size: usize = bytes(1_024..=1_048_576), default 65_536;
        /// Maximum size of the names and data of all members of presence sets, in bytes.
        max_presence_size: usize = bytes(65_536..=1_073_741_824), default 67_108_864;
        /// Maximum size of the history of all presence sets, in bytes.
        max_presence_history_size: usize = bytes(65_536..=1_073_741_824), default 16_777_216;
        /// Maximum size of a frame that a gateway sends, in bytes.
        max_gateway_message_size: usize = bytes(1_024..=12_582_912), default 262_144;
        /// Maximum nesting depth of JSON.
        max_json_depth: usize = count(4..=64), default 15;
        /// Maximum length of a message, in characters.
        max_message_length: usize = count(1..=1_000_000), default 100_000;
        /// Maximum number of attachments per message.
        max_attachments: usize = count(1..=1_000), default 20;
        /// Maximum size of an uploaded file, in bytes.
        max_upload_size: usize = bytes(1_024..=1_073_741_824), default 10_485_760;
        /// Maximum size of an avatar, in bytes.
        max_avatar_size: usize = bytes(1_024..=1_073_741_824), default 2_097_152;
        /// Maximum number of different reactions per message.
        max_reactions: usize = count(1..=1_000), default 20;
        /// Maximum estimated bytes queued for one connection: the text, and 256 bytes per event. A client that
        /// falls further behind must resync or is disconnected; it never slows other clients.
        outbox_max_bytes: usize = bytes(16_384..=1_073_741_824), default 1_048_576;
        /// Maximum items queued for one connection. An item holds one or more frames.
        outbox_max_frames: usize = count(16..=1_000_000), default 4_096;
    }
    "Agents" {
        /// "on" creates the room "welcome" with the guide agent for the first admin, and adds
        /// every new user to it.
        welcome: Switch = choice(), default "on";
        /// "on" lets every member of a room add their own agents to it. Otherwise only its admins
        /// may.
        members_add_agents: Switch = choice(), default "off";
        /// Maximum number of answers in a chain of agents that trigger each other.
        max_chain_depth: u32 = count(1..=20), default 3;
        /// Maximum messages per minute with which one agent may trigger other agents.
        max_agent_messages_per_minute: u64 = count(1..=100_000), default 20;
        /// Maximum runs of one agent in one room per day.
        max_turns_per_day: u64 = count(1..=1_000_000), default 200;
        /// Maximum tokens that one agent may report in one room per day. Beyond it, the agent
        /// is not run.
        max_tokens_per_day: u64 = count(1..=1_000_000_000_000), default 2_000_000;
        /// Grace period for which a run waits for its lost gateway before it ends as
        /// interrupted, in seconds.
        gateway_grace: Duration = seconds(1..=3_600), default 60;
        /// Delay before the first retry of an automatic turn that failed, in seconds; 0 retries at once.
        /// The next three delays are 6, 24 and 120 times as long.
        turn_retry_delay: Duration = seconds(0..=600), default 5;
        /// URL of the model endpoint that picks the agents for unaddressed messages, in rooms
        /// with the policy "triage". The model receives the message and the descriptions of the
        /// agents. Without it, fixed rules decide.
        triage_url: Option<Url> = WebAddress, example "https://api.openai.com/v1";
        /// Name of the triage model; a small model is sufficient.
        triage_model: Option<String> = SingleLine, example "gpt-5-nano";
        /// API key for the triage model.
        triage_key: Option<Secret> = SecretText { at_least: 1 }, secret;
        /// API of the triage endpoint: "openai", which most endpoints support, or "anthropic".
        triage_api: ModelApi = choice(), default "openai";
        /// Timeout for a triage decision, in seconds. Without a decision in time, every agent
        /// in the room may answer, within its budgets.
        triage_timeout: Duration = seconds(1..=60), default 8;
        /// Hosts in private networks, with port, that users may use as model endpoints, such as
        /// "localhost:11434". All other endpoints must have a public address.
        allowed_endpoints: Vec<String> = List(HostAndPort), default Vec::<String>::new();
        /// Folders on this machine that rooms may be associated with. A site admin associates a
        /// room with one of them or a subfolder; the members of the room can then see its files.
        project_roots: Vec<PathBuf> = List(WholePath), default Vec::<String>::new();
    }
    "Agents on disk" {
        /// The directory with one folder per agent. The hub reads and watches the folders, hosts
        /// their agents, and writes changes that clients make. It must exist.
        agents_root: Option<PathBuf> = Directory, example "/srv/agents";
        /// The username of the account that the agents of agents_root belong to. Without it,
        /// they belong to the first admin.
        agents_owner: Option<String> = Username, example "ada";
    }
    "Storage" {
        /// Durability of acknowledged messages. "full": they survive a crash and a power cut.
        /// "normal": they survive a crash of Parlor, but a power cut can lose the most recent
        /// ones. "off": a power cut can also damage the database.
        synchronous: Synchronous = choice(), default "full";
        /// Number of days after which messages are deleted, with their edits and deliveries.
        /// Nothing is deleted within 24 hours after a clock jump or an outage.
        message_retention_days: Option<Duration> = days(1..=36_500), example 365;
        /// Number of days back from which a client can resume without reloading the history.
        log_window_days: Duration = days(1..=3_650), default 7;
        /// Number of days for which the audit log keeps sign-ins and administrative changes.
        audit_retention_days: Duration = days(1..=36_500), default 365;
        /// Time for which a repeated clientMessageId is recognised, in hours; minimum 24.
        dedupe_window_hours: Duration = hours(24..=87_600), default 48;
        /// Time after which an uploaded file without a message is deleted, in seconds.
        upload_wait: Duration = seconds(60..=7 * 86_400), default 3_600;
    }
    "Logs" {
        /// Format of the log: "text" for people, "json" for programs.
        log_format: LogFormat = choice(), default "text";
        /// Level of the log: "error", "warn", "info", "debug" or "trace".
        log_level: LogLevel = choice(), default "info";
        /// The file to log to, instead of standard error. After a log rotation, SIGHUP reopens
        /// it.
        log_file: Option<PathBuf> = FilePath, example "/var/log/parlor/parlor.log";
        /// URL of an OpenTelemetry collector that receives traces over HTTP (OTLP). Traces
        /// contain routes and timings, but no message content.
        otlp_endpoint: Option<Url> = WebAddress, example "http://127.0.0.1:4318";
    }
}

/// Valid settings, with the source of each value.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub settings: Settings,
    pub effective: Effective,
}

/// Reads and validates the settings. Returns all settings, or every problem that was found.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    let (effective, mut problems) = layers::resolve(GROUPS, sources);
    let settings = Settings::assemble(&mut layers::SettingReader::new(&effective, &mut problems));
    if let Some(settings) = &settings {
        problems.extend(settings.conflicts());
    }
    match settings {
        Some(settings) if problems.is_empty() => Ok(Loaded { settings, effective }),
        _ => Err(problems),
    }
}

impl Settings {
    /// Whether the listener is reachable only from this machine.
    pub fn listens_on_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    pub fn speaks_tls(&self) -> bool {
        self.tls_cert.is_some()
    }

    /// Whether browsers reach this hub over TLS, terminated by the hub or by a proxy.
    pub fn is_reached_over_tls(&self) -> bool {
        self.speaks_tls() || self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// Returns the value of the `Origin` header that browsers send for [`public_url`](Self::public_url).
    pub fn public_origin(&self) -> Option<String> {
        self.public_url.as_ref().map(|url| url.origin().ascii_serialization())
    }

    /// Returns warnings about valid but risky settings. Start-up, `config check` and `doctor` print them.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.listens_on_loopback() && !self.speaks_tls() {
            warnings.push(format!(
                "Listening on {} without TLS: passwords and messages can be read in transit. \
                 Set tls_cert and tls_key, use a TLS proxy, or listen on 127.0.0.1.",
                self.listen
            ));
        }
        match self.synchronous {
            Synchronous::Full => {}
            Synchronous::Normal => warnings.push(
                "synchronous = \"normal\": a power cut can lose the last acknowledged messages.".to_owned(),
            ),
            Synchronous::Off => warnings.push(
                "synchronous = \"off\": a power cut can lose acknowledged messages and damage the database."
                    .to_owned(),
            ),
        }
        if self.limits == Switch::Off {
            warnings.push("limits = \"off\": rate limits and connection limits are disabled.".to_owned());
        }
        if self.outbox_max_bytes < self.max_encoded_message_bytes() {
            warnings.push(format!(
                "outbox_max_bytes = {} is smaller than the largest message ({} bytes): \
                 such a message disconnects the clients that receive it.",
                self.outbox_max_bytes,
                self.max_encoded_message_bytes()
            ));
        }
        warnings
    }

    /// Upper bound for the encoded size of a message. JSON encodes a control character as six bytes. The rest
    /// is the envelope, and for each attachment a name of up to 200 characters with up to four bytes each.
    fn max_encoded_message_bytes(&self) -> usize {
        self.max_message_length.saturating_mul(6).saturating_add(16_384 + self.max_attachments * 1_024)
    }

    fn conflicts(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.limits == Switch::Off && !self.listens_on_loopback() {
            problems.push(Problem::new(
                "limits",
                format!("can be \"off\" only on a loopback address, but listen is {}", self.listen),
            ));
        }
        match (&self.tls_cert, &self.tls_key) {
            (Some(_), None) => problems.push(Problem::new("tls_key", "must be set together with tls_cert")),
            (None, Some(_)) => problems.push(Problem::new("tls_cert", "must be set together with tls_key")),
            _ => {}
        }
        match (&self.triage_url, &self.triage_model) {
            (Some(_), None) => {
                problems.push(Problem::new("triage_model", "must be set together with triage_url"));
            }
            (None, Some(_)) => {
                problems.push(Problem::new("triage_url", "must be set together with triage_model"));
            }
            _ => {}
        }
        if self.refresh_token_ttl < self.access_token_ttl {
            problems.push(Problem::new("refresh_token_ttl", "must not be shorter than access_token_ttl"));
        }
        problems
    }
}
