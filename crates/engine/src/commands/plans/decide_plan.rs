//! Decides a user's verdict on the undecided plan of an agent.

use crate::Limits;
use crate::changes::RunChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError, may_approve};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{DecidePlan, PlanDecision, Posted};
use parlor_model::run_event::{Plan, PlanState};
use parlor_model::{CurrentPlan, EntityKind, Event, Field, Post, Refusal, RoomRole, Scope};
use std::sync::Arc;

/// Text of the message that tells an agent that its plan is approved.
const APPROVAL_TEXT: &str = "The plan is approved. Carry it out.";

pub struct Facts {
    decider: InRoom,
    /// The undecided plan.
    open: CurrentPlan,
    /// The message that an approval posts.
    approval: Option<(Post, <Post as Command>::Facts)>,
}

impl Command for DecidePlan {
    type Facts = Facts;
    type Receipt = Option<Posted>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        if let PlanDecision::Edit(text) = &self.verdict {
            let fits = text.chars().count() <= 12_000;
            field_errors.unless(!text.trim().is_empty(), Field::PlanText, "must not be empty");
            field_errors.unless(fits, Field::PlanText, "is longer than 12000 characters");
        }
        field_errors.into_result()
    }

    /// A plan is a request to use tools, so it is decided by users who may approve tool use; never by API
    /// keys, which the agent itself may hold. A caller who may read the rooms learns first whether there is a
    /// plan to decide, as from the list of plans.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let open = undecided_plan(self, caller, view)?;
        let post = (self.verdict == PlanDecision::Approve).then(|| approval(&open));
        if let Some(post) = &post {
            post.validate(view.limits)?;
        }
        caller.person()?;
        let decider = view.in_room(caller, &open.room, RoomRole::Member, Scope::Write)?;
        if !may_approve(&decider.room, &decider.member) {
            return Err(Refusal::Forbidden.into());
        }
        let approval = match post {
            Some(post) => {
                let facts = post.permit(caller, view)?;
                Some((post, facts))
            }
            None => None,
        };
        Ok(Facts { decider, open, approval })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Option<Posted>, Refusal> {
        let Facts { decider, open, approval } = facts;
        if decider.room.is_frozen() {
            return Err(Refusal::Forbidden);
        }
        let (state, text) = match self.verdict {
            PlanDecision::Approve => (PlanState::Approved, open.text),
            PlanDecision::Reject => (PlanState::Rejected, open.text),
            PlanDecision::Edit(text) => (PlanState::Planned, Some(text)),
        };
        let plan = Plan { state, ..open.plan };
        let plan = Arc::new(CurrentPlan { plan, text, rev: open.rev + 1, at: effects.now, ..open });
        effects.change(RunChange::PutPlan(plan.clone()));
        effects.publish(Event::PlanChanged(plan));
        approval.map(|(post, facts)| post.decide(facts, effects)).transpose()
    }
}

/// The agent's only undecided plan in the selected rooms.
fn undecided_plan(
    command: &DecidePlan,
    caller: &CallerContext,
    view: &mut WriterView<'_>,
) -> Result<CurrentPlan, PermitError> {
    let mut found = None;
    for room in view.selected_rooms(caller, &command.rooms, Scope::Read)? {
        let plan = view.store.plan(&room, &command.agent)?;
        if let Some(plan) = plan.filter(|plan| plan.plan.state == PlanState::Planned)
            && found.replace(plan).is_some()
        {
            let several = "is required: the agent has several pending plans";
            return Err(Refusal::invalid(Field::SelectedRoom, several).into());
        }
    }
    Ok(found.ok_or(Refusal::NotFound(EntityKind::Plan))?)
}

/// The message that tells the agent to carry out its plan, with the text of a user's edit.
fn approval(plan: &CurrentPlan) -> Post {
    Post {
        id: None,
        origin: None,
        author: None,
        room: plan.room.clone(),
        text: match &plan.text {
            Some(text) => format!("{APPROVAL_TEXT}\n\n{text}").into(),
            None => APPROVAL_TEXT.into(),
        },
        mentions: vec![plan.agent.as_str().into()],
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::{auth, decide, member_of, room};
    use parlor_model::{AgentId, Frozen, Room, RoomId, RoomSelection, RunId, Time};

    fn open(text: Option<&str>) -> CurrentPlan {
        CurrentPlan {
            room: RoomId::stored("room"),
            agent: AgentId::stored("coder"),
            run: RunId::stored("run"),
            plan: Plan {
                summary: "Tidy up".into(),
                state: PlanState::Planned,
                steps: Vec::new(),
                text: None,
            },
            text: text.map(Into::into),
            rev: 4,
            at: Time(1),
        }
    }

    fn decided(verdict: PlanDecision, room: Room) -> Result<CurrentPlan, Refusal> {
        let command = DecidePlan { agent: AgentId::stored("coder"), rooms: RoomSelection::EMPTY, verdict };
        let member = member_of(&room.id, "ann");
        let decider = InRoom { caller: auth("ann"), room: Arc::new(room), member };
        let facts = Facts { decider, open: open(Some("by hand")), approval: None };
        let (_, effects) = decide(command, facts)?;
        let Event::PlanChanged(plan) = &effects.events[0].event else { panic!("{:?}", effects.events) };
        Ok(CurrentPlan::clone(plan))
    }

    #[test]
    fn a_verdict_is_a_new_revision_and_keeps_the_text_unless_it_edits_it() {
        let here = || room(&RoomId::stored("room"));
        let rejected = decided(PlanDecision::Reject, here()).unwrap();
        assert_eq!((rejected.plan.state, rejected.rev), (PlanState::Rejected, 5));
        assert_eq!(rejected.text.as_deref(), Some("by hand"));
        let edited = decided(PlanDecision::Edit("other words".into()), here()).unwrap();
        assert_eq!((edited.plan.state, edited.rev), (PlanState::Planned, 5));
        assert_eq!(edited.text.as_deref(), Some("other words"));
        let frozen = Room { frozen: Some(Frozen { by: None, at: Time(1) }), ..here() };
        assert_eq!(decided(PlanDecision::Reject, frozen), Err(Refusal::Forbidden));
    }

    #[test]
    fn an_approval_mentions_the_agent_and_contains_the_edited_text() {
        assert_eq!(&*approval(&open(None)).text, APPROVAL_TEXT);
        let edited = approval(&open(Some("by hand")));
        assert_eq!(&*edited.text, "The plan is approved. Carry it out.\n\nby hand");
        assert_eq!(edited.mentions, ["coder".into()]);
    }
}
