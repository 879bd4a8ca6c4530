//! Agents in the room: the gateway door, turns and what stops them.

mod endings;
mod loops;
mod scenes;
mod walk;
