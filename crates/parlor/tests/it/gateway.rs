//! Agents in the room: the gateway door, turns and what stops them.

mod approvals;
mod context;
mod endings;
mod freeze;
mod guide;
mod loops;
mod recorded;
mod relays;
pub mod scenes;
mod tasks;
mod walk;
mod work;
