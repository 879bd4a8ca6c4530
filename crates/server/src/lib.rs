//! The listeners: HTTP and WebSocket, authentication, and where each door is mounted.
//!
//! A handler translates, calls the hub, and translates back; what is allowed is the engine's business.

mod agentim;
mod app;
mod auth;
mod broker;
mod config;
mod connection;
mod events;
mod gateway;
mod http;
mod listen;
mod measures;
mod models;
mod page;
mod patience;
mod rest;
mod tls;
mod uploads;
mod workspace;

pub use app::App;
pub use auth::passwords::{PasswordCost, Passwords};
pub use auth::seal::Seal;
pub use auth::secrets;
pub use config::Config;
pub use gateway::host_locally;
pub use http::forwarded::Network;
pub use listen::{Listening, serve};
pub use models::{MODEL_KEYS, Models};
pub use tls::{Tls, TlsError};
