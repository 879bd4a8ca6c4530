//! Commands from the hub to a gateway, independent of the wire protocol that encodes them.

use parlor_model::{
    Agent, AgentId, AgentStatus, ApprovalKind, Decision, GatewayRequest, Inquiry, Member, Message, MessageId,
    Room, RoomId, RunId, RunOutcome, StartedRun, UserId,
};
use std::sync::Arc;

/// A command or notification for a gateway.
pub enum HostCommand<'a> {
    /// Context of an agent in a room: the room, its system prompt and its members.
    Context {
        agent: &'a AgentId,
        room: &'a Room,
        members: &'a [RoomPeer],
    },
    /// Start a run.
    StartRun {
        started: &'a StartedRun,
        /// Messages before the trigger, oldest first; empty for third-party gateways.
        earlier: &'a [Arc<Message>],
    },
    /// Inject a message into the active run `run` of a busy agent. `added` is the queued run of the message;
    /// it is merged into `run` when the gateway reports that the agent accepted the message.
    Inject {
        agent: &'a AgentId,
        room: &'a RoomId,
        run: &'a RunId,
        added: &'a RunId,
        message: &'a Message,
    },
    Stop {
        agent: &'a AgentId,
        room: &'a RoomId,
    },
    /// The end of a run is committed.
    Ended {
        agent: &'a AgentId,
        room: &'a RoomId,
        run: &'a RunId,
        outcome: &'a RunOutcome,
    },
    /// A resumed run continues after `heard`: the number of complete parts of its reply that the hub has, and
    /// the number of bytes of the next part.
    Resumed {
        agent: &'a AgentId,
        room: &'a RoomId,
        run: &'a RunId,
        heard: (usize, usize),
    },
    /// Decision on an approval, with the request id that the gateway chose.
    Decided {
        agent: &'a AgentId,
        request: &'a str,
        kind: ApprovalKind,
        decision: &'a Decision,
    },
    /// User request to an agent. The answer carries the id `request` if its frame has a field for it.
    Inquiry {
        agent: &'a AgentId,
        room: Option<&'a RoomId>,
        by: &'a UserId,
        request: &'a str,
        inquiry: &'a Inquiry,
    },
    /// Request of the owner to the gateway itself.
    GatewayRequest {
        request: &'a str,
        gateway_request: &'a GatewayRequest,
    },
    /// The messages of a room from `message` on were deleted; the agent has to drop them from its context.
    Rewind {
        agent: &'a AgentId,
        room: &'a RoomId,
        message: &'a MessageId,
    },
    /// The agent was deleted, or another gateway hosts it now.
    Remove {
        agent: &'a AgentId,
    },
}

/// A member of a room, as described to the agents in it.
pub struct RoomPeer {
    pub member: Member,
    /// Agent and its status, if the member is an agent.
    pub agent: Option<(Agent, AgentStatus)>,
}

/// The sending side of a gateway connection.
pub trait Host: Send + Sync {
    /// Sends a command. Must not block: an implementation that cannot queue the command closes the gateway
    /// connection.
    fn send(&self, command: &HostCommand<'_>);
}
