//! Credentials of Ably clients: keys, tokens of the hub and JWTs.
//!
//! Owns: which caller and which capability a credential proves. What the caller may do with it is decided in the
//! engine, by the grant that the caller carries.

use crate::App;
use crate::auth::seal::Seal;
use axum::http::HeaderMap;
use parlor_model::{Caller, Refusal, Time};
use parlor_wire::ably::auth::{Identity, TokenDetails};
use parlor_wire::ably::capability::Capability;
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::serial::ConnectionSecret;
use std::net::IpAddr;

/// Secrets derived from that of the hub, and the memory of used token requests.
pub struct AblySecrets {
    connections: ConnectionSecret,
    keys: Seal,
}

impl AblySecrets {
    pub fn new(hub_secret: &[u8]) -> Self {
        Self {
            connections: ConnectionSecret::new(hub_secret),
            keys: Seal::new(hub_secret, "parlor signing keys 1"),
        }
    }
}

/// Caller of a connection or request, with what its credential permits.
pub struct AblyCaller {
    /// Has the grant of the capability.
    pub caller: Caller,
    pub capability: Capability,
    pub identity: Identity,
    /// Expiry of the token; `None` for a key.
    pub expires_at: Option<Time>,
    /// Whether the credential is a token, which the client can renew.
    pub is_token: bool,
}

/// Verifies the credential in the URL of a connection, or in its AUTH frame.
pub async fn of_connection(
    app: &App,
    key: Option<&str>,
    token: Option<&str>,
    client_id: Option<&str>,
    address: IpAddr,
) -> Result<AblyCaller, ErrorInfo> {
    let _ = (app, key, token, client_id, address);
    Err(ErrorInfo::new(codes::UNAVAILABLE, "not implemented"))
}

/// Verifies the credential of a request: the header `Authorization`, or the parameters `key` and `access_token`.
pub async fn of_request(
    app: &App,
    headers: &HeaderMap,
    query: &[(String, String)],
    address: IpAddr,
) -> Result<AblyCaller, ErrorInfo> {
    let _ = (app, headers, query, address);
    Err(ErrorInfo::new(codes::UNAVAILABLE, "not implemented"))
}

/// Issues a token for the rooms of a signed-in user. It ends with the sign-in.
pub async fn token_for_person(app: &App, caller: &Caller) -> Result<TokenDetails, Refusal> {
    let _ = (app, caller);
    Err(Refusal::Unavailable)
}

/// Secret that signs the keys of connections.
pub fn connection_secret(app: &App) -> &ConnectionSecret {
    &app.ably.connections
}
