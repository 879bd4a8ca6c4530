//! Submits an approval request of an agent. A rule may allow it immediately; otherwise it waits for a user.

use super::audit::audit_decision;
use super::decision::record_decision;
use crate::Limits;
use crate::changes::ApprovalChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, may_approve};
use crate::ports::OpenApprovalsOf;
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::approval::MAX_APPROVAL_WAIT;
use parlor_model::command::AskApproval;
use parlor_model::{
    Agent, Approval, ApprovalId, ApprovalKind, ApprovalRule, Decision, EntityKind, Event, Field, Refusal,
    Room, Run, RunState,
};
use std::sync::Arc;

pub struct Facts {
    run: Run,
    /// Agent of the run and the room of the run, if it has one. `None` if the agent is no longer a member of the room.
    place: Option<(Arc<Agent>, Option<Arc<Room>>)>,
    /// Approval of the same run with this request id, or an open one of another run.
    earlier: Option<Approval>,
    /// Open approvals in the room; without a room, those of the agent.
    open_here: Vec<Approval>,
    /// Number of open approvals on the whole hub.
    open_count: usize,
    /// Rule that allows the tool.
    rule: Option<ApprovalRule>,
}

impl Command for AskApproval {
    /// `None` if the run does not exist.
    type Facts = Option<Facts>;
    type Receipt = Arc<Approval>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.line(Field::Request, &self.request, 200);
        field_errors.line(Field::Tool, &self.tool, 200);
        field_errors.into_result()
    }

    /// Allowed for the hub itself.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Option<Facts>, PermitError> {
        caller.operator()?;
        let Some(run) = view.store.run(&self.run)? else { return Ok(None) };
        let place = match run.room() {
            Some(room) => {
                let agent = view.agent_named_in(room, &run.agent)?;
                agent.zip(view.room(room)?).map(|(agent, room)| (agent, Some(room)))
            }
            None => view.agent(&run.agent)?.map(|agent| (agent, None)),
        };
        let mut earlier = view.store.approvals_called(&self.gateway, &self.request)?;
        earlier.retain(|approval| approval.run == run.id || approval.decision.is_none());
        earlier.sort_by_key(|approval| approval.run != run.id);
        let of = run.room().map_or(OpenApprovalsOf::Agent(&run.agent), OpenApprovalsOf::Room);
        let open_here = view.store.open_approvals(of)?;
        let open_count = view.store.open_approval_count()?;
        // Approval rules cover tools only, not question sets.
        let rule = match (self.subject.kind(), &place) {
            (ApprovalKind::Tool, Some((_, Some(room)))) => applicable_rule(&run, room, &self.tool, view)?,
            _ => None,
        };
        let earlier = earlier.into_iter().next();
        Ok(Some(Facts { run, place, earlier, open_here, open_count, rule }))
    }

    fn decide(
        self,
        facts: Option<Facts>,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<Arc<Approval>, Refusal> {
        let no_run = Refusal::NotFound(EntityKind::Run);
        let Some(Facts { run, place, earlier, open_here, open_count, rule }) = facts else {
            return Err(no_run);
        };
        if let Some(known) = earlier {
            let same = known.run == run.id
                && known.tool == self.tool
                && known.subject.kind() == self.subject.kind()
                && known.digest == self.digest;
            // A different request under the same id would otherwise receive the decision of the first.
            return if same {
                Ok(Arc::new(known))
            } else {
                Err(Refusal::AlreadyExists(EntityKind::Approval))
            };
        }
        let Some((agent, room)) = place else { return Err(no_run) };
        if run.state != RunState::Running || room.is_some_and(|room| room.is_frozen()) {
            return Err(no_run);
        }
        let limits = effects.limits;
        let of_run = open_here.iter().filter(|open| open.run == run.id).count();
        let bytes: usize = open_here.iter().map(|open| open.subject.length()).sum();
        let at_capacity = open_count >= limits.approvals
            || of_run >= limits.run_approvals
            || bytes + self.subject.length() > limits.approval_bytes;
        if at_capacity && rule.is_none() {
            return Err(Refusal::AtCapacity);
        }
        let requested = Approval {
            id: ApprovalId::stored(effects.new_id()),
            run: run.id,
            place: run.place,
            agent: run.agent,
            agent_name: agent.name.clone(),
            gateway: self.gateway,
            request: self.request,
            tool: self.tool,
            subject: self.subject,
            digest: self.digest,
            asked_at: effects.now,
            expires_at: effects.now.plus(self.timeout.min(MAX_APPROVAL_WAIT)),
            decision: None,
            decided_at: None,
        };
        if let Some(rule) = rule {
            let decided = record_decision(&requested, Decision::AllowedByRule, effects)?;
            audit_decision(&decided, Some(&rule), effects);
            return Ok(decided);
        }
        let requested = Arc::new(requested);
        effects.change(ApprovalChange::PutApproval(requested.clone()));
        effects.publish(Event::ApprovalAsked(requested.clone()));
        Ok(requested)
    }
}

/// The rule for the tool. A rule no longer applies once the user who created it may not approve in the room.
fn applicable_rule(
    run: &Run,
    room: &Room,
    tool: &str,
    view: &mut WriterView<'_>,
) -> Result<Option<ApprovalRule>, PermitError> {
    let Some(rule) = view.store.approval_rule(&room.id, &run.agent, tool)? else { return Ok(None) };
    let maker = view.member(&room.id, &rule.by)?;
    Ok(maker.is_some_and(|maker| may_approve(room, &maker)).then_some(rule))
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{frozen_room, open, room, rule};
    use super::*;
    use crate::commands::test_fixtures::agent;
    use crate::commands::test_fixtures::decide;
    use crate::effects::Effects;
    use parlor_model::{
        AddressedBy, AgentId, ApprovalSubject, ConversationId, GatewayId, InputDigest, Lineage, Payload,
        RunCause, RunId, RunOutcome, RunPlace, Time, Usage,
    };
    use std::time::Duration;

    fn run(id: &str) -> Run {
        Run {
            id: RunId::stored(id),
            agent: AgentId::stored("coder"),
            place: RunPlace::Room(room().id),
            cause: RunCause::Unprompted,
            asked_by: None,
            addressed: AddressedBy::Directly,
            lineage: Lineage::start(ConversationId::stored("c"), AgentId::stored("coder")),
            parent: None,
            state: RunState::Running,
            reply: None,
            usage: Usage::default(),
            stop_requested: false,
            queued_at: Time(1),
            started_at: Some(Time(1)),
            ended_at: None,
        }
    }

    /// Facts with a running run of the agent in the room, without an approval.
    fn running() -> Facts {
        Facts {
            run: run("run"),
            place: Some((Arc::new(agent("coder")), Some(Arc::new(room())))),
            earlier: None,
            open_here: Vec::new(),
            open_count: 0,
            rule: None,
        }
    }

    fn new(timeout: u64) -> AskApproval {
        AskApproval {
            run: RunId::stored("run"),
            gateway: GatewayId::stored("g"),
            request: "1".into(),
            tool: "Bash".into(),
            subject: ApprovalSubject::Tool(Payload(r#"{"command":"ls"}"#.into())),
            digest: InputDigest([1; 32]),
            timeout: Duration::from_secs(timeout),
        }
    }

    fn ask(new: AskApproval, facts: Facts) -> Result<(Arc<Approval>, Effects), Refusal> {
        decide(new, Some(facts))
    }

    #[test]
    fn an_approval_is_open_for_its_timeout_and_at_most_five_minutes() {
        for (timeout, open_for) in [(0, 0), (60, 60), (300, 300), (301, 300), (u64::MAX, 300)] {
            let (open, effects) = ask(new(timeout), running()).unwrap();
            assert_eq!(open.open_for(), Duration::from_secs(open_for));
            assert_eq!(open.decision, None);
            assert_eq!(effects.events[0].event, Event::ApprovalAsked(open));
        }
    }

    #[test]
    fn a_repeated_request_returns_the_same_approval_and_a_different_one_under_its_id_is_refused() {
        let known = || Facts { earlier: Some(open()), ..running() };
        let (again, effects) = ask(new(60), known()).unwrap();
        assert_eq!((&*again, effects.changes.len(), effects.events.len()), (&open(), 0, 0));
        let taken = Refusal::AlreadyExists(EntityKind::Approval);
        let others = [
            AskApproval { digest: InputDigest([2; 32]), ..new(60) },
            AskApproval { tool: "Write".into(), ..new(60) },
        ];
        for other in others {
            assert_eq!(ask(other, known()).unwrap_err(), taken);
        }
        let elsewhere = Facts { run: run("next"), ..known() };
        assert_eq!(ask(new(60), elsewhere).unwrap_err(), taken);
    }

    #[test]
    fn only_a_running_run_may_request_an_approval() {
        let over = Run { state: RunState::Ended(RunOutcome::Cancelled), ..run("run") };
        let cases = [
            None,
            Some(Facts { run: over, ..running() }),
            Some(Facts { run: Run { state: RunState::Queued, ..run("run") }, ..running() }),
            Some(Facts { place: None, ..running() }),
        ];
        for facts in cases {
            assert_eq!(decide(new(60), facts).unwrap_err(), Refusal::NotFound(EntityKind::Run));
        }
    }

    #[test]
    fn in_a_frozen_room_nothing_is_requested() {
        let place = Some((Arc::new(agent("coder")), Some(Arc::new(frozen_room()))));
        let refused = ask(new(60), Facts { place, ..running() }).unwrap_err();
        assert_eq!(refused, Refusal::NotFound(EntityKind::Run));
    }

    #[test]
    fn too_many_or_too_long_requests_are_refused_unless_a_rule_allows_them() {
        let long = Approval {
            subject: ApprovalSubject::Tool(Payload("x".repeat(512 * 1024).into())),
            run: RunId::stored("x"),
            ..open()
        };
        let cases: [fn(Approval) -> Facts; 3] = [
            |_| Facts { open_count: 1000, ..running() },
            |_| Facts { open_here: vec![open(); 20], ..running() },
            |long| Facts { open_here: vec![long], ..running() },
        ];
        for facts in cases {
            assert_eq!(ask(new(60), facts(long.clone())).unwrap_err(), Refusal::AtCapacity);
            let (decided, _) = ask(new(60), Facts { rule: Some(rule()), ..facts(long.clone()) }).unwrap();
            assert_eq!(decided.decision, Some(Decision::AllowedByRule));
        }
        let nearly = Facts { open_count: 999, open_here: vec![open(); 19], ..running() };
        assert!(ask(new(60), nearly).is_ok());
    }

    #[test]
    fn an_approval_allowed_by_a_rule_is_published_as_decided_and_never_as_open() {
        let (approval, effects) = ask(new(60), Facts { rule: Some(rule()), ..running() }).unwrap();
        let [event] = &effects.events[..] else { panic!("{:?}", effects.events) };
        assert_eq!(event.event, Event::ApprovalDecided(approval));
    }
}
