//! Turns: what agents are asked, say and are told, behind the fan-out.

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
pub mod reply_buffer;
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
