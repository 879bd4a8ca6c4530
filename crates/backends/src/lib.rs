//! The concrete stores behind the engine's ports.

pub mod disk_blobs;
pub mod memory;
pub mod sqlite;
