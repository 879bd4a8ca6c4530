//! Agent runs: queues, starts, streams, stops and resumes them, and relays approvals, inquiries and gateway
//! requests.
//!
//! Owns the pure `Scheduler`, the driver loop that executes its results, and the `Hub` methods that the
//! gateway protocol and the REST API call. State changes are committed through the write pipeline; nothing
//! here writes to the store directly.

mod approvals;
pub(crate) mod driver;
pub mod host;
mod hosting;
pub(crate) mod idle_prompts;
mod injection;
mod inquiries;
mod pending_approvals;
mod queue;
mod relays;
mod resume;
pub mod scheduler;
mod terminal;
mod triage;

pub use approvals::ApprovalRequest;
pub use host::{Host, HostCommand, RoomPeer};
pub use hosting::{ReplyRef, RunCompletion, SchedulerHandle};
pub use relays::GatewayAnswer;
pub use scheduler::{GatewayConnectionId, QueueEntry};
pub use triage::RuleBasedTriage;
