//! The network side of the hub: HTTP and WebSocket listeners, TLS, authentication, and the protocol adapters.
//!
//! A handler decodes a request, calls the hub and encodes the result. Permissions and business rules belong
//! in the engine.

mod ably;
mod agentim;
mod app;
mod auth;
mod broker;
mod config;
mod connection;
mod downloads;
mod encoders;
mod events;
mod gateway;
mod http;
mod listen;
mod metrics;
mod models;
mod rest;
mod tls;
pub mod tools;
mod web_app;
mod workspace;
mod write_timeout;

pub use ably::{NewSigningKey, SigningKeys};
pub use app::App;
pub use auth::passwords::{PasswordCost, Passwords};
pub use auth::seal::Seal;
pub use auth::secrets;
pub use config::{AblyLimits, Config};
pub use gateway::host_locally;
pub use http::forwarded::Network;
pub use listen::{RunningServer, serve};
pub use models::{MODEL_KEYS, Models};
pub use tls::{Tls, TlsError};
