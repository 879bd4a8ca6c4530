//! Starts a queued run, or ends it as refused because its conditions have changed since it was queued.

use super::context::{MEMBERS_IN_CONTEXT, load_trigger};
use super::conversation_log::record_start;
use super::{put, put_ended};
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::{RunStart, StartRun};
use parlor_model::{EntityKind, Member, Refusal, Room, Run, RunOutcome, RunTrigger, StartedRun};
use std::sync::Arc;

/// The room of a run.
enum RoomOfRun {
    None,
    Room(Arc<Room>),
    /// The agent is no longer a member of the room, or the room no longer exists.
    Left,
}

pub struct Facts {
    run: Run,
    place: RoomOfRun,
    trigger: Option<RunTrigger>,
    members: Vec<Member>,
}

impl Command for StartRun {
    type Facts = Facts;
    type Receipt = RunStart;

    /// Only the hub itself starts runs; permission to host an agent is checked when its gateway registers it.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        let run = view.store.run(&self.run)?.ok_or(Refusal::NotFound(EntityKind::Run))?;
        let (mut place, mut members) = (RoomOfRun::None, Vec::new());
        if let Some(room) = run.room() {
            place = match view.room(room)? {
                Some(room) if view.agents_in(&room)?.contains(&run.agent) => RoomOfRun::Room(room),
                _ => RoomOfRun::Left,
            };
            members = view.store.members(room, MEMBERS_IN_CONTEXT, 0)?;
        }
        Ok(Facts { trigger: load_trigger(&run, view.store)?, run, place, members })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<RunStart, Refusal> {
        let Facts { run, place, trigger, members } = facts;
        let already_started = |_| Refusal::AlreadyExists(EntityKind::Run);
        let reason = match (place, trigger) {
            (RoomOfRun::Room(room), _) if room.is_frozen() => "the room is frozen",
            (RoomOfRun::Left, _) => "the agent is no longer in the room",
            (place, Some(prompt)) => {
                let room = match place {
                    RoomOfRun::Room(room) => Some(room),
                    RoomOfRun::None | RoomOfRun::Left => None,
                };
                let run = put(run.started(effects.now).map_err(already_started)?, effects);
                if let RunTrigger::Prompt(prompt) = &prompt {
                    record_start(&run, prompt, effects);
                }
                let started = StartedRun { run, prompt, room, members: members.into() };
                return Ok(RunStart::Started(Box::new(started)));
            }
            (_, None) => "the message or task that started the run no longer exists",
        };
        let refused = run.ended(RunOutcome::Refused(reason.into()), None, effects.now);
        Ok(RunStart::Refused(put_ended(refused.map_err(already_started)?, effects)))
    }
}
