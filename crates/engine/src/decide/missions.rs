//! Decides missions: goals that agents pursue on their own, and the prompts that idle agents receive.
//!
//! Owns: at most one active mission per mission scope, published to all rooms of the scope. A prompt and its
//! record are one transaction, so that no agent is prompted twice after a crash.

use super::{Change, Effects, EffectsBuilder, messages, runs};
use parlor_model::mission::SOURCE;
use parlor_model::{
    AgentId, Command, Destination, EntityKind, Event, EventAudience, IdlePrompt, MemberId, Mention, Message,
    MessageId, MessageKind, Mission, MissionAgent, MissionId, MissionScope, Receipt, Refusal, Room, RoomRole,
    Sender,
};
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::SetMission { text, agents, .. } => set(text, agents, effects_builder),
        Command::EndMission { .. } => {
            let mut effects_builder = effects_builder;
            let mission = active_mission(&effects_builder).ok_or(Refusal::NotFound(EntityKind::Mission))?;
            end(&mission, &mut effects_builder);
            publish_rooms(&mut effects_builder);
            effects_builder.done(Receipt::Done)
        }
        Command::SetIdlePrompt { agent, room, idle } => {
            set_idle(agent, room.is_some(), idle.as_ref(), effects_builder)
        }
        Command::PromptIdle { agent, .. } => prompt(agent, effects_builder),
        _ => unreachable!("the dispatcher sends only mission commands here"),
    }
}

fn require_room(effects_builder: &EffectsBuilder) -> Result<Arc<Room>, Refusal> {
    effects_builder.facts.room.clone().ok_or(Refusal::NotFound(EntityKind::Room))
}

/// The active mission of the scope, if any.
fn active_mission(effects_builder: &EffectsBuilder) -> Option<Mission> {
    effects_builder.facts.mission.clone().filter(Mission::is_on)
}

/// Publishes a change of every room in the scope: the mission is part of what clients see of a room.
fn publish_rooms(effects_builder: &mut EffectsBuilder) {
    let facts = effects_builder.facts;
    facts.realm.iter().for_each(|room| effects_builder.publish(Event::RoomChanged(room.clone())));
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
    let (room, actor) = (require_room(&effects_builder)?, effects_builder.actor()?);
    if let Some(before) = active_mission(&effects_builder) {
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
    publish_rooms(&mut effects_builder);
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
        if in_room { MissionScope::of(&*require_room(&effects_builder)?) } else { MissionScope::Global };
    effects_builder.change(Change::PutIdlePrompt {
        mission_scope,
        agent: agent.clone(),
        idle: idle.cloned(),
    });
    match (in_room, &effects_builder.facts.agent) {
        (true, _) => publish_rooms(&mut effects_builder),
        // An agent's own idle prompt is part of what clients see of the agent.
        (false, Some(agent)) => {
            let audience = EventAudience::of(agent, effects_builder.facts.rooms.clone()).into();
            effects_builder.publish(Event::AgentChanged { agent: Arc::new(agent.clone()), audience });
        }
        (false, None) => {}
    }
    effects_builder.done(Receipt::Done)
}

/// Posts the idle prompt to an agent in the name of the user who set the mission, if all conditions still
/// hold.
fn prompt(agent: &AgentId, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let no_mission = Refusal::NotFound(EntityKind::Mission);
    let mission = active_mission(&effects_builder).ok_or(no_mission.clone())?;
    let room = facts
        .room
        .clone()
        .filter(|room| MissionScope::of(room) == mission.mission_scope)
        .ok_or(no_mission.clone())?;
    let is_admin = facts.membership.as_ref().filter(|own| own.role >= RoomRole::Admin);
    let (Some(by), Some(_)) = (&facts.user, is_admin) else { return Err(no_mission) };
    let candidate = facts.addressed.iter().find(|candidate| candidate.agent.id == *agent).cloned();
    let candidate =
        candidate.filter(|_| facts.target.is_some()).ok_or(Refusal::NotFound(EntityKind::Agent))?;
    let idle = mission.idle(agent, facts.overridden.as_ref(), facts.own_idle.as_ref());
    let idle = idle.ok_or(Refusal::NotFound(EntityKind::Override))?;
    let prompt_after =
        mission.agent(agent).and_then(|known| known.prompted_at).map(|at| at.plus(idle.idle_timeout()));
    let too_soon = prompt_after.is_some_and(|until| facts.now < until);
    let limit_reached = mission.prompts >= Mission::MAX_PROMPTS;
    // A prompt whose run would be refused is not posted at all.
    if facts.busy
        || too_soon
        || limit_reached
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
        relayed: None,
    };
    let posted = messages::post_and_start_runs(message, &mut effects_builder);
    effects_builder.done(Receipt::Posted(posted))
}
