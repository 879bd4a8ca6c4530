//! Decides commands on messages in rooms: post, edit, delete, rewind, forward, mark as read.

use super::{Change, Effects, EffectsBuilder, approvals, runs, uploads};
use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::commands::messages::recipients;
use parlor_model::command::{Posted, RewindResult};
use parlor_model::{
    Agent, Command, Destination, EntityKind, Event, Forwarded, Message, MessageId, MessageKind, Receipt,
    Refusal, Revision, RoomId, RunOutcome, Sender, Seq, mention,
};
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::Edit { text, .. } => edit(text, effects_builder),
        Command::Delete { .. } => {
            let message =
                effects_builder.facts.message.as_ref().ok_or(Refusal::NotFound(EntityKind::Message))?;
            delete([&**message], effects_builder)
        }
        Command::DeleteMany { .. } => {
            let found = effects_builder.facts.batch.iter().filter_map(|(message, _)| message.as_deref());
            delete(found, effects_builder)
        }
        Command::Rewind { room, .. } => rewind(room, effects_builder),
        Command::Forward { room, client_message_id, .. } => {
            forward(room, client_message_id.as_deref(), effects_builder)
        }
        Command::MarkRead { room } => {
            let mut effects_builder = effects_builder;
            let user = effects_builder.actor()?;
            let through = effects_builder.facts.newest.unwrap_or_default();
            let at = effects_builder.facts.now;
            effects_builder.change(Change::MarkRead {
                room: room.clone(),
                user: user.id.clone(),
                through,
                at,
            });
            effects_builder.publish(Event::RoomRead {
                room: room.clone(),
                user: user.id.clone(),
                username: user.username.clone(),
                at,
            });
            effects_builder.done(Receipt::Done)
        }
        Command::MarkAllRead => mark_all_read(effects_builder),
        _ => unreachable!("the dispatcher sends only message commands here"),
    }
}

/// The receipt of the first request, if this is a retry; a refusal, if the key was used for a different
/// request.
pub fn first_receipt(effects_builder: &EffectsBuilder) -> Result<Option<Posted>, Refusal> {
    IdempotencyCheck::first_receipt(effects_builder.facts.once.as_ref(), effects_builder)
}

/// Posts a message and creates runs for the agents that it addresses.
pub fn post_and_start_runs(message: Message, effects_builder: &mut EffectsBuilder) -> Posted {
    let posted = post(message, effects_builder);
    if let Some(message) = &posted.message {
        runs::create_runs(message, None, None, effects_builder);
    }
    posted
}

/// Posts a message, with its deliveries to mailboxes, and stores its idempotency key.
pub fn post(message: Message, effects_builder: &mut EffectsBuilder) -> Posted {
    let facts = effects_builder.facts;
    let deliveries = recipients::deliveries(&message, &facts.recipients, &[]);
    recipients::put_message(Arc::new(message), deliveries, facts.once.as_ref(), effects_builder)
}

fn edit(text: &Arc<str>, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let old = effects_builder.facts.message.as_ref().ok_or(Refusal::NotFound(EntityKind::Message))?;
    if old.text == *text {
        let same = old.clone();
        return effects_builder.done(Receipt::Message(same));
    }
    let now = effects_builder.facts.now;
    let previous = Revision { message: old.id.clone(), text: (&*old.text).into(), edited_at: now };
    let message = Arc::new(Message {
        text: text.clone(),
        mentions: mention::resolve(text, &[], &effects_builder.facts.members),
        edited_at: Some(now),
        ..Message::clone(old)
    });
    effects_builder.change(Change::Revise { message: message.clone(), previous });
    effects_builder.publish(Event::MessageEdited(message.clone()));
    effects_builder.done(Receipt::Message(message))
}

/// Forwards a message as a quotation: users and agents that it mentions are not addressed again.
fn forward(
    room: &RoomId,
    client_message_id: Option<&str>,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    if let Some(repeated) = first_receipt(&effects_builder)? {
        return effects_builder.done(Receipt::Posted(repeated));
    }
    let actor = effects_builder.actor()?;
    let first = effects_builder.facts.message.as_ref().ok_or(Refusal::NotFound(EntityKind::Message))?;
    let (limit, got) = (effects_builder.decide_context.limits.message_characters, first.text.chars().count());
    if got > limit {
        return Err(Refusal::TooLarge { limit, got });
    }
    // A message that was forwarded before keeps the name of its original sender.
    let forwarded = first.forwarded.clone().unwrap_or_else(|| {
        Box::new(Forwarded {
            message: first.id.clone(),
            sender: first.sender.clone(),
            sender_name: first.sender_name.clone(),
            at: first.at,
        })
    });
    let attachments = uploads::copies(&mut effects_builder)?;
    let message = Message {
        id: MessageId::stored(effects_builder.decide_context.ids.next()),
        seq: effects_builder.next_seq(),
        at: effects_builder.facts.now,
        destination: Destination::Room(room.clone()),
        sender: Sender::User(actor.id.clone()),
        sender_name: actor.display_name.clone(),
        kind: MessageKind::Text,
        text: first.text.clone(),
        mentions: Vec::new(),
        reply_to: None,
        attachments,
        thread: None,
        reactions: Vec::new(),
        forwarded: Some(forwarded),
        client_message_id: client_message_id.map(Into::into),
        command: None,
        payload: None,
        source: "internal".into(),
        external_id: None,
        edited_at: None,
        run_output: None,
        relayed: None,
    };
    let posted = post_and_start_runs(message, &mut effects_builder);
    effects_builder.done(Receipt::Posted(posted))
}

fn delete<'a>(
    messages: impl IntoIterator<Item = &'a Message>,
    mut effects_builder: EffectsBuilder<'a>,
) -> Result<Effects, Refusal> {
    for message in messages {
        let room = message.destination.room().cloned().ok_or(Refusal::NotFound(EntityKind::Message))?;
        effects_builder.change(Change::DeleteMessage(message.id.clone()));
        effects_builder.publish(Event::MessageDeleted { room, message: message.id.clone() });
    }
    effects_builder.done(Receipt::Done)
}

/// Maximum number of messages removed by one rewind.
pub const MAX_REWOUND_MESSAGES: usize = 1000;
/// Capability of agents that can forget a part of their conversation.
const REWIND_CAPABILITY: &str = "rewind";

/// Removes a message and everything after it. Requires that every agent in the room has the rewind
/// capability; otherwise an agent would continue from messages that no user can see.
fn rewind(room: &RoomId, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let message = facts.message.clone().ok_or(Refusal::NotFound(EntityKind::Message))?;
    let can_rewind = |agent: &Agent| agent.host.capabilities.iter().any(|name| **name == *REWIND_CAPABILITY);
    if !facts.agents.iter().all(can_rewind) {
        return Err(Refusal::invalid("roomId", "contains an agent without the rewind capability"));
    }
    if facts.messages_from_target.len() > MAX_REWOUND_MESSAGES {
        return Err(Refusal::invalid("messageId", "is followed by more than 1000 messages"));
    }
    approvals::withdraw(&mut effects_builder);
    let open = facts.open_runs.iter();
    let ended = open.filter_map(|run| run.ended(RunOutcome::Cancelled, None, facts.now).ok());
    let ended = ended.map(|run| runs::put(run, &mut effects_builder)).collect();
    for message in &facts.messages_from_target {
        effects_builder.change(Change::DeleteMessage(message.id.clone()));
        effects_builder.publish(Event::MessageDeleted { room: room.clone(), message: message.id.clone() });
    }
    let rewound = RewindResult {
        message,
        removed: facts.messages_from_target.iter().map(|message| message.id.clone()).collect(),
        ended,
        agents: facts.agents.iter().map(|agent| agent.id.clone()).collect(),
        through: Seq(effects_builder.next_seq().0 - 1),
    };
    effects_builder.done(Receipt::Rewound(Box::new(rewound)))
}

fn mark_all_read(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let user = effects_builder.actor()?;
    let at = effects_builder.facts.now;
    for membership in &effects_builder.facts.memberships {
        let Some(through) = membership.newest.filter(|newest| *newest > membership.member.read_through)
        else {
            continue;
        };
        let room = membership.room.id.clone();
        effects_builder.change(Change::MarkRead { room: room.clone(), user: user.id.clone(), through, at });
        effects_builder.publish(Event::RoomRead {
            room,
            user: user.id.clone(),
            username: user.username.clone(),
            at,
        });
    }
    effects_builder.done(Receipt::Done)
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{NOW, agent, decide_with, facts, mail};
    use super::*;
    use crate::facts::Facts;
    use parlor_model::{
        AddressedBy, AgentId, ConversationId, DeliveryState, Lineage, Run, RunId, RunState, Usage,
    };

    fn room() -> RoomId {
        RoomId::stored("a")
    }

    fn message(number: usize) -> Arc<Message> {
        let (message, _) = mail(&format!("m{number}"), "coder", DeliveryState::Pending, 0);
        Arc::new(Message { destination: Destination::Room(room()), ..Message::clone(&message) })
    }

    fn run(id: &str, state: RunState) -> Run {
        Run {
            id: RunId::stored(id),
            agent: AgentId::stored("coder"),
            room: room(),
            trigger: None,
            task: None,
            asked_by: None,
            arrival: None,
            addressed: AddressedBy::Directly,
            lineage: Lineage::start(ConversationId::stored("c"), AgentId::stored("coder")),
            parent: None,
            state,
            reply: None,
            usage: Usage::default(),
            queued_at: NOW,
            started_at: None,
            ended_at: None,
        }
    }

    fn given(later: usize, can_rewind: &[bool]) -> Facts {
        let agents = can_rewind.iter().map(|can_rewind| {
            let mut agent = agent("coder");
            agent.host.capabilities.extend(can_rewind.then(|| REWIND_CAPABILITY.into()));
            agent
        });
        Facts {
            message: Some(message(0)),
            messages_from_target: (0..later).map(message).collect(),
            open_runs: vec![run("1", RunState::Running), run("2", RunState::Queued)],
            agents: agents.collect(),
            ..facts()
        }
    }

    #[test]
    fn a_rewind_ends_runs_and_deletes_everything_from_the_message_on() {
        let rewind = Command::Rewind { room: room(), message: MessageId::stored("m0") };
        let plan = decide_with(&rewind, &given(2, &[true, true])).unwrap();
        let events: Vec<String> = plan
            .events
            .iter()
            .map(|logged_event| match &logged_event.event {
                Event::RunChanged(run) => format!("{} {:?}", run.id, run.state),
                Event::MessageDeleted { message, .. } => format!("{message} deleted"),
                other => panic!("{other:?}"),
            })
            .collect();
        assert_eq!(events, ["1 Ended(Cancelled)", "2 Ended(Cancelled)", "m0 deleted", "m1 deleted"]);
        let Receipt::Rewound(rewound) = plan.receipt else { panic!("not rewound") };
        assert_eq!(rewound.removed, ["m0", "m1"].map(MessageId::stored));
        assert_eq!((rewound.ended.len(), rewound.agents.len()), (2, 2));
        assert_eq!(rewound.through, plan.events[3].seq);
    }

    #[test]
    fn a_rewind_is_refused_if_an_agent_lacks_the_capability_or_it_is_too_long() {
        let rewind = Command::Rewind { room: room(), message: MessageId::stored("m0") };
        let field = |facts: &Facts| match decide_with(&rewind, facts) {
            Err(Refusal::Invalid(errors)) => errors[0].field.clone(),
            other => panic!("{other:?}"),
        };
        assert_eq!(field(&given(2, &[true, false])), "roomId");
        assert_eq!(field(&given(MAX_REWOUND_MESSAGES + 1, &[true])), "messageId");
        assert!(decide_with(&rewind, &given(MAX_REWOUND_MESSAGES, &[])).is_ok());
    }
}
