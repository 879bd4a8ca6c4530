//! The AgentIM gateway protocol (`/ws/gateway`): runs of agents, approvals, relayed requests, and the limits
//! that stop runs.

mod approvals;
mod context;
mod endings;
mod freeze;
mod guide;
mod loops;
mod names;
mod recorded;
mod relays;
mod routed;
pub mod scenes;
mod tasks;
mod walk;
mod work;
