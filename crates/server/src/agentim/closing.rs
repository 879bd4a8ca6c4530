//! Errors that end a connection of the AgentIM protocol, of a client or of a gateway.

use crate::connection::frame;
use crate::connection::peer::Peer;
use bytes::Bytes;
use parlor_engine::feed::DisconnectReason;
use parlor_wire::agentim::egress;

/// Message for a user's client that is a slow consumer.
pub const CLIENT_TOO_SLOW: &str = "The client reads too slowly; reconnect and resume";

/// Encodes the last frames of a connection. `too_slow` is the message for a slow consumer.
pub fn disconnect_frame(reason: DisconnectReason, too_slow: &str) -> Bytes {
    let (code, words, close) = match reason {
        DisconnectReason::TooSlow => ("RATE_LIMITED", too_slow, 1013),
        DisconnectReason::Revoked => ("SESSION_REVOKED", "Your session was revoked", 1008),
        DisconnectReason::ShuttingDown => ("SERVER_SHUTDOWN", "The server is shutting down", 1001),
        DisconnectReason::Unavailable => ("INTERNAL_ERROR", "The server cannot read missed events now", 1013),
    };
    frame::concat(&[frame::text(&egress::error(code, words)), frame::close(close, words)])
}

/// Closes the connection if the version is not the one that the hub implements. `role` is `client` or
/// `gateway`. Returns whether the version is supported.
pub fn check_version(peer: &Peer, role: &str, version: Option<&str>) -> bool {
    let Some(version) = version.filter(|version| *version != "1") else { return true };
    let version: String = version.chars().take(20).collect();
    let words = format!("Protocol version mismatch: {role}={version}, server=1. Please update your {role}.");
    peer.send_text(&egress::error("PROTOCOL_VERSION_MISMATCH", &words));
    peer.close(1008, "Protocol version mismatch");
    false
}
