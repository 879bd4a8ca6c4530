//! How a gateway is told what its agents are to do; a door puts it into words.

use parlor_model::{
    Agent, AgentId, AgentStatus, ApprovalKind, Decision, GatewayRequest, Inquiry, Member, Message, MessageId,
    Room, RoomId, RunId, RunOutcome, StartedRun, UserId,
};
use std::sync::Arc;

pub enum HostCommand<'a> {
    /// Where an agent finds itself: the room, its prompt, and who is in it.
    Context {
        agent: &'a AgentId,
        room: &'a Room,
        members: &'a [RoomPeer],
    },
    /// A turn for an agent.
    StartRun {
        started: &'a StartedRun,
        /// What was said in the room before, the oldest first; for hosts of ours only.
        earlier: &'a [Arc<Message>],
    },
    /// Something that was said to an agent while it is at work, for the turn that it is in. `added` is the turn that waits
    /// for it, and becomes part of that one when the host says that the agent has it.
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
    /// The end of a turn is kept.
    Ended {
        agent: &'a AgentId,
        room: &'a RoomId,
        run: &'a RunId,
        outcome: &'a RunOutcome,
    },
    /// A turn that its host came back to goes on from here: so many whole parts, and so many bytes of the next.
    Resumed {
        agent: &'a AgentId,
        room: &'a RoomId,
        run: &'a RunId,
        heard: (usize, usize),
    },
    /// The answer to what an agent asked, under the name that its gateway gave the question.
    Decided {
        agent: &'a AgentId,
        request: &'a str,
        kind: ApprovalKind,
        decision: &'a Decision,
    },
    /// Somebody asks something of an agent; the answer comes under this name, where it can bear one.
    Inquiry {
        agent: &'a AgentId,
        room: Option<&'a RoomId>,
        by: &'a UserId,
        request: &'a str,
        inquiry: &'a Inquiry,
    },
    /// Its owner asks something of the gateway itself.
    GatewayRequest {
        request: &'a str,
        gateway_request: &'a GatewayRequest,
    },
    /// What was said in a room from a message on was taken back.
    Rewind {
        agent: &'a AgentId,
        room: &'a RoomId,
        message: &'a MessageId,
    },
    /// The agent is gone, or somebody else hosts it now.
    Remove {
        agent: &'a AgentId,
    },
}

/// Somebody who is in a room beside an agent.
pub struct RoomPeer {
    pub member: Member,
    /// If it is an agent: what it is and how it is doing.
    pub agent: Option<(Agent, AgentStatus)>,
}

pub trait Host: Send + Sync {
    /// Hands an order over; must not wait. One that cannot be handed over is the end of the link.
    fn send(&self, order: &HostCommand<'_>);
}
