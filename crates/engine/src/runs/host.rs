//! Commands from the hub to a gateway, independent of the wire protocol that encodes them.

use parlor_model::{
    Agent, AgentId, AgentStatus, Approval, ApprovalKind, Decision, GatewayRequest, Inquiry, Member, Message,
    MessageId, Room, RoomId, RunContext, RunId, RunOutcome, StartedRun, UserId,
};
use std::sync::Arc;

/// A command or notification for a gateway.
#[derive(Clone)]
pub enum HostCommand {
    /// Context of an agent in a room: the room, its system prompt and its members.
    Context {
        agent: AgentId,
        room: Arc<Room>,
        members: Arc<[RoomPeer]>,
    },
    /// Start a run.
    StartRun {
        started: StartedRun,
        /// Messages before the trigger, oldest first; empty for third-party gateways.
        earlier: Vec<Arc<Message>>,
    },
    /// Inject a message into the active run `run` of a busy agent. `added` is the queued run of the message;
    /// it is merged into `run` when the gateway reports that the agent accepted the message.
    Inject {
        agent: AgentId,
        context: RunContext,
        run: RunId,
        added: RunId,
        message: Arc<Message>,
    },
    Stop {
        agent: AgentId,
        context: RunContext,
    },
    /// The end of a run is committed.
    Ended {
        agent: AgentId,
        context: RunContext,
        run: RunId,
        outcome: RunOutcome,
    },
    /// A resumed run continues after `heard`: the number of complete parts of its reply that the hub has, and
    /// the number of bytes of the next part.
    Resumed {
        agent: AgentId,
        context: RunContext,
        run: RunId,
        heard: (usize, usize),
    },
    /// Decision on an approval, with the request id that the gateway chose.
    Decided {
        agent: AgentId,
        request: Box<str>,
        kind: ApprovalKind,
        decision: Decision,
    },
    /// User request to an agent. The answer carries the id `request` if its frame has a field for it.
    Inquiry {
        agent: AgentId,
        room: Option<RoomId>,
        by: UserId,
        request: Box<str>,
        inquiry: Inquiry,
    },
    /// Request of the owner to the gateway itself.
    GatewayRequest {
        request: Box<str>,
        gateway_request: GatewayRequest,
    },
    /// The messages of a room from `message` on were deleted; the agent has to drop them from its context.
    Rewind {
        agent: AgentId,
        room: RoomId,
        message: MessageId,
    },
    /// The agent was deleted, or another gateway hosts it now.
    Remove {
        agent: AgentId,
    },
}

impl HostCommand {
    /// The decision on an approval; `None` while it is open.
    pub fn decided(approval: &Approval) -> Option<Self> {
        let Approval { agent, request, subject, decision, .. } = approval;
        let (agent, request) = (agent.clone(), request.clone());
        Some(Self::Decided { agent, request, kind: subject.kind(), decision: decision.clone()? })
    }
}

/// A member of a room, as described to the agents in it.
#[derive(Debug, Clone)]
pub struct RoomPeer {
    pub member: Member,
    /// Agent and its status, if the member is an agent.
    pub agent: Option<(Agent, AgentStatus)>,
}

/// The sending side of a gateway connection.
pub trait Host: Send + Sync {
    /// Sends a command. Must not block: an implementation that cannot queue the command closes the gateway
    /// connection.
    fn send(&self, command: HostCommand);
}
