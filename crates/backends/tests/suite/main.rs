//! One suite that holds every store to the contract of the engine's ports.
//!
//! `contract` says what each must do, call by call; `differential` drives two whole hubs with the same random
//! commands and compares everything that can be seen.

mod contract;
mod differential;
mod fixtures;
mod stores;
mod test_hub;
