//! Decides `Chat`: creates a private room with a user and an agent and posts the first message, in one
//! transaction.

use super::{Change, Effects, EffectsBuilder, messages, rooms, runs, uploads};
use crate::commands::runs::Candidate;
use crate::facts::{Facts, NameAndHandle};
use crate::ports::BudgetUsage;
use parlor_model::{
    AddressedBy, AgentId, Destination, EntityKind, Event, MemberChange, MemberId, Mention, Message,
    MessageId, MessageKind, Post, Receipt, Refusal, Room, RoomId, RoomKind, RoomRole, Sender,
};
use std::sync::Arc;

/// A chat's title: number of words taken from its first message, and maximum characters.
const TITLE_WORDS_AND_CHARS: (usize, usize) = (6, 60);

pub fn decide(agent: &AgentId, post: &Post, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let (actor, now) = (effects_builder.actor()?, effects_builder.facts.now);
    let found = effects_builder.facts.agent.as_ref().filter(|found| found.id == *agent);
    let found = found.ok_or(Refusal::NotFound(EntityKind::Agent))?.clone();
    if !found.is_hosted() {
        return Err(Refusal::invalid("agent_id", "must name an agent that has a host"));
    }
    let room = Arc::new(Room {
        id: RoomId::stored(effects_builder.decide_context.ids.next()),
        name: title(&post.text),
        kind: RoomKind::Private,
        policy: Default::default(),
        system_prompt: None,
        agent_command_role: RoomRole::Member,
        approve_role: RoomRole::Member,
        router: None,
        frozen: None,
        project_root: None,
        created_by: actor.id.clone(),
        created_at: now,
        updated_at: now,
    });
    let own = NameAndHandle { name: actor.display_name.clone(), handle: actor.username.clone() };
    let its = NameAndHandle { name: found.name.clone(), handle: found.id.as_str().into() };
    let addressed = MemberId::Agent(found.id.clone());
    let members = [
        rooms::member(&room, MemberId::User(actor.id.clone()), RoomRole::Owner, &own, now),
        rooms::member(&room, addressed.clone(), RoomRole::Member, &its, now),
    ];
    // From here on the decision proceeds as if the room had existed before.
    let candidate = Candidate {
        agent: found.clone(),
        addressed: AddressedBy::Directly,
        spent: BudgetUsage::default(),
        asked: 0,
    };
    let facts = Facts {
        room: Some(room.clone()),
        membership: Some(Arc::new(members[0].clone())),
        addressed: vec![candidate],
        ..effects_builder.facts.clone()
    };
    let mut effects_builder = EffectsBuilder::new(&facts, effects_builder.decide_context);
    let attachments = uploads::attachments(post, &effects_builder)?;
    effects_builder.change(Change::PutRoom(room.clone()));
    let event_members = rooms::members_for_event(&members);
    for member in members {
        let change = MemberChange::Added(member.member.clone());
        effects_builder.change(Change::PutMember(Arc::new(member)));
        effects_builder.publish(Event::MembersChanged {
            room: room.clone(),
            change,
            members: event_members.clone(),
        });
    }
    let message = Message {
        id: MessageId::stored(effects_builder.decide_context.ids.next()),
        seq: effects_builder.next_seq(),
        at: now,
        destination: Destination::Room(room.id.clone()),
        sender: Sender::User(actor.id.clone()),
        sender_name: actor.display_name.clone(),
        kind: MessageKind::Text,
        text: post.text.clone(),
        mentions: vec![Mention { member: addressed, name: found.name.clone() }],
        reply_to: None,
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments,
        client_message_id: None,
        command: None,
        payload: None,
        source: "internal".into(),
        external_id: None,
        edited_at: None,
        run_output: None,
        relayed: None,
    };
    let posted = messages::post(message, &mut effects_builder);
    if let Some(message) = &posted.message {
        runs::create_runs(message, None, None, &mut effects_builder);
    }
    effects_builder.done(Receipt::Posted(posted))
}

fn title(text: &str) -> Box<str> {
    let words: Vec<&str> = text.split_whitespace().take(TITLE_WORDS_AND_CHARS.0).collect();
    let title: String =
        words.join(" ").chars().filter(|c| !c.is_control()).take(TITLE_WORDS_AND_CHARS.1).collect();
    if title.trim().is_empty() { "Chat".into() } else { title.trim().into() }
}
