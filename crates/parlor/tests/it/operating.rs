//! What whoever runs a hub relies on.

mod logs;
mod metrics;
mod tls;
