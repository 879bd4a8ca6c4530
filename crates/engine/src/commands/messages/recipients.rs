//! Recipients of a message in a room: mentioned members, mailboxes, and agents that may get a run.
//!
//! Owns: the deliveries of a posted message. Runs are created in `commands/runs`.

use super::idempotency::IdempotencyCheck;
use crate::Fault;
use crate::changes::{MailChange, MessageChange, UploadChange};
use crate::commands::runs::{Addressed, Candidate, create_runs};
use crate::effects::EffectsBuilder;
use crate::permission::InRoom;
use crate::ports::{BudgetUsage, FirstRequest};
use crate::read_view::WriterView;
use crate::routing_index::Recipient;
use parlor_model::command::Posted;
use parlor_model::{
    AddressedBy, Agent, AgentId, AnswerPolicy, Delivery, DeliveryState, Destination, Event, Lineage, Mailbox,
    MemberId, Mention, Message, Path, Room, RoomRole, Sender, SessionRef, mention,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

#[derive(Default)]
pub struct Recipients {
    pub mentions: Vec<Mention>,
    /// Mailboxes of agents in the room that subscribe to its path.
    pub mailboxes: Vec<Recipient>,
    /// Members that receive a copy of a relayed message without being addressed by it.
    pub observers: Vec<MemberId>,
    pub candidates: Vec<Candidate>,
    /// Number of replies of the sending agent in the last minute.
    pub replies_last_minute: u64,
}

impl Recipients {
    /// Recipients of a user's message. It addresses the agents that it mentions or, if it mentions no member
    /// and the answer policy is not `Mention`, all agents of the room.
    pub fn of_user_message(
        text: &str,
        given: &[Box<str>],
        room: &Room,
        view: &mut WriterView<'_>,
    ) -> Result<Self, Fault> {
        let mentions = match !given.is_empty() || text.contains('@') {
            true => mention::resolve(text, given, &view.mentionable(room)?),
            false => Vec::new(),
        };
        let agents = view.agents_in(room)?;
        let mailboxes = mailboxes(&agents, room, view);
        let by_policy = mentions.is_empty() && room.policy != AnswerPolicy::Mention;
        let (named, addressed): (BTreeSet<&AgentId>, _) = match by_policy {
            true => (agents.iter().collect(), AddressedBy::ByPolicy),
            false => {
                let named = mentions.iter().filter_map(|mention| mention.member.agent());
                (named.collect(), AddressedBy::Directly)
            }
        };
        let mut candidates = Vec::new();
        for id in named {
            candidates.extend(Candidate::load(id, addressed, room, view)?);
        }
        Ok(Self { mentions, mailboxes, candidates, ..Self::default() })
    }

    /// Recipients of an agent's message. It addresses only the other agents that it mentions.
    pub fn of_agent_message(
        text: &str,
        given: &[Box<str>],
        sender: &AgentId,
        room: &Room,
        view: &mut WriterView<'_>,
    ) -> Result<Self, Fault> {
        let mentions = match !given.is_empty() || text.contains('@') {
            true => mention::resolve(text, given, &view.mentionable(room)?),
            false => Vec::new(),
        };
        let mut mailboxes = Vec::new();
        if !view.routes.is_empty() {
            let (agents, path) = (view.agents_in(room)?, Path::of_room(&room.id));
            let others = agents.iter().filter(|agent| *agent != sender);
            mailboxes.extend(others.flat_map(|agent| view.routes.of_agent(agent, &path)));
        }
        let named: BTreeSet<&AgentId> =
            mentions.iter().filter_map(|mention| mention.member.agent()).collect();
        let mut candidates = Vec::new();
        for id in named.into_iter().filter(|id| *id != sender) {
            candidates.extend(Candidate::load_asked_by(sender, id, room, view)?);
        }
        let mut replies_last_minute = 0;
        if !candidates.is_empty() {
            let since = view.now.minus(Duration::from_secs(60));
            replies_last_minute = view.store.spoken(sender, since)?;
        }
        Ok(Self { mentions, mailboxes, candidates, replies_last_minute, ..Self::default() })
    }

    /// The mailboxes that a message reaches.
    pub fn deliveries(&self, message: &Message) -> Arc<[Delivery]> {
        deliveries(message, &self.mailboxes, &self.observers)
    }

    /// The agents that may get a run. `sender_role` is the role of the user who sends the message.
    pub fn addressed<'a>(&'a self, room: &'a Room, sender_role: Option<RoomRole>) -> Addressed<'a> {
        let Self { candidates, replies_last_minute, .. } = self;
        Addressed { room, sender_role, candidates, replies_last_minute: *replies_last_minute }
    }

    /// Recipients of a message that addresses nobody: mailboxes only.
    pub fn of_quiet_message(room: &Room, view: &mut WriterView<'_>) -> Result<Self, Fault> {
        let agents = view.agents_in(room)?;
        Ok(Self { mailboxes: mailboxes(&agents, room, view), ..Self::default() })
    }

    /// Addresses one agent, in a new room: it has spent no budget there, and no mailbox subscribes to the room.
    pub fn only(agent: &Agent, name: Box<str>) -> Self {
        let mention = Mention { member: MemberId::Agent(agent.id.clone()), name };
        let candidate = Candidate {
            agent: agent.clone(),
            addressed: AddressedBy::Directly,
            spent: BudgetUsage::default(),
            asked: 0,
        };
        Self { mentions: vec![mention], candidates: vec![candidate], ..Self::default() }
    }

    /// Posts a user's message, with its deliveries, and creates runs for the agents that it addresses.
    pub fn deliver(
        &self,
        message: Message,
        sender: &InRoom,
        idempotency: Option<&IdempotencyCheck>,
        effects: &mut EffectsBuilder<'_>,
    ) -> Posted {
        let addressed = self.addressed(&sender.room, Some(sender.member.role));
        self.deliver_to(addressed, None, message, idempotency, effects)
    }

    /// Posts a message of any sender, with its deliveries, and creates runs for the agents that it addresses.
    /// `during` is the lineage that the message continues.
    pub fn deliver_to(
        &self,
        addressed: Addressed<'_>,
        during: Option<&Lineage>,
        message: Message,
        idempotency: Option<&IdempotencyCheck>,
        effects: &mut EffectsBuilder<'_>,
    ) -> Posted {
        let (deliveries, message) = (self.deliveries(&message), Arc::new(message));
        let posted = put_message(message.clone(), deliveries, idempotency, effects);
        create_runs(&message, during, None, addressed, effects);
        posted
    }
}

/// The mailboxes of agents in the room that subscribe to its path.
pub fn mailboxes(agents: &[AgentId], room: &Room, view: &WriterView<'_>) -> Vec<Recipient> {
    // Starts from the members: agents of any user may subscribe to all rooms, and must not add cost to
    // messages in rooms they are not in.
    if view.routes.is_empty() || agents.is_empty() {
        return Vec::new();
    }
    let path = Path::of_room(&room.id);
    agents.iter().flat_map(|agent| view.routes.of_agent(agent, &path)).collect()
}

/// Stores and publishes a message with its deliveries, and stores its idempotency key.
pub fn put_message(
    message: Arc<Message>,
    deliveries: Arc<[Delivery]>,
    idempotency: Option<&IdempotencyCheck>,
    effects: &mut EffectsBuilder<'_>,
) -> Posted {
    let (id, seq) = (message.id.clone(), message.seq);
    effects.change(MessageChange::PutMessage(message.clone()));
    for attachment in &message.attachments {
        effects.change(UploadChange::Attach { upload: attachment.id.clone(), message: id.clone() });
    }
    for delivery in deliveries.iter() {
        effects.change(MailChange::PutDelivery { delivery: delivery.clone(), seq });
    }
    if let Some(check) = idempotency {
        let first = FirstRequest { digest: check.digest, message: id.clone(), seq };
        let (key, at) = (check.key.clone(), effects.now);
        effects.change(MessageChange::RememberIdempotencyKey { key, first, at });
    }
    effects.publish(Event::MessagePosted { message: message.clone(), deliveries: deliveries.clone() });
    Posted { id, position: effects.position(seq), message: Some(message), deliveries, repeated: false }
}

/// The mailboxes that a message reaches: sessions first, then each agent once; the agent's copy names the
/// sessions that received the message. In a room, mentioned agents and observers are included.
pub fn deliveries(message: &Message, mailboxes: &[Recipient], observers: &[MemberId]) -> Arc<[Delivery]> {
    let mut sessions: Vec<SessionRef> = Vec::new();
    let mut agents: Vec<AgentId> = Vec::with_capacity(mailboxes.len());
    for Recipient { mailbox } in mailboxes {
        agents.push(mailbox.agent.clone());
        if let Some(session) = &mailbox.session {
            sessions.push(SessionRef { agent: mailbox.agent.clone(), session: session.clone() });
        }
    }
    if message.destination.room().is_some() {
        agents.extend(message.mentions.iter().filter_map(|mention| mention.member.agent().cloned()));
        agents.extend(observers.iter().filter_map(|observer| observer.agent().cloned()));
    }
    exclude_sender(message, &mut sessions, &mut agents);
    // Removes duplicates and fixes the order.
    sessions.sort_unstable();
    sessions.dedup();
    agents.sort_unstable();
    agents.dedup();
    let delivery = |mailbox, handled_by| Delivery {
        message: message.id.clone(),
        mailbox,
        state: DeliveryState::Pending,
        attempts: 0,
        handled_by,
    };
    let of_sessions = sessions.iter().map(|session| {
        let mailbox = Mailbox { agent: session.agent.clone(), session: Some(session.session.clone()) };
        delivery(mailbox, Vec::new())
    });
    let of_agents = agents.iter().map(|agent| {
        let handled_by = sessions.iter().filter(|session| session.agent == *agent).cloned().collect();
        delivery(Mailbox::of(agent.clone()), handled_by)
    });
    of_sessions.chain(of_agents).collect()
}

/// An agent does not receive its own broadcasts or room messages; it may send mail to itself.
fn exclude_sender(message: &Message, sessions: &mut Vec<SessionRef>, agents: &mut Vec<AgentId>) {
    let Sender::Agent(sender) = &message.sender else { return };
    let path = message.destination.path();
    let excluded = match &message.destination {
        Destination::Room(_) => true,
        Destination::Path(_) => path.strip_domain("agent").is_some_and(|id| id != sender.as_str()),
    };
    if excluded {
        agents.retain(|agent| agent != sender);
        sessions.retain(|session| session.agent != *sender);
    }
}
