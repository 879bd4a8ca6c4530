//! What whoever runs a hub relies on.

mod backup;
mod doctor;
mod kills;
mod logs;
mod metrics;
mod rates;
mod tls;
mod traces;
