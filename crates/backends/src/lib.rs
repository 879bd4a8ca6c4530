//! The concrete stores behind the engine's ports.
