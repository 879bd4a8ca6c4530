//! Fixtures for the tests of single commands: hand-made evidence, and a builder with fixed time and ids.

use super::Command;
use crate::Limits;
use crate::changes::{AuditChange, Change};
use crate::effects::{Effects, EffectsBuilder};
use crate::permission::AuthContext;
use crate::permission::CallerContext;
use crate::ports::IdGenerator;
use crate::routing_index::Recipient;
use parlor_model::audit::Action;
use parlor_model::command::AgentRegistration;
use parlor_model::{
    Agent, AgentId, AnswerPolicy, Caller, Delivery, DeliveryState, Destination, Device, Epoch, Gateway,
    GatewayId, Mailbox, Member, MemberId, Message, MessageId, MessageKind, Path, Pattern, Position, Refusal,
    Room, RoomId, RoomKind, RoomRole, Sender, Seq, SessionId, SiteRole, Subscription, Time, User, UserId,
};
use std::sync::Arc;

/// Decides a command with these facts, after the event with `Seq` 10.
pub fn decide<C: Command>(command: C, facts: C::Facts) -> Result<(C::Receipt, Effects), Refusal> {
    let mut receipt = None;
    let effects = effects(|effects| receipt = Some(command.decide(facts, effects)));
    Ok((receipt.expect("the command was decided")?, effects))
}

/// The effects that a part of a decision adds, after the event with `Seq` 10.
pub fn effects(add: impl FnOnce(&mut EffectsBuilder<'_>)) -> Effects {
    let (head, limits) = (Position { epoch: Epoch(1), seq: Seq(10) }, Limits::default());
    let caller = CallerContext { caller: Caller::ANONYMOUS, auth: None };
    let mut effects = EffectsBuilder::new(NOW, head, &caller, &FixedId, &limits);
    add(&mut effects);
    effects.finish()
}

/// The actions that the effects record in the audit log, in order.
pub fn audited(effects: &Effects) -> Vec<Action> {
    let action = |change: &Change| match change {
        Change::Audit(AuditChange::AppendAudit(entry)) => Some(entry.action),
        _ => None,
    };
    effects.changes.iter().filter_map(action).collect()
}

/// Auth context of a user with a sign-in.
pub fn auth(name: &str) -> Arc<AuthContext> {
    Arc::new(AuthContext { user: user(name).into(), scopes: None, grants: Vec::new() })
}

pub fn member_of(room: &RoomId, name: &str) -> Arc<Member> {
    Arc::new(Member {
        room: room.clone(),
        member: MemberId::User(UserId::stored(name)),
        role: RoomRole::Member,
        role_description: None,
        name: name.into(),
        handle: name.into(),
        joined_at: Time(2),
        read_through: Seq(0),
        read_at: None,
        room_preferences: Default::default(),
    })
}

/// A message of a source in a room.
pub fn room_message(room: &RoomId) -> Arc<Message> {
    let (message, _) = mail("m", "coder", DeliveryState::Pending, 0);
    Arc::new(Message { destination: Destination::Room(room.clone()), ..Message::clone(&message) })
}

/// A gateway of the user `ann`.
pub fn gateway(id: &str, disconnected_at: Option<Time>) -> Gateway {
    Gateway {
        id: GatewayId::stored(id),
        owner: UserId::stored("ann"),
        device: Device::default(),
        ephemeral: false,
        connected_at: Time(1),
        disconnected_at,
        pending_removals: Vec::new(),
    }
}

/// A registration of the agent `coder` by the gateway `laptop`.
pub fn registration() -> AgentRegistration {
    AgentRegistration {
        gateway: GatewayId::stored("laptop"),
        id: AgentId::stored("coder"),
        name: "Coder".into(),
        kind: "my-own-adapter".into(),
        working_directory: Some("/srv/ann".into()),
        capabilities: vec!["rewind".into()],
        model: None,
        slash_commands: None,
        mcp_servers: None,
        has_lasting_id: true,
    }
}

/// A room in which every member may approve tools and command agents.
pub fn room(id: &RoomId) -> Room {
    Room {
        id: id.clone(),
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

pub const NOW: Time = Time(1_000_000);

pub struct FixedId;

impl IdGenerator for FixedId {
    fn next(&self) -> String {
        "new".into()
    }
}

pub fn user(id: &str) -> User {
    User {
        id: UserId::stored(id),
        username: id.into(),
        display_name: id.into(),
        role: SiteRole::User,
        avatar_url: None,
        password_hash: "hash".into(),
        second_factor: false,
        failed_sign_ins: 0,
        locked_until: None,
        max_connections: None,
        source_patterns: Vec::new(),
        agent_tokens_valid_from: Time(0),
        created_at: Time(1),
        updated_at: Time(1),
    }
}

pub fn agent(id: &str) -> Agent {
    Agent {
        id: AgentId::parse(id).unwrap(),
        owner: UserId::stored("ann"),
        name: id.into(),
        description: "helps".into(),
        settings: Default::default(),
        host: Default::default(),
        visibility: Default::default(),
        created_at: Time(1),
    }
}

/// Parses `coder`, or `coder:main` for a session.
pub fn mailbox(text: &str) -> Mailbox {
    match text.split_once(':') {
        Some((agent, session)) => {
            Mailbox { agent: AgentId::stored(agent), session: Some(SessionId::stored(session)) }
        }
        None => Mailbox::of(AgentId::stored(text)),
    }
}

pub fn name(mailbox: &Mailbox) -> String {
    match &mailbox.session {
        Some(session) => format!("{}:{session}", mailbox.agent),
        None => mailbox.agent.to_string(),
    }
}

pub fn recipients(names: &[&str]) -> Vec<Recipient> {
    names.iter().map(|name| Recipient { mailbox: mailbox(name) }).collect()
}

pub fn pattern(text: &str) -> Pattern {
    Pattern::parse(text).unwrap()
}

pub fn subscription(of: &str, text: &str) -> Subscription {
    let Mailbox { agent, session } = mailbox(of);
    Subscription { agent, session, pattern: pattern(text), added_at: Time(1) }
}

/// A message and its delivery to a mailbox.
pub fn mail(id: &str, of: &str, state: DeliveryState, attempts: u32) -> (Arc<Message>, Delivery) {
    let message = Message {
        id: MessageId::stored(id),
        seq: Seq(5),
        at: Time(5),
        destination: Destination::Path(Path::stored("slack/team")),
        sender: Sender::Source("bridge".into()),
        sender_name: "bridge".into(),
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
        source: "slack".into(),
        external_id: None,
        edited_at: None,
        run_output: None,
        relayed: None,
        origin: None,
        answer: None,
    };
    let delivery = Delivery {
        message: message.id.clone(),
        mailbox: mailbox(of),
        state,
        attempts,
        handled_by: Vec::new(),
    };
    (Arc::new(message), delivery)
}
