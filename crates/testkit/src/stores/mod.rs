//! Stores for tests of the engine: an in-memory reference model, and a wrapper that observes any store.

pub mod memory;
mod observed;

pub use memory::{MemoryBlobs, MemoryStore, Retention};
pub use observed::{Observed, StoreWatch};
