//! The settings of a hub: one entry each, from which everything else about them derives.
//!
//! Owns: the list, and the rules that concern more than one setting.
//! A new setting is one entry below; its variable, its place in the example and its check follow.

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
    "Where Parlor listens and keeps its data" {
        /// The address and port to listen on. Port 0 takes a free one. An address other than
        /// loopback is reachable by others: set tls_cert, or put a proxy that speaks TLS in front.
        listen: SocketAddr = Address, default "127.0.0.1:7878";
        /// The directory for the database and everything else Parlor keeps. It is made if it
        /// is missing; a relative path starts at the working directory.
        data: PathBuf = Directory, default "./parlor-data";
        /// The URL people use to reach this hub, when it is not the address above. Its origin
        /// and host are allowed.
        public_url: Option<Url> = WebAddress, example "https://chat.example.org";
        /// Further origins whose web pages may connect, such as "https://app.example.org".
        allowed_origins: Vec<String> = List(types::Origin), default Vec::<String>::new();
        /// Further names under which this hub may be addressed (the Host header), such as
        /// "chat.local". Loopback names and public_url are always allowed.
        allowed_hosts: Vec<String> = List(Host), default Vec::<String>::new();
    }
    "A proxy in front" {
        /// Addresses or networks of proxies, such as "127.0.0.1" or "10.0.0.0/8". What they
        /// say in X-Forwarded-For is believed; without it everybody behind a proxy counts as
        /// one address.
        trusted_proxies: Vec<Network> = List(Networks), default Vec::<String>::new();
    }
    "TLS" {
        /// The certificate and those that lead to its root, in PEM. With it and tls_key Parlor
        /// speaks HTTPS. When the files change they are read anew.
        tls_cert: Option<PathBuf> = FilePath, example "/etc/parlor/fullchain.pem";
        /// The private key of the certificate, in PEM.
        tls_key: Option<PathBuf> = FilePath, example "/etc/parlor/privkey.pem";
    }
    "The first admin, and secrets" {
        /// The name of the first admin, made at start if admin_password is set and there is no
        /// admin yet.
        admin_user: String = Username, default "admin";
        /// The password of the first admin. Without it the start prints a setup link instead.
        admin_password: Option<Secret> = SecretText { at_least: 1 }, secret;
        /// The secret that signs access tokens, at least 32 characters. Without it one is
        /// generated and kept in the data directory.
        token_secret: Option<Secret> = SecretText { at_least: 32 }, secret;
        /// How long the setup link for the first admin works, in seconds.
        setup_link_ttl: Duration = seconds(60..=30 * 86_400), default 86_400;
    }
    "Sign-in" {
        /// How long a socket may stay without signing in, in seconds.
        auth_timeout: Duration = seconds(1..=300), default 5;
        /// How long an access token is good, in seconds.
        access_token_ttl: Duration = seconds(30..=86_400), default 900;
        /// How long a refresh token is good, in seconds: a person who stays away longer signs
        /// in again.
        refresh_token_ttl: Duration = seconds(60..=YEAR_IN_SECONDS), default 604_800;
        /// For so many seconds after a refresh the token before it is taken once more, so that a
        /// page that is loaded twice in a moment stays signed in.
        refresh_grace_seconds: Duration = seconds(1..=60), default 10;
        /// So many wrong passwords in a row lock an account.
        lockout_failures: u32 = count(1..=1_000), default 5;
        /// How long a locked account stays locked, in seconds.
        lockout_seconds: Duration = seconds(1..=30 * 86_400), default 900;
        /// Passwords hashed at the same time. Each takes about 19 MiB while it runs.
        password_hashing_jobs: usize = count(1..=64), default 2;
    }
    "Limits" {
        /// "off" lifts every rate limit and connection limit below, and nothing else. For
        /// tests and benchmarks; refused unless listen is a loopback address.
        limits: Switch = choice(), default "on";
        /// Sign-in attempts a minute from one address.
        login_rate_limit_max: u32 = count(1..=1_000_000), default 20;
        /// Token refreshes a minute from one address.
        refresh_rate_limit_max: u32 = count(1..=1_000_000), default 60;
        /// Requests under /api a minute: of one person, or of one address that nobody signed in
        /// from.
        api_rate_limit_max: u32 = count(1..=1_000_000), default 1_200;
        /// Changes of a password a minute by one person.
        password_rate_limit_max: u32 = count(1..=1_000_000), default 5;
        /// Searches a minute by one person.
        search_rate_limit_max: u32 = count(1..=1_000_000), default 60;
        /// Uploads a minute by one person.
        upload_rate_limit_max: u32 = count(1..=1_000_000), default 60;
        /// Tests of a router a minute by one person: each asks a model.
        router_test_rate_limit_max: u32 = count(1..=1_000_000), default 5;
        /// The window in which the frames of one socket are counted, in seconds.
        client_rate_limit_window: Duration = seconds(1..=3_600), default 10;
        /// Frames one socket may send in that window.
        client_rate_limit_max: u32 = count(1..=1_000_000), default 30;
        /// Sockets one person may have open.
        max_ws_connections_per_user: usize = count(1..=1_000_000), default 10;
        /// Sockets in all.
        max_total_ws_connections: usize = count(1..=1_000_000), default 5_000;
        /// Sockets from one address that have not signed in yet.
        max_unauthenticated_per_address: usize = count(1..=1_000_000), default 64;
        /// Connections from one address that are no sockets. Trusted proxies may have more.
        max_connections_per_address: usize = count(1..=1_000_000), default 256;
    }
    "Sizes" {
        /// The largest frame a socket may send, in bytes.
        max_ws_message_size: usize = bytes(1_024..=16_777_216), default 65_536;
        /// The largest frame a gateway may send, in bytes.
        max_gateway_message_size: usize = bytes(1_024..=12_582_912), default 262_144;
        /// How deep JSON may be nested.
        max_json_depth: usize = count(4..=64), default 15;
        /// The longest message, in characters.
        max_message_length: usize = count(1..=1_000_000), default 100_000;
        /// Attachments of one message.
        max_attachments: usize = count(1..=1_000), default 20;
        /// The largest file that can be sent, in bytes.
        max_upload_size: usize = bytes(1_024..=1_073_741_824), default 10_485_760;
        /// The largest picture of a person, in bytes.
        max_avatar_size: usize = bytes(1_024..=1_073_741_824), default 2_097_152;
        /// Different reactions to one message.
        max_reactions: usize = count(1..=1_000), default 20;
        /// Bytes that may wait for one reader. One that falls further behind is told to catch
        /// up, or closed; it never slows the others.
        outbox_max_bytes: usize = bytes(16_384..=1_073_741_824), default 1_048_576;
        /// Frames that may wait for one reader.
        outbox_max_frames: usize = count(16..=1_000_000), default 4_096;
    }
    "Agents" {
        /// "on" makes the room welcome for the first admin, with the guide in it, and brings
        /// everybody who is new into it.
        welcome: Switch = choice(), default "on";
        /// How many agents may stand between a person and an answer.
        max_chain_depth: u32 = count(1..=20), default 3;
        /// How often an agent may speak in a minute and still address others.
        max_agent_messages_per_minute: u64 = count(1..=100_000), default 20;
        /// Turns of one agent in one room within a day.
        max_turns_per_day: u64 = count(1..=1_000_000), default 200;
        /// Tokens that one agent may report in one room within a day; then it gets no turn.
        max_tokens_per_day: u64 = count(1..=1_000_000_000_000), default 2_000_000;
        /// How long a turn waits for a gateway that was lost, in seconds, before it ends as
        /// interrupted.
        gateway_grace: Duration = seconds(1..=3_600), default 60;
        /// Where a model is that decides which agents answer what was said to none of them by
        /// name, in rooms with the policy "triage". It gets the message and what the agents are
        /// for. Without it plain rules decide.
        triage_url: Option<Url> = WebAddress, example "https://api.openai.com/v1";
        /// The model to ask; a small one will do.
        triage_model: Option<String> = SingleLine, example "gpt-5-nano";
        /// What opens it.
        triage_key: Option<Secret> = SecretText { at_least: 1 }, secret;
        /// How it is spoken to: "openai", as nearly everybody understands, or "anthropic".
        triage_api: ModelApi = choice(), default "openai";
        /// How long a model may take to decide that, in seconds. What it has not decided then is
        /// answered, within bounds.
        triage_timeout: Duration = seconds(1..=60), default 8;
        /// Places in private networks that people may name for models of theirs, with their
        /// port, such as "localhost:11434". Otherwise only addresses of the internet are taken.
        allowed_endpoints: Vec<String> = List(HostAndPort), default Vec::<String>::new();
        /// Folders of this machine that rooms may be about. A site admin says which room is about
        /// which of them, or about a folder below; its members then see what files are there.
        project_roots: Vec<PathBuf> = List(WholePath), default Vec::<String>::new();
    }
    "Storage" {
        /// When a message counts as kept. "full": acknowledged means on disk, also after a
        /// power cut. "normal": a crash of Parlor loses nothing, but a power cut can lose the
        /// last acknowledged messages. "off": a power cut can also damage the database.
        synchronous: Synchronous = choice(), default "full";
        /// How many days messages are kept, with their edits and deliveries; then their history
        /// ends. Not on the day after the clock leapt or the hub stood still.
        message_retention_days: Option<Duration> = days(1..=36_500), example 365;
        /// How many days back a client can resume without loading the history anew.
        log_window_days: Duration = days(1..=3_650), default 7;
        /// How many days the audit log keeps who signed in and who changed what.
        audit_retention_days: Duration = days(1..=36_500), default 365;
        /// How long a repeated clientMessageId is recognised, in hours; at least 24.
        dedupe_window_hours: Duration = hours(24..=87_600), default 48;
        /// How long a file that was sent waits to be put on a message, in seconds; then it is
        /// removed.
        upload_wait: Duration = seconds(60..=7 * 86_400), default 3_600;
    }
    "Logs" {
        /// "text" for people, "json" for machines.
        log_format: LogFormat = choice(), default "text";
        /// "error", "warn", "info", "debug" or "trace".
        log_level: LogLevel = choice(), default "info";
        /// The file to log to, instead of standard error. After a rotation, SIGHUP has it
        /// opened anew.
        log_file: Option<PathBuf> = FilePath, example "/var/log/parlor/parlor.log";
        /// Where an OpenTelemetry collector takes traces over HTTP (OTLP). They name routes and
        /// times, and nothing that people say.
        otlp_endpoint: Option<Url> = WebAddress, example "http://127.0.0.1:4318";
    }
}

/// Settings that passed every check, with the place each came from.
#[derive(Clone, Debug)]
pub struct Loaded {
    pub settings: Settings,
    pub effective: Effective,
}

/// Reads and checks the settings, and gives either all of them or everything that is wrong.
pub fn load(sources: &Sources) -> Result<Loaded, Vec<Problem>> {
    let (effective, mut problems) = layers::resolve(GROUPS, sources);
    let settings = Settings::assemble(&mut layers::SettingReader::new(&effective, &mut problems));
    if let Some(settings) = &settings {
        problems.extend(settings.contradictions());
    }
    match settings {
        Some(settings) if problems.is_empty() => Ok(Loaded { settings, effective }),
        _ => Err(problems),
    }
}

impl Settings {
    /// Whether only programs on this machine can reach the listener.
    pub fn listens_on_loopback(&self) -> bool {
        self.listen.ip().to_canonical().is_loopback()
    }

    pub fn speaks_tls(&self) -> bool {
        self.tls_cert.is_some()
    }

    /// Whether browsers reach this hub over TLS, by itself or by a proxy.
    pub fn is_reached_over_tls(&self) -> bool {
        self.speaks_tls() || self.public_url.as_ref().is_some_and(|url| url.scheme() == "https")
    }

    /// The origin browsers send for [`public_url`](Self::public_url).
    pub fn public_origin(&self) -> Option<String> {
        self.public_url.as_ref().map(|url| url.origin().ascii_serialization())
    }

    /// What runs, but should be known; shown at start.
    pub fn warnings(&self) -> Vec<String> {
        let mut warnings = Vec::new();
        if !self.listens_on_loopback() && !self.speaks_tls() {
            warnings.push(format!(
                "Listening on {} without TLS: passwords and messages can be read on the way. \
                 Set tls_cert and tls_key, put a proxy that speaks TLS in front, or listen on 127.0.0.1.",
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
            warnings.push("limits = \"off\": no rate and no connection is limited.".to_owned());
        }
        if self.outbox_max_bytes < self.largest_message_on_the_wire() {
            warnings.push(format!(
                "outbox_max_bytes = {} is smaller than the largest message ({} bytes): \
                 such a message would close its readers.",
                self.outbox_max_bytes,
                self.largest_message_on_the_wire()
            ));
        }
        warnings
    }

    /// JSON writes a control character as six bytes, and around the text there is an envelope; an attachment has a
    /// name of 200 characters, each of up to four bytes.
    fn largest_message_on_the_wire(&self) -> usize {
        self.max_message_length.saturating_mul(6).saturating_add(16_384 + self.max_attachments * 1_024)
    }

    fn contradictions(&self) -> Vec<Problem> {
        let mut problems = Vec::new();
        if self.limits == Switch::Off && !self.listens_on_loopback() {
            problems.push(Problem::new(
                "limits",
                format!("can be \"off\" only on a loopback address, and listen is {}", self.listen),
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
