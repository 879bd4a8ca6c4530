//! What agents are to pursue by themselves, and what is said to them when they are idle.
//!
//! Owns: one mission at a time in a realm, told in all rooms of it; who is prompted and that they were is one transaction, so that nobody is
//! prompted twice, whatever happens in between.

use super::{Change, Effects, EffectsBuilder, messages, runs};
use parlor_model::mission::SOURCE;
use parlor_model::{
    AgentId, Command, Destination, EntityKind, Event, EventAudience, IdlePrompt, MemberId, Mention, Message,
    MessageId, MessageKind, Mission, MissionAgent, MissionId, MissionScope, Receipt, Refusal, Room, RoomId,
    RoomRole, Sender,
};
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::SetMission { text, agents, .. } => set(text, agents, effects_builder),
        Command::EndMission { .. } => {
            let mut effects_builder = effects_builder;
            let mission = running(&effects_builder).ok_or(Refusal::NotFound(EntityKind::Mission))?;
            end(&mission, &mut effects_builder);
            tell(&mut effects_builder);
            effects_builder.done(Receipt::Done)
        }
        Command::SetIdlePrompt { agent, room, idle } => {
            set_idle(agent, room.is_some(), idle.as_ref(), effects_builder)
        }
        Command::PromptIdle { agent, .. } => prompt(agent, effects_builder),
        _ => unreachable!("the dispatcher sends only missions here"),
    }
}

fn the_room(effects_builder: &EffectsBuilder) -> Result<Arc<Room>, Refusal> {
    effects_builder.facts.room.clone().ok_or(Refusal::NotFound(EntityKind::Room))
}

/// The one that is on, among those of the realm.
fn running(effects_builder: &EffectsBuilder) -> Option<Mission> {
    effects_builder.facts.mission.clone().filter(Mission::is_on)
}

/// It is part of what each room of the realm is.
fn tell(effects_builder: &mut EffectsBuilder) {
    let facts = effects_builder.facts;
    facts.realm.iter().for_each(|room| effects_builder.tell(Event::RoomChanged(room.clone())));
}

/// A room leaves its realm. The mission that prompts there ends with that, and the others of the realm are told.
pub fn leave_realm(room: &RoomId, effects_builder: &mut EffectsBuilder) {
    let Some(mission) = running(effects_builder).filter(|mission| mission.room == *room) else { return };
    end(&mission, effects_builder);
    let facts = effects_builder.facts;
    let others = facts.realm.iter().filter(|other| other.id != *room);
    others.for_each(|other| effects_builder.tell(Event::RoomChanged(other.clone())));
}

fn end(mission: &Mission, effects_builder: &mut EffectsBuilder) {
    let ended = Mission { ended_at: Some(effects_builder.facts.now), ..mission.clone() };
    effects_builder.change(Change::PutMission(Arc::new(ended)));
}

fn set(
    text: &str,
    agents: &[(AgentId, IdlePrompt)],
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let (room, actor) = (the_room(&effects_builder)?, effects_builder.actor()?);
    if let Some(before) = running(&effects_builder) {
        end(&before, &mut effects_builder);
    }
    let named = |(agent, idle): &(AgentId, IdlePrompt)| MissionAgent {
        agent: agent.clone(),
        named: true,
        idle: idle.clone(),
        prompted_at: None,
    };
    let mut agents: Vec<MissionAgent> = agents.iter().map(named).collect();
    agents.sort_by(|one, other| one.agent.cmp(&other.agent));
    let mission = Mission {
        id: MissionId::stored(effects_builder.decide_context.ids.next()),
        mission_scope: MissionScope::of(&room),
        room: room.id.clone(),
        text: text.trim().into(),
        agents,
        created_by: actor.id.clone(),
        created_at: effects_builder.facts.now,
        ended_at: None,
        prompts: 0,
    };
    let mission = Arc::new(mission);
    effects_builder.change(Change::PutMission(mission.clone()));
    tell(&mut effects_builder);
    effects_builder.done(Receipt::Mission(mission))
}

fn set_idle(
    agent: &AgentId,
    in_room: bool,
    idle: Option<&IdlePrompt>,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    if idle.is_none() && effects_builder.facts.overridden.is_none() {
        return Err(Refusal::NotFound(EntityKind::Override));
    }
    let mission_scope =
        if in_room { MissionScope::of(&*the_room(&effects_builder)?) } else { MissionScope::Global };
    effects_builder.change(Change::PutIdlePrompt {
        mission_scope,
        agent: agent.clone(),
        idle: idle.cloned(),
    });
    match (in_room, &effects_builder.facts.agent) {
        (true, _) => tell(&mut effects_builder),
        // What it says of itself is part of what an agent is.
        (false, Some(agent)) => {
            let event_audience = EventAudience::of(agent, effects_builder.facts.rooms.clone()).into();
            effects_builder
                .tell(Event::AgentChanged { agent: Arc::new(agent.clone()), circle: event_audience });
        }
        (false, None) => {}
    }
    effects_builder.done(Receipt::Done)
}

/// Says to an idle agent what it is to do, in the name of who set the mission, if all of it still holds.
fn prompt(agent: &AgentId, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let gone = Refusal::NotFound(EntityKind::Mission);
    let mission = running(&effects_builder).ok_or(gone.clone())?;
    let room = facts
        .room
        .clone()
        .filter(|room| MissionScope::of(room) == mission.mission_scope)
        .ok_or(gone.clone())?;
    let still = facts.membership.as_ref().filter(|own| own.role >= RoomRole::Admin);
    let (Some(by), Some(_)) = (&facts.user, still) else { return Err(gone) };
    let candidate = facts.addressed.iter().find(|candidate| candidate.agent.id == *agent).cloned();
    let candidate =
        candidate.filter(|_| facts.target.is_some()).ok_or(Refusal::NotFound(EntityKind::Agent))?;
    let idle = mission.idle(agent, facts.overridden.as_ref(), facts.own_idle.as_ref());
    let idle = idle.ok_or(Refusal::NotFound(EntityKind::Override))?;
    let waits_for =
        mission.agent(agent).and_then(|known| known.prompted_at).map(|at| at.plus(idle.idle_timeout()));
    let too_soon = waits_for.is_some_and(|until| facts.now < until);
    let enough = mission.prompts >= Mission::MOST_PROMPTS;
    // What would be refused is not said either: nobody would read it.
    if facts.busy
        || too_soon
        || enough
        || runs::refusal_reason(&room, &candidate, None, &effects_builder).is_some()
    {
        return Err(Refusal::Forbidden);
    }
    effects_builder.change(Change::PutMission(Arc::new(mission.prompted(agent, facts.now))));
    let message = Message {
        id: MessageId::stored(effects_builder.decide_context.ids.next()),
        seq: effects_builder.next_seq(),
        at: facts.now,
        destination: Destination::Room(room.id.clone()),
        sender: Sender::User(by.id.clone()),
        sender_name: by.display_name.clone(),
        kind: MessageKind::Text,
        text: mission.prompt(agent, &idle).into(),
        mentions: vec![Mention {
            member: MemberId::Agent(agent.clone()),
            name: candidate.agent.name.clone(),
        }],
        reply_to: None,
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments: Vec::new(),
        client_message_id: None,
        command: None,
        payload: None,
        source: SOURCE.into(),
        external_id: Some(mission.id.as_str().into()),
        edited_at: None,
        run_output: None,
    };
    let posted = messages::post_and_start_runs(message, &mut effects_builder);
    effects_builder.done(Receipt::Posted(posted))
}
