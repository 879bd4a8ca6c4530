//! The Ably protocol: credentials and HTTP responses. `docs/protocols/ably.md` documents it.

pub mod credentials;
mod nonces;
mod signing_keys;
mod token_requests;
mod tokens;
pub mod http;
