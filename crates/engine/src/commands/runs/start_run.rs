//! Starts a queued run, or ends it as refused because its conditions have changed since it was queued.

use super::context::{MEMBERS_IN_CONTEXT, load_trigger};
use super::put;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::{RunStart, StartRun};
use parlor_model::{EntityKind, Member, Refusal, Room, Run, RunOutcome, RunTrigger, StartedRun};
use std::sync::Arc;

pub struct Facts {
    run: Run,
    /// The room of the run; `None` if the agent is no longer a member.
    room: Option<Arc<Room>>,
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
        let room = match view.room(&run.room)? {
            Some(room) if view.agents_in(&room)?.contains(&run.agent) => Some(room),
            _ => None,
        };
        let members = view.store.members(&run.room, MEMBERS_IN_CONTEXT, 0)?;
        Ok(Facts { trigger: load_trigger(&run, view.store)?, run, room, members })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<RunStart, Refusal> {
        let Facts { run, room, trigger, members } = facts;
        let already_started = |_| Refusal::AlreadyExists(EntityKind::Run);
        let reason = match (room, trigger) {
            (Some(room), _) if room.is_frozen() => "the room is frozen",
            (Some(room), Some(prompt)) => {
                let run = put(run.started(effects.now).map_err(already_started)?, effects);
                let started = StartedRun { run, prompt, room, members: members.into() };
                return Ok(RunStart::Started(Box::new(started)));
            }
            (Some(_), None) => "the message or task that started the run no longer exists",
            (None, _) => "the agent is no longer in the room",
        };
        let refused = run.ended(RunOutcome::Refused(reason.into()), None, effects.now);
        Ok(RunStart::Refused(put(refused.map_err(already_started)?, effects)))
    }
}
