//! Fixtures for the tests of commands on runs: a running run of the agent `coder` in the room `room`.

use super::chain::Chain;
use super::posting_agent::PostingAgent;
use super::reply::ReplyFacts;
use crate::commands::messages::recipients::Recipients;
use crate::commands::test_fixtures::agent;
use parlor_model::{
    AddressedBy, AgentId, AgentReply, AnswerPolicy, ConversationId, Lineage, Room, RoomId, RoomKind,
    RoomRole, Run, RunCause, RunId, RunPlace, RunState, Time, Usage, UserId,
};
use std::sync::Arc;

pub fn room() -> Room {
    Room {
        id: RoomId::stored("room"),
        name: "Room".into(),
        kind: RoomKind::Group,
        policy: AnswerPolicy::Mention,
        system_prompt: None,
        agent_command_role: RoomRole::Member,
        approve_role: RoomRole::Member,
        router: None,
        frozen: None,
        project_root: None,
        description: None,
        created_by: UserId::stored("ann"),
        created_at: Time(1),
        updated_at: Time(1),
    }
}

pub fn run(state: RunState) -> Run {
    let agent = AgentId::stored("coder");
    Run {
        id: RunId::stored("run"),
        agent: agent.clone(),
        place: RunPlace::Room(RoomId::stored("room")),
        cause: RunCause::Unprompted,
        asked_by: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored("c"), agent),
        parent: None,
        state,
        reply: None,
        usage: Usage::default(),
        stop_requested: false,
        queued_at: Time(1),
        started_at: Some(Time(1)),
        ended_at: None,
    }
}

/// A reply that reaches nobody.
pub fn reply_in(room: Room) -> ReplyFacts {
    let sender = PostingAgent { agent: agent("coder").into(), room: Arc::new(room) };
    ReplyFacts { sender, recipients: Recipients::default(), chain: Chain::default() }
}

pub fn said(text: &str) -> AgentReply {
    AgentReply {
        message: None,
        text: text.into(),
        chunks: Vec::new(),
        target: None,
        claimed_depth: 0,
        claimed_chain: Vec::new(),
        origin: None,
    }
}
