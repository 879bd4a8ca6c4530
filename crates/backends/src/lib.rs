//! The concrete stores behind the engine's ports.

pub mod disk;
pub mod memory;
pub mod sqlite;
