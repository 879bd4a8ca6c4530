//! Decides approvals: permission requests and question sets of agents, each requested once and decided once
//! by a user.
//!
//! Owns: default deny, since only an authorised user or a rule allows a tool. An approval is bound to its
//! run, its tool and exactly its input, and is withdrawn in the transaction that ends its run.

use super::{Change, Effects, EffectsBuilder, question_answers};
use parlor_model::approval::MAX_APPROVAL_WAIT;
use parlor_model::command::{ApprovalDecision, NewApproval};
use parlor_model::run_event::QuestionAnswer;
use parlor_model::{
    Approval, ApprovalId, ApprovalKind, ApprovalRule, ApprovalSubject, Command, Decider, Decision,
    EntityKind, Event, Receipt, Refusal, RunState,
};
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::AskApproval(new) => request(new, effects_builder),
        Command::DecideApproval(approval_decision) => decide_approval(approval_decision, effects_builder),
        Command::AnswerQuestions { answers, .. } => answer(answers, effects_builder),
        Command::ExpireApproval { .. } => expire(effects_builder),
        Command::RevokeApprovalRule { .. } => {
            let mut effects_builder = effects_builder;
            let rule =
                effects_builder.facts.rule.clone().ok_or(Refusal::NotFound(EntityKind::ApprovalRule))?;
            effects_builder.change(Change::RemoveApprovalRule(rule));
            effects_builder.done(Receipt::Done)
        }
        _ => unreachable!("the dispatcher sends only approval commands here"),
    }
}

fn request(new: &NewApproval, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let run = facts.run.as_ref().ok_or(Refusal::NotFound(EntityKind::Run))?;
    if let Some(known) = &facts.approval {
        let same = known.run == run.id
            && known.tool == new.tool
            && known.subject.kind() == new.subject.kind()
            && known.digest == new.digest;
        // A different request under the same id would otherwise receive the decision of the first.
        return if same {
            effects_builder.done(Receipt::Approval(Arc::new(known.clone())))
        } else {
            Err(Refusal::AlreadyExists(EntityKind::Approval))
        };
    }
    let (Some(agent), Some(room), Some(_)) = (&facts.agent, &facts.room, &facts.target) else {
        return Err(Refusal::NotFound(EntityKind::Run));
    };
    if run.state != RunState::Running || room.is_frozen() {
        return Err(Refusal::NotFound(EntityKind::Run));
    }
    let limits = effects_builder.decide_context.limits;
    let of_run = facts.approvals.iter().filter(|open| open.run == run.id).count();
    let bytes: usize = facts.approvals.iter().map(|open| open.subject.length()).sum();
    let at_capacity = facts.open_approvals >= limits.approvals
        || of_run >= limits.run_approvals
        || bytes + new.subject.length() > limits.approval_bytes;
    if at_capacity && facts.rule.is_none() {
        return Err(Refusal::AtCapacity);
    }
    let requested = Approval {
        id: ApprovalId::stored(effects_builder.decide_context.ids.next()),
        run: run.id.clone(),
        room: run.room.clone(),
        agent: run.agent.clone(),
        agent_name: agent.name.clone(),
        gateway: new.gateway.clone(),
        request: new.request.clone(),
        tool: new.tool.clone(),
        subject: new.subject.clone(),
        digest: new.digest,
        asked_at: facts.now,
        expires_at: facts.now.plus(new.timeout.min(MAX_APPROVAL_WAIT)),
        decision: None,
        decided_at: None,
    };
    if facts.rule.is_some() {
        let decided = record_decision(&requested, Decision::AllowedByRule, &mut effects_builder)?;
        return effects_builder.done(Receipt::Approval(decided));
    }
    let requested = Arc::new(requested);
    effects_builder.change(Change::PutApproval(requested.clone()));
    effects_builder.publish(Event::ApprovalAsked(requested.clone()));
    effects_builder.done(Receipt::Approval(requested))
}

fn decide_approval(
    approval_decision: &ApprovalDecision,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let approval = require_approval(ApprovalKind::Tool, &effects_builder)?;
    if approval.decision.is_some() {
        return Err(Refusal::AlreadyExists(EntityKind::Approval));
    }
    if approval_decision.digest.is_some_and(|digest| digest != approval.digest) {
        return Err(Refusal::invalid("inputDigest", "does not match the input of this approval"));
    }
    // In a frozen room nothing is allowed, even before its runs have ended.
    if approval_decision.allow && facts.room.as_ref().is_none_or(|room| room.is_frozen()) {
        return Err(Refusal::Forbidden);
    }
    let actor = effects_builder.actor()?;
    let by = Decider { user: actor.id.clone(), name: actor.display_name.clone() };
    let decision = match approval_decision.allow {
        true => Decision::Allowed { by },
        false => Decision::Denied { by, reason: approval_decision.reason.clone() },
    };
    let decided = record_decision(&approval, decision, &mut effects_builder)?;
    if approval_decision.allow && approval_decision.always {
        effects_builder.change(Change::PutApprovalRule(ApprovalRule {
            room: decided.room.clone(),
            agent: decided.agent.clone(),
            tool: decided.tool.clone(),
            by: actor.id.clone(),
            at: facts.now,
        }));
    }
    effects_builder.done(Receipt::Approval(decided))
}

fn answer(answers: &[QuestionAnswer], mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let approval = require_approval(ApprovalKind::Questions, &effects_builder)?;
    if let (ApprovalSubject::Questions(questions), None) = (&approval.subject, &approval.decision) {
        question_answers::check(questions, answers)?;
        if effects_builder.facts.room.as_ref().is_none_or(|room| room.is_frozen()) {
            return Err(Refusal::Forbidden);
        }
    }
    let actor = effects_builder.actor()?;
    let by = Decider { user: actor.id.clone(), name: actor.display_name.clone() };
    let decided = record_decision(
        &approval,
        Decision::Answered { by, answers: answers.to_vec() },
        &mut effects_builder,
    )?;
    effects_builder.done(Receipt::Approval(decided))
}

/// Expires an approval, unless it has been decided.
fn expire(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let approval = effects_builder.facts.approval.clone().ok_or(Refusal::NotFound(EntityKind::Approval))?;
    let approval = match approval.decision {
        Some(_) => Arc::new(approval),
        None => record_decision(&approval, Decision::Expired, &mut effects_builder)?,
    };
    effects_builder.done(Receipt::Approval(approval))
}

/// Withdraws the open approvals of a run, agent or room that ends.
pub fn withdraw(effects_builder: &mut EffectsBuilder) {
    for open in &effects_builder.facts.approvals {
        // Cannot fail: an open approval can be decided.
        let _ = record_decision(open, Decision::Withdrawn, effects_builder);
    }
}

/// The approval of the command, if it is of this kind; one of the other kind is `NotFound`.
fn require_approval(
    approval_kind: ApprovalKind,
    effects_builder: &EffectsBuilder,
) -> Result<Approval, Refusal> {
    let found = effects_builder.facts.approval.as_ref().filter(|found| found.subject.kind() == approval_kind);
    found.cloned().ok_or(Refusal::NotFound(EntityKind::Approval))
}

fn record_decision(
    approval: &Approval,
    decision: Decision,
    effects_builder: &mut EffectsBuilder,
) -> Result<Arc<Approval>, Refusal> {
    let decided = approval.decided(decision, effects_builder.facts.now);
    let decided = Arc::new(decided.map_err(|_| Refusal::AlreadyExists(EntityKind::Approval))?);
    effects_builder.change(Change::PutApproval(decided.clone()));
    effects_builder.publish(Event::ApprovalDecided(decided.clone()));
    Ok(decided)
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::*;
    use super::*;
    use crate::facts::Facts;
    use parlor_model::run_event::{Choice, Question};
    use parlor_model::{
        AddressedBy, AgentId, AnswerPolicy, ConversationId, Frozen, GatewayId, InputDigest, Lineage, Member,
        MemberId, Payload, Room, RoomId, RoomKind, RoomRole, Run, RunId, RunOutcome, Time, Usage, UserId,
    };
    use std::time::Duration;

    const INPUT: &str = r#"{"command":"ls"}"#;

    fn room() -> RoomId {
        RoomId::stored("room")
    }

    fn run(id: &str) -> Run {
        Run {
            id: RunId::stored(id),
            agent: AgentId::stored("coder"),
            room: room(),
            trigger: None,
            task: None,
            asked_by: None,
            arrival: None,
            addressed: AddressedBy::Directly,
            lineage: Lineage::start(ConversationId::stored("c"), AgentId::stored("coder")),
            parent: None,
            state: RunState::Running,
            reply: None,
            usage: Usage::default(),
            queued_at: Time(1),
            started_at: Some(Time(1)),
            ended_at: None,
        }
    }

    fn member(member: MemberId) -> Member {
        Member {
            room: room(),
            member,
            role: RoomRole::Member,
            role_description: None,
            name: "".into(),
            handle: "".into(),
            joined_at: Time(1),
            read_through: Default::default(),
            read_at: None,
            room_preferences: Default::default(),
        }
    }

    /// Facts with a running run of the agent in the room, without an approval.
    fn running() -> Facts {
        let found = Room {
            id: room(),
            name: "Room".into(),
            kind: RoomKind::Group,
            policy: AnswerPolicy::Mention,
            system_prompt: None,
            agent_command_role: RoomRole::Member,
            approve_role: RoomRole::Member,
            router: None,
            frozen: None,
            project_root: None,
            created_by: UserId::stored("ann"),
            created_at: Time(1),
            updated_at: Time(1),
        };
        Facts {
            run: Some(run("run")),
            agent: Some(agent("coder")),
            room: Some(Arc::new(found)),
            target: Some(member(MemberId::Agent(AgentId::stored("coder")))),
            ..facts()
        }
    }

    fn new(timeout: u64) -> NewApproval {
        NewApproval {
            run: RunId::stored("run"),
            gateway: GatewayId::stored("g"),
            request: "1".into(),
            tool: "Bash".into(),
            subject: ApprovalSubject::Tool(Payload(INPUT.into())),
            digest: InputDigest([1; 32]),
            timeout: Duration::from_secs(timeout),
        }
    }

    fn requested(facts: &Facts, new: NewApproval) -> Result<Effects, Refusal> {
        decide_with(&Command::AskApproval(new), facts)
    }

    fn approval(plan: &Effects) -> Approval {
        let Receipt::Approval(approval) = &plan.receipt else { panic!("no approval: {plan:?}") };
        Approval::clone(approval)
    }

    fn open() -> Approval {
        approval(&requested(&running(), new(60)).unwrap())
    }

    fn rule() -> ApprovalRule {
        let (agent, by) = (AgentId::stored("coder"), UserId::stored("bob"));
        ApprovalRule { room: room(), agent, tool: "Bash".into(), by, at: Time(1) }
    }

    fn decision(allow: bool) -> ApprovalDecision {
        let approval = ApprovalId::stored("new");
        ApprovalDecision { approval, allow, always: false, reason: Some("no".into()), digest: None }
    }

    #[test]
    fn question_sets_are_answered_and_tools_are_allowed_and_never_the_other_way_round() {
        let choice = |label: &str| Choice { label: label.into(), description: None, preview: None };
        let options = vec![choice("Tea"), choice("Water")];
        let question = Question { text: "What?".into(), header: "Drink".into(), options, several: false };
        let questions = Approval { subject: ApprovalSubject::Questions(vec![question]), ..open() };
        let facts = Facts { approval: Some(questions), ..running() };
        let missing = Refusal::NotFound(EntityKind::Approval);
        assert_eq!(decided_by(&facts, decision(true)).unwrap_err(), missing);
        let tea = vec![QuestionAnswer { question: 0, selected: vec!["Tea".into()], text: None }];
        let answer = |answers| Command::AnswerQuestions { approval: ApprovalId::stored("new"), answers };
        let invalid = decide_with(&answer(Vec::new()), &facts).unwrap_err();
        assert!(matches!(invalid, Refusal::Invalid(_)), "{invalid:?}");
        let answer = answer(tea.clone());
        let answered = approval(&decide_with(&answer, &facts).unwrap());
        assert!(matches!(&answered.decision, Some(Decision::Answered { answers, .. }) if *answers == tea));
        let known = Facts { approval: Some(answered), ..running() };
        assert_eq!(decide_with(&answer, &known).unwrap_err(), Refusal::AlreadyExists(EntityKind::Approval));
        let tool = Facts { approval: Some(open()), ..running() };
        assert_eq!(decide_with(&answer, &tool).unwrap_err(), missing);
        let mut frozen = facts;
        let still = Some(Frozen { by: None, at: Time(1) });
        frozen.room = frozen.room.map(|room| Arc::new(Room { frozen: still, ..Room::clone(&room) }));
        assert_eq!(decide_with(&answer, &frozen).unwrap_err(), Refusal::Forbidden);
    }

    fn decided_by(facts: &Facts, approval_decision: ApprovalDecision) -> Result<Effects, Refusal> {
        decide_with(&Command::DecideApproval(approval_decision), facts)
    }

    #[test]
    fn an_approval_is_open_for_its_timeout_and_at_most_five_minutes() {
        for (timeout, open_for) in [(0, 0), (60, 60), (300, 300), (301, 300), (u64::MAX, 300)] {
            let plan = requested(&running(), new(timeout)).unwrap();
            let open = approval(&plan);
            assert_eq!(open.open_for(), Duration::from_secs(open_for));
            assert_eq!(open.decision, None);
            assert_eq!(plan.events[0].event, Event::ApprovalAsked(Arc::new(open)));
        }
    }

    #[test]
    fn a_repeated_request_returns_the_same_approval_and_a_different_one_under_its_id_is_refused() {
        let known = Facts { approval: Some(open()), ..running() };
        let again = requested(&known, new(60)).unwrap();
        assert_eq!((approval(&again), again.changes.len(), again.events.len()), (open(), 0, 0));
        let others = [
            NewApproval { digest: InputDigest([2; 32]), ..new(60) },
            NewApproval { tool: "Write".into(), ..new(60) },
        ];
        for other in others {
            assert_eq!(requested(&known, other).unwrap_err(), Refusal::AlreadyExists(EntityKind::Approval));
        }
        let elsewhere = Facts { run: Some(run("next")), ..known };
        assert_eq!(requested(&elsewhere, new(60)).unwrap_err(), Refusal::AlreadyExists(EntityKind::Approval));
    }

    #[test]
    fn only_a_running_run_may_request_an_approval() {
        let over = Run { state: RunState::Ended(RunOutcome::Cancelled), ..run("run") };
        let cases = [
            Facts { run: None, ..running() },
            Facts { run: Some(over), ..running() },
            Facts { run: Some(Run { state: RunState::Queued, ..run("run") }), ..running() },
            Facts { target: None, ..running() },
            Facts { room: None, ..running() },
        ];
        for facts in cases {
            assert_eq!(requested(&facts, new(60)).unwrap_err(), Refusal::NotFound(EntityKind::Run));
        }
    }

    #[test]
    fn in_a_frozen_room_nothing_is_requested_and_nothing_allowed() {
        let mut facts = Facts { approval: Some(open()), ..running() };
        let frozen = Some(Frozen { by: None, at: Time(1) });
        facts.room = facts.room.map(|room| Arc::new(Room { frozen, ..Room::clone(&room) }));
        assert_eq!(decided_by(&facts, decision(true)).unwrap_err(), Refusal::Forbidden);
        assert!(decided_by(&facts, decision(false)).is_ok());
        let nothing_yet = Facts { approval: None, ..facts };
        assert_eq!(requested(&nothing_yet, new(60)).unwrap_err(), Refusal::NotFound(EntityKind::Run));
    }

    #[test]
    fn too_many_or_too_long_requests_are_refused_unless_a_rule_allows_them() {
        let long = Approval {
            subject: ApprovalSubject::Tool(Payload("x".repeat(512 * 1024).into())),
            run: RunId::stored("x"),
            ..open()
        };
        let cases = [
            Facts { open_approvals: 1000, ..running() },
            Facts { approvals: vec![open(); 20], ..running() },
            Facts { approvals: vec![long], ..running() },
        ];
        for facts in cases {
            assert_eq!(requested(&facts, new(60)).unwrap_err(), Refusal::AtCapacity);
            let decided = approval(&requested(&Facts { rule: Some(rule()), ..facts }, new(60)).unwrap());
            assert_eq!(decided.decision, Some(Decision::AllowedByRule));
        }
        let nearly = Facts { open_approvals: 999, approvals: vec![open(); 19], ..running() };
        assert!(requested(&nearly, new(60)).is_ok());
    }

    #[test]
    fn an_approval_allowed_by_a_rule_is_published_as_decided_and_never_as_open() {
        let plan = requested(&Facts { rule: Some(rule()), ..running() }, new(60)).unwrap();
        let [event] = &plan.events[..] else { panic!("{:?}", plan.events) };
        assert_eq!(event.event, Event::ApprovalDecided(Arc::new(approval(&plan))));
    }

    #[test]
    fn the_first_decision_counts_and_only_for_the_input_that_was_shown() {
        let facts = Facts { approval: Some(open()), ..running() };
        let ann = Decider { user: UserId::stored("ann"), name: "ann".into() };
        let allowed = approval(&decided_by(&facts, decision(true)).unwrap());
        assert_eq!(allowed.decision, Some(Decision::Allowed { by: ann.clone() }));
        let denied = approval(&decided_by(&facts, decision(false)).unwrap());
        assert_eq!(denied.decision, Some(Decision::Denied { by: ann, reason: Some("no".into()) }));
        let seen = |byte| ApprovalDecision { digest: Some(InputDigest([byte; 32])), ..decision(true) };
        assert!(decided_by(&facts, seen(1)).is_ok());
        assert!(matches!(decided_by(&facts, seen(2)), Err(Refusal::Invalid(_))));
        let known = Facts { approval: Some(denied.clone()), ..running() };
        for late in [decision(true), decision(false), seen(2)] {
            assert_eq!(decided_by(&known, late).unwrap_err(), Refusal::AlreadyExists(EntityKind::Approval));
        }
        let expired = decide_with(&Command::ExpireApproval { approval: denied.id.clone() }, &known).unwrap();
        assert_eq!((approval(&expired), expired.changes.len()), (denied, 0), "it was too late to expire");
    }

    #[test]
    fn always_creates_a_rule_only_if_the_tool_is_allowed() {
        let facts = Facts { approval: Some(open()), ..running() };
        let rules = |allow| {
            let plan = decided_by(&facts, ApprovalDecision { always: true, ..decision(allow) }).unwrap();
            let rule = |change: &Change| match change {
                Change::PutApprovalRule(rule) => Some(rule.clone()),
                _ => None,
            };
            plan.changes.iter().filter_map(rule).collect::<Vec<_>>()
        };
        assert_eq!(rules(true), [ApprovalRule { by: UserId::stored("ann"), at: NOW, ..rule() }]);
        assert_eq!(rules(false), []);
    }
}
