//! Storage backends that implement the engine's ports: SQLite for the tables, the disk for blobs.

pub mod disk_blobs;
pub mod sqlite;
