//! Decides updates of agents' plans and users' decisions on them. A plan is decided once per revision.

use super::{Change, Effects, EffectsBuilder, messages};
use parlor_model::command::PlanDecision;
use parlor_model::run_event::{Plan, PlanState};
use parlor_model::{Command, CurrentPlan, EntityKind, Event, Receipt, Refusal, RunState};
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::UpdatePlan { plan, .. } => update(plan, effects_builder),
        Command::DecidePlan { rev, verdict, .. } => decide_plan(*rev, verdict, effects_builder),
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

fn decide_plan(
    rev: u64,
    verdict: &PlanDecision,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let open = facts.plan.as_ref().filter(|open| open.plan.state == PlanState::Planned);
    let open = open.ok_or(Refusal::NotFound(EntityKind::Plan))?;
    if open.rev != rev {
        return Err(Refusal::AlreadyExists(EntityKind::Plan));
    }
    if facts.room.as_ref().is_none_or(|room| room.is_frozen()) {
        return Err(Refusal::Forbidden);
    }
    let (state, text) = match verdict {
        PlanDecision::Approve(_) => (PlanState::Approved, open.text.clone()),
        PlanDecision::Reject => (PlanState::Rejected, open.text.clone()),
        PlanDecision::Edit(text) => (PlanState::Planned, Some(text.clone())),
    };
    let plan = Plan { state, ..open.plan.clone() };
    put(CurrentPlan { plan, text, rev: rev + 1, at: facts.now, ..open.clone() }, &mut effects_builder);
    match verdict {
        PlanDecision::Approve(post) => messages::post_message(post, effects_builder),
        PlanDecision::Reject | PlanDecision::Edit(_) => effects_builder.done(Receipt::Done),
    }
}

fn put(plan: CurrentPlan, effects_builder: &mut EffectsBuilder) {
    let plan = Arc::new(plan);
    effects_builder.change(Change::PutPlan(plan.clone()));
    effects_builder.publish(Event::PlanChanged(plan));
}
