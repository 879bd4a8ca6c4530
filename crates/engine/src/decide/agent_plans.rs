//! Decides updates of agents' plans.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::run_event::Plan;
use parlor_model::{Command, CurrentPlan, EntityKind, Event, Receipt, Refusal, RunState};
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::UpdatePlan { plan, .. } => update(plan, effects_builder),
        _ => unreachable!("the dispatcher sends only plan commands here"),
    }
}

/// A new plan discards the decision and the edited text of the previous one.
fn update(plan: &Plan, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let run = facts.run.as_ref().filter(|run| run.state == RunState::Running && facts.room.is_some());
    let run = run.ok_or(Refusal::NotFound(EntityKind::Run))?;
    let before = facts.plan.as_ref().filter(|before| before.run == run.id);
    put(
        CurrentPlan {
            room: run.room.clone(),
            agent: run.agent.clone(),
            run: run.id.clone(),
            plan: plan.clone(),
            text: None,
            rev: before.map_or(1, |before| before.rev + 1),
            at: facts.now,
        },
        &mut effects_builder,
    );
    effects_builder.done(Receipt::Done)
}

fn put(plan: CurrentPlan, effects_builder: &mut EffectsBuilder) {
    let plan = Arc::new(plan);
    effects_builder.change(Change::PutPlan(plan.clone()));
    effects_builder.publish(Event::PlanChanged(plan));
}
