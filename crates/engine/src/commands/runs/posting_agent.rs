//! `PostingAgent`: evidence that an agent may post in a room.

use crate::Fault;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::{Agent, AgentId, EntityKind, Refusal, Room, RoomId};
use std::sync::Arc;

/// An agent that is a member of a room, with its name in the room, and the room.
pub struct PostingAgent {
    pub agent: Arc<Agent>,
    pub room: Arc<Room>,
}

impl PostingAgent {
    /// Requires that the hub itself acts on behalf of an agent that is a member of the room.
    pub fn require(
        caller: &CallerContext,
        agent: &AgentId,
        room: &RoomId,
        view: &mut WriterView<'_>,
    ) -> Result<Self, PermitError> {
        caller.operator()?;
        let room = view.room(room)?.ok_or(Refusal::NotFound(EntityKind::Room))?;
        let not_a_member = Refusal::NotAMember { room: room.id.clone() };
        Ok(Self::load(agent, room, view)?.ok_or(not_a_member)?)
    }

    /// `None` if the agent is not a member of the room.
    pub fn load(agent: &AgentId, room: Arc<Room>, view: &mut WriterView<'_>) -> Result<Option<Self>, Fault> {
        Ok(view.agent_named_in(&room.id, agent)?.map(|agent| Self { agent, room }))
    }
}
