//! Decides a user's verdict on an agent's plan. A plan is decided once per revision.

use crate::Limits;
use crate::commands::Command;
use crate::decide::Change;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError, may_approve};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{DecidePlan, PlanDecision, Posted};
use parlor_model::run_event::{Plan, PlanState};
use parlor_model::{CurrentPlan, EntityKind, Event, Post, Refusal, RoomRole, Scope};
use std::sync::Arc;

pub struct Facts {
    decider: InRoom,
    /// Current plan of the agent in the room.
    plan: Option<CurrentPlan>,
    /// Facts of the message that an approval posts.
    post: Option<<Post as Command>::Facts>,
}

impl Command for DecidePlan {
    type Facts = Facts;
    type Receipt = Option<Posted>;

    fn validate(&self, limits: &Limits) -> Result<(), Refusal> {
        match &self.verdict {
            PlanDecision::Approve(post) => post.validate(limits),
            PlanDecision::Reject => Ok(()),
            PlanDecision::Edit(text) => {
                let mut field_errors = FieldErrors::default();
                let fits = text.chars().count() <= 12_000;
                field_errors.unless(!text.trim().is_empty(), "text", "must not be empty");
                field_errors.unless(fits, "text", "is longer than 12000 characters");
                field_errors.into_result()
            }
        }
    }

    /// A plan is a request to use tools, so it is decided by users who may approve tool use; never by API
    /// keys, which the agent itself may hold.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.person()?;
        let decider = view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
        if !may_approve(&decider.room, &decider.member) {
            return Err(Refusal::Forbidden.into());
        }
        let plan = view.store.plan(&self.room, &self.agent)?;
        let post = match &self.verdict {
            PlanDecision::Approve(post) => Some(post.permit(caller, view)?),
            PlanDecision::Reject | PlanDecision::Edit(_) => None,
        };
        Ok(Facts { decider, plan, post })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Option<Posted>, Refusal> {
        let open = facts.plan.filter(|open| open.plan.state == PlanState::Planned);
        let open = open.ok_or(Refusal::NotFound(EntityKind::Plan))?;
        if open.rev != self.rev {
            return Err(Refusal::AlreadyExists(EntityKind::Plan));
        }
        if facts.decider.room.is_frozen() {
            return Err(Refusal::Forbidden);
        }
        let (state, text) = match &self.verdict {
            PlanDecision::Approve(_) => (PlanState::Approved, open.text.clone()),
            PlanDecision::Reject => (PlanState::Rejected, open.text.clone()),
            PlanDecision::Edit(text) => (PlanState::Planned, Some(text.clone())),
        };
        let plan = Plan { state, ..open.plan };
        let plan = Arc::new(CurrentPlan { plan, text, rev: self.rev + 1, at: effects.now, ..open });
        effects.change(Change::PutPlan(plan.clone()));
        effects.publish(Event::PlanChanged(plan));
        match (self.verdict, facts.post) {
            (PlanDecision::Approve(post), Some(facts)) => post.decide(facts, effects).map(Some),
            _ => Ok(None),
        }
    }
}
