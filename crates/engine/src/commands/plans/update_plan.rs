//! Replaces the plan of a running run. A new plan discards the decision and the edited text of the previous one.

use crate::changes::RunChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::UpdatePlan;
use parlor_model::{CurrentPlan, EntityKind, Event, Refusal, RoomId, Run, RunState};
use std::sync::Arc;

pub struct Facts {
    /// The run, which is running in an existing room.
    run: Run,
    room: RoomId,
    /// Current plan of the agent in the room.
    plan: Option<CurrentPlan>,
}

impl Command for UpdatePlan {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for the hub itself, during the run.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        let run = view.store.run(&self.run)?.filter(|run| run.state == RunState::Running);
        let run = run.ok_or(Refusal::NotFound(EntityKind::Run))?;
        let room = match run.room() {
            Some(room) => view.room(room)?,
            None => None,
        };
        // A plan belongs to a room.
        let room = room.ok_or(Refusal::NotFound(EntityKind::Run))?.id.clone();
        let plan = view.store.plan(&room, &run.agent)?;
        Ok(Facts { run, room, plan })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Facts { run, room, plan } = facts;
        let before = plan.filter(|before| before.run == run.id);
        let plan = Arc::new(CurrentPlan {
            room,
            agent: run.agent,
            run: run.id,
            plan: self.plan,
            text: None,
            rev: before.map_or(1, |before| before.rev + 1),
            at: effects.now,
        });
        effects.change(RunChange::PutPlan(plan.clone()));
        effects.publish(Event::PlanChanged(plan));
        Ok(())
    }
}
