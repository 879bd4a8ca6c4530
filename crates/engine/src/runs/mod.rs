//! Agent runs: queues, starts, streams, stops and resumes them, and relays approvals, inquiries and gateway
//! requests.
//!
//! Owns the pure `Scheduler`, the driver loop that performs its actions, and `Hosting`, the API for gateways.
//! State changes are committed through the write pipeline; nothing here writes to the store directly.

pub(crate) mod driver;
mod handle;
pub mod host;
mod hosting;
pub(crate) mod idle_prompts;
mod inquiries;
mod pending_approvals;
pub mod scheduler;
mod terminal;
mod triage;

pub use handle::SchedulerHandle;
pub use host::{Host, HostCommand, RoomPeer};
pub use hosting::{ApprovalRequest, GatewayAnswer, Hosting, ReplyRef, ReplySlot, RunCompletion};
pub use scheduler::{GatewayAbilities, GatewayConnectionId};
pub use triage::RuleBasedTriage;
