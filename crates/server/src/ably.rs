//! The Ably protocol: credentials and HTTP responses. `docs/protocols/ably.md` documents it.

pub mod credentials;
pub mod http;
