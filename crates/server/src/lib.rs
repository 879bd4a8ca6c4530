//! The listeners: HTTP and WebSocket, authentication, and where each door is mounted.
//!
//! A handler translates, calls the hub, and translates back; what is allowed is the engine's business.

mod agentim;
mod app;
mod auth;
mod broker;
mod config;
mod connection;
mod downloads;
mod events;
mod gateway;
mod http;
mod listen;
mod metrics;
mod models;
mod rest;
mod tls;
mod web_app;
mod workspace;
mod write_timeout;

pub use app::App;
pub use auth::passwords::{PasswordCost, Passwords};
pub use auth::seal::Seal;
pub use auth::secrets;
pub use config::Config;
pub use gateway::host_locally;
pub use http::forwarded::Network;
pub use listen::{RunningServer, serve};
pub use models::{MODEL_KEYS, Models};
pub use tls::{Tls, TlsError};
