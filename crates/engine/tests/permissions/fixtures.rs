//! Entities that several rows store.

use crate::callers::lobby;
use parlor_model::{
    AddressedBy, Agent, AgentHost, AgentId, ConversationId, Destination, Lineage, Message, MessageId,
    MessageKind, ModelAccess, ModelApi, Router, RouterId, Run, RunCause, RunId, RunPlace, RunState, Sender,
    Seq, Time, Usage, UserId,
};
use std::sync::Arc;

pub fn run() -> Run {
    let agent = AgentId::stored("coder");
    Run {
        id: RunId::stored("run"),
        agent: agent.clone(),
        place: RunPlace::Room(lobby()),
        cause: RunCause::Unprompted,
        asked_by: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored("c"), agent),
        parent: None,
        state: RunState::Running,
        reply: None,
        usage: Usage::default(),
        stop_requested: false,
        queued_at: Time(5),
        started_at: Some(Time(5)),
        ended_at: None,
    }
}

pub fn router(created_by: UserId, shared: bool) -> Router {
    let model =
        ModelAccess { api: ModelApi::OpenAi, base_url: "https://a.b".into(), model: "m".into(), key: None };
    let (created_at, updated_at) = (Time(1), Time(1));
    let id = RouterId::stored("router");
    Router { id, name: "picker".into(), shared, model, created_by, created_at, updated_at }
}

pub fn agent(owner: UserId) -> Agent {
    Agent {
        id: AgentId::stored("coder"),
        owner,
        name: "Coder".into(),
        description: "".into(),
        settings: Default::default(),
        host: AgentHost { working_directory: Some("/work".into()), ..AgentHost::default() },
        visibility: Default::default(),
        created_at: Time(1),
    }
}

pub fn message(sender: Sender) -> Arc<Message> {
    Arc::new(Message {
        id: MessageId::stored("message"),
        seq: Seq(5),
        at: Time(5),
        destination: Destination::Room(lobby()),
        sender,
        sender_name: "Sender".into(),
        kind: MessageKind::Text,
        text: "hello".into(),
        mentions: Vec::new(),
        reply_to: None,
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments: Vec::new(),
        client_message_id: None,
        command: None,
        payload: None,
        source: "internal".into(),
        external_id: None,
        edited_at: None,
        run_output: None,
        relayed: None,
        origin: None,
        answer: None,
    })
}
