//! Decides who receives a routed message.
//!
//! Owns: cascade, sender exclusion, dead letters. Never: reads a store or sends a byte.

use super::{Change, Draft, Plan, messages};
use crate::routes::RouteChange;
use parlor_model::{
    Agent, Command, Delivery, DeliveryState, Event, Mailbox, Message, MessageId, MessageKind, Path, Pattern,
    Place, Receipt, Refusal, RoomId, Route, Sender, SessionRef, Subscription, Thing, mention,
};
use std::collections::BTreeSet;
use std::sync::Arc;

/// How many agents one person may have. Everyone's are in the one routing index, and all of a person's leave
/// with them at once.
const MOST_AGENTS: usize = 1000;

pub fn plan(command: &Command, mut draft: Draft) -> Result<Plan, Refusal> {
    match command {
        Command::CreateAgent { id, name, description, subscriptions } => {
            // On the broker people and agents are told apart by their ids alone.
            if draft.facts.agent.is_some() || draft.facts.user.is_some() {
                return Err(Refusal::AlreadyExists(Thing::Agent));
            }
            if draft.facts.agents.len() >= MOST_AGENTS {
                return Err(Refusal::invalid("id", "one more than the 1000 agents a person may have"));
            }
            let now = draft.facts.now;
            let owner = draft.actor()?.id.clone();
            let agent = Arc::new(Agent {
                id: id.clone(),
                owner,
                name: name.clone(),
                description: description.clone(),
                created_at: now,
            });
            draft.change(Change::PutAgent(agent.clone()));
            let own = Pattern::stored(Path::of_agent(id).as_str());
            draft.routes.push(RouteChange::Add { pattern: own, mailbox: Mailbox::of(id.clone()) });
            let wanted: BTreeSet<&Pattern> = subscriptions.iter().collect();
            for pattern in wanted {
                let mailbox = Mailbox::of(id.clone());
                draft.routes.push(RouteChange::Add { pattern: pattern.clone(), mailbox });
                draft.change(Change::PutSubscription(Subscription {
                    agent: id.clone(),
                    session: None,
                    pattern: pattern.clone(),
                    added_at: now,
                }));
            }
            draft.tell(Event::AgentChanged(agent.clone()));
            draft.done(Receipt::Agent { agent, subscriptions: subscriptions.clone() })
        }
        Command::Route(route) => self::route(route, draft),
        Command::Receive { agent, .. } => {
            let mail = draft.facts.mail.clone();
            if !mail.is_empty() {
                let messages = mail.iter().map(|(message, _)| message.id.clone()).collect();
                draft.change(Change::MarkDelivered { mailbox: Mailbox::of(agent.clone()), messages });
            }
            draft.done(Receipt::Received { mail })
        }
        _ => unreachable!("the dispatcher sends only agent commands here"),
    }
}

fn route(route: &Route, mut draft: Draft) -> Result<Plan, Refusal> {
    if let Some(repeated) = messages::repeated(&draft)? {
        return draft.done(Receipt::Posted(repeated));
    }
    let (sender, sender_name) = match &draft.facts.agent {
        Some(agent) => (Sender::Agent(agent.id.clone()), agent.name.clone()),
        None => (Sender::Source(route.from.clone()), route.from.clone()),
    };
    // From an agent a wildcard would be a broadcast; from a source it is plain text.
    if draft.facts.agent.is_some() && route.path.has_wildcard() {
        return Err(Refusal::invalid("path", "wildcards are not allowed in a delivery path"));
    }
    let place = match route.path.below("room").map(RoomId::parse) {
        Some(Ok(room)) if draft.facts.room.is_some() => Place::Room(room),
        _ => Place::Path(route.path.clone()),
    };
    let to_room = place.room().is_some();
    let text: Arc<str> = match (&route.text, to_room) {
        (Some(text), _) => text.clone(),
        (None, true) => return Err(Refusal::invalid("payload", "a message to a room needs payload.text")),
        (None, false) => "".into(),
    };
    let message = Message {
        id: MessageId::stored(draft.mint.ids.next()),
        seq: draft.next_seq(),
        at: draft.facts.now,
        place,
        sender,
        sender_name,
        kind: if to_room { MessageKind::AgentResponse } else { MessageKind::Text },
        mentions: mention::resolve(&text, &[], &draft.facts.members),
        text,
        reply_to: None,
        client_message_id: None,
        command: Some(route.command.clone()),
        payload: Some(route.payload.clone()),
        source: route.source.clone(),
        external_id: route.external_id.clone(),
        edited_at: None,
    };
    let posted = messages::enter(message, &mut draft);
    if !to_room
        && posted.deliveries.is_empty()
        && let Some(message) = &posted.message
    {
        draft.change(Change::DeadLetter { message: message.clone(), reason: "no_subscribers" });
    }
    draft.done(Receipt::Posted(posted))
}

/// The mailboxes a message reaches: sessions first, then each agent once, its copy naming the
/// sessions that took the message. In a room, mentioned agents are reached too.
pub fn deliveries(message: &Message, draft: &Draft) -> Arc<[Delivery]> {
    let mut sessions: BTreeSet<SessionRef> = BTreeSet::new();
    let mut agents = BTreeSet::new();
    for recipient in &draft.facts.recipients {
        let mailbox = &recipient.mailbox;
        agents.insert(mailbox.agent.clone());
        if let Some(session) = &mailbox.session {
            sessions.insert(SessionRef { agent: mailbox.agent.clone(), session: session.clone() });
        }
    }
    if message.place.room().is_some() {
        agents.extend(message.mentions.iter().filter_map(|mention| mention.member.agent().cloned()));
    }
    exclude_sender(message, &mut sessions, &mut agents);
    let delivery = |mailbox, handled_by| Delivery {
        message: message.id.clone(),
        mailbox,
        state: DeliveryState::Pending,
        handled_by,
    };
    let of_sessions = sessions.iter().map(|taker| {
        let mailbox = Mailbox { agent: taker.agent.clone(), session: Some(taker.session.clone()) };
        delivery(mailbox, Vec::new())
    });
    let of_agents = agents.iter().map(|agent| {
        let handled_by = sessions.iter().filter(|taker| taker.agent == *agent).cloned().collect();
        delivery(Mailbox::of(agent.clone()), handled_by)
    });
    of_sessions.chain(of_agents).collect()
}

/// An agent does not hear its own broadcasts, nor itself in a room; it may write to itself.
fn exclude_sender(
    message: &Message,
    sessions: &mut BTreeSet<SessionRef>,
    agents: &mut BTreeSet<parlor_model::AgentId>,
) {
    let Sender::Agent(sender) = &message.sender else { return };
    let path = message.place.path();
    let excluded = match &message.place {
        Place::Room(_) => true,
        Place::Path(_) => path.below("agent").is_some_and(|id| id != sender.as_str()),
    };
    if excluded {
        agents.remove(sender);
        sessions.retain(|taker| taker.agent != *sender);
    }
}
