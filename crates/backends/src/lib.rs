//! Storage backends that implement the engine's ports: SQLite and disk for production, memory for tests.

pub mod disk_blobs;
pub mod memory;
pub mod sqlite;
