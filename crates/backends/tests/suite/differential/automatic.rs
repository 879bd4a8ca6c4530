//! Random commands for automatic turns and heartbeats.

use super::agents::{HEARTBEAT, agent};
use super::dice::Dice;
use super::world::World;
use parlor_model::command::{BatchVerdict, DecideBatch, ReleaseBatch, SendHeartbeat, TriggerTurn, TurnInput};
use parlor_model::{MessageId, SessionId};

fn session(dice: &mut Dice) -> SessionId {
    SessionId::stored(dice.one_of(&["main", "side"]))
}

fn messages(dice: &mut Dice, world: &World) -> Vec<MessageId> {
    (0..dice.roll(4)).map(|_| dice.known(&world.messages, MessageId::stored("never"))).collect()
}

pub fn trigger(dice: &mut Dice, world: &World) -> TriggerTurn {
    let input = match dice.roll(3) {
        0 => TurnInput::Prompt("go".into()),
        _ => TurnInput::Mail(messages(dice, world)),
    };
    TriggerTurn { agent: agent(dice, world), session: session(dice), input }
}

pub fn decide(dice: &mut Dice, world: &World) -> DecideBatch {
    let reason = "because".into();
    let verdict = match dice.roll(4) {
        0 => BatchVerdict::Hold { reason },
        1 => BatchVerdict::Decline { reason },
        _ => BatchVerdict::Start { reason },
    };
    let messages = messages(dice, world);
    DecideBatch { agent: agent(dice, world), session: session(dice), messages, verdict }
}

pub fn release(dice: &mut Dice, world: &World) -> ReleaseBatch {
    ReleaseBatch { agent: agent(dice, world), session: session(dice) }
}

pub fn heartbeat(dice: &mut Dice, world: &World) -> SendHeartbeat {
    SendHeartbeat { agent: agent(dice, world), cron: HEARTBEAT.trim_matches('"').into() }
}
