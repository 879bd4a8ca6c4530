//! Turns: what agents are asked, say and are told, behind the fan-out.

pub mod desk;
pub mod rollup;
pub mod terminal;
