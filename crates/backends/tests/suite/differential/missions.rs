//! Random commands for missions and idle prompts.

use super::agents::agent;
use super::asks::{TEXTS, room, selection};
use super::dice::Dice;
use super::world::World;
use parlor_model::command::{EndMission, PromptIdle, SetIdlePrompt, SetMission};
use parlor_model::{AgentId, IdlePrompt, MissionId, RoomId, RoomSelection};

fn idle(dice: &mut Dice) -> IdlePrompt {
    IdlePrompt {
        prompt: dice.maybe(|dice| dice.one_of(&TEXTS).into()),
        interval: dice.maybe(|dice| dice.one_of(&[30, 60, 29])),
    }
}

/// A room and an agent that, in most cases, is a member of it.
fn room_and_agent(dice: &mut Dice, world: &World) -> (RoomId, AgentId) {
    let any = (room(dice, world), agent(dice, world));
    let members = world.memberships.iter();
    let here: Vec<_> = members.filter_map(|(room, own)| Some((room.clone(), own.agent()?.clone()))).collect();
    if dice.once_in(4) { any } else { dice.known(&here, any) }
}

pub fn set(dice: &mut Dice, world: &World) -> SetMission {
    let (room, agent) = room_and_agent(dice, world);
    let agents = dice.maybe(|dice| (agent, idle(dice))).into_iter().collect();
    SetMission { rooms: selection(dice, room), text: dice.one_of(&TEXTS).into(), agents }
}

pub fn end(dice: &mut Dice, world: &World) -> EndMission {
    let (room, _) = room_and_agent(dice, world);
    EndMission { rooms: selection(dice, room) }
}

pub fn set_idle(dice: &mut Dice, world: &World) -> SetIdlePrompt {
    let (room, agent) = room_and_agent(dice, world);
    let rooms = if dice.once_in(3) { RoomSelection::EMPTY } else { selection(dice, room) };
    SetIdlePrompt { agent, rooms, idle: dice.maybe(idle) }
}

pub fn prompt(dice: &mut Dice, world: &World) -> PromptIdle {
    let never = (MissionId::stored("never"), agent(dice, world));
    let latest = world.missions.last().cloned().unwrap_or(never.clone());
    let (mission, agent) = if dice.once_in(3) { dice.known(&world.missions, never) } else { latest };
    PromptIdle { mission, agent }
}
