//! Fixtures for the tests of the rules: facts, ids and small entities.

use super::{DecideContext, Effects, decide};
use crate::Limits;
use crate::facts::{AuthContext, Facts};
use crate::permission::CallerContext;
use crate::ports::IdGenerator;
use crate::routing_index::Recipient;
use parlor_model::{
    Agent, AgentId, Caller, Command, Delivery, DeliveryState, Destination, Epoch, Mailbox, Message,
    MessageId, MessageKind, Path, Pattern, Refusal, Sender, Seq, SessionId, SiteRole, Subscription, Time,
    User, UserId,
};
use std::sync::Arc;

pub const NOW: Time = Time(1_000_000);

pub struct FixedId;

impl IdGenerator for FixedId {
    fn next(&self) -> String {
        "new".into()
    }
}

pub fn decide_with(command: &Command, facts: &Facts) -> Result<Effects, Refusal> {
    let caller = CallerContext { caller: Caller::ANONYMOUS, auth: facts.standing.clone() };
    decide(command, facts, &DecideContext { ids: &FixedId, limits: &Limits::default(), caller: &caller })
}

/// Facts in which the user `ann` is the caller, and nothing else is loaded.
pub fn facts() -> Facts {
    let mut facts = Facts::empty(NOW, Epoch(1), Seq(10));
    facts.standing = Some(Arc::new(AuthContext { user: user("ann").into(), scopes: None }));
    facts
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
