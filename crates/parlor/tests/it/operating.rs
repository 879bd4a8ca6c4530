//! What whoever runs a hub relies on.

mod metrics;
mod rates;
