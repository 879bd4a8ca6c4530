//! Tests that every store fulfils the contract of the engine's ports.
//!
//! `contract` tests each store call by call; `differential` drives a hub on each store with the same random
//! commands and compares everything that is observable.

mod contract;
mod differential;
mod fixtures;
mod stops;
mod stores;
mod test_hub;
mod writer_cache;
