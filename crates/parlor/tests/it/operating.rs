//! What whoever runs a hub relies on.

mod logs;
mod tls;
