//! Ably protocol: the realtime connections at `/`.
//!
//! Translates frames of channels to feeds, commands and presence sets of places. The URL of the handshake has the
//! credential, so the hub sends the first frame.

mod attach;
mod connect;
mod connections;
pub mod credentials;
mod encoder;
mod handshake;
pub mod http;
mod jaibber;
mod nonces;
mod openings;
mod presence;
mod publish;
mod reauthorise;
mod rest;
mod session;
mod signing_keys;
mod token_requests;
mod tokens;

pub use connections::Connections;
pub use encoder::AblyEncoder;
pub use handshake::mount;
pub use rest::router;
pub use signing_keys::{NewSigningKey, SigningKeys};

use parlor_model::{Caller, EntityKind, Principal, Refusal, UserId};
use parlor_wire::ably::codes::{self, ErrorInfo};
use std::time::Duration;

/// Time for which a lost connection may be resumed.
const STATE_TTL: Duration = Duration::from_secs(120);
/// Announced `maxIdleInterval`: after this time without a frame of the hub, plus its own timeout, a client counts the
/// connection as lost.
const MAX_IDLE: Duration = Duration::from_secs(15);
/// Time without a frame of the client after which the hub sends a heartbeat; less than `MAX_IDLE`.
const HEARTBEAT: Duration = Duration::from_secs(10);

/// Returns the error of a request about a channel. A room that does not exist and one of which the user is no member
/// have the same error.
fn channel_error(refusal: &Refusal) -> ErrorInfo {
    match refusal {
        Refusal::NotFound(EntityKind::Room) => codes::error(&Refusal::Forbidden),
        other => codes::error(other),
    }
}

/// Identifies the account or key that may resume a connection.
fn principal(caller: &Caller) -> String {
    match &caller.principal {
        Principal::Program { key, .. } => format!("key {key}"),
        _ => format!("user {}", caller.user().map(UserId::as_str).unwrap_or_default()),
    }
}
