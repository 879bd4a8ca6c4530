//! Operation of a hub: metrics, rate limits and connection limits.

mod metrics;
mod rates;
