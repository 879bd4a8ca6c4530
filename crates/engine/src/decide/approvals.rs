//! Questions of agents: asked once, decided once, and never by nobody.
//!
//! Owns: what is not allowed by somebody who may is not allowed; a question is bound to its turn, its tool and exactly
//! its input; what ends with its turn ends in the same transaction.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::approval::MAX_APPROVAL_WAIT;
use parlor_model::command::{ApprovalDecision, NewApproval};
use parlor_model::{
    Approval, ApprovalId, ApprovalKind, ApprovalRule, Command, Decider, Decision, EntityKind, Event, Payload,
    Receipt, Refusal, RunState,
};
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::AskApproval(new) => ask(new, effects_builder),
        Command::DecideApproval(approval_decision) => judge(approval_decision, effects_builder),
        Command::AnswerQuestions { answers, .. } => answer(answers, effects_builder),
        Command::ExpireApproval { .. } => expire(effects_builder),
        Command::RevokeApprovalRule { .. } => {
            let mut effects_builder = effects_builder;
            let rule =
                effects_builder.facts.rule.clone().ok_or(Refusal::NotFound(EntityKind::ApprovalRule))?;
            effects_builder.change(Change::RemoveApprovalRule(rule));
            effects_builder.done(Receipt::Done)
        }
        _ => unreachable!("the dispatcher sends only questions here"),
    }
}

fn ask(new: &NewApproval, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let run = facts.run.as_ref().ok_or(Refusal::NotFound(EntityKind::Run))?;
    if let Some(known) = &facts.approval {
        let same = known.run == run.id
            && known.tool == new.tool
            && known.kind == new.kind
            && known.digest == new.digest;
        // Another question under the same name would take the answer to the first for its own.
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
    let bytes: usize = facts.approvals.iter().map(|open| open.input.0.len()).sum();
    let crowded = facts.open_approvals >= limits.approvals
        || of_run >= limits.run_approvals
        || bytes + new.input.0.len() > limits.approval_bytes;
    if crowded && facts.rule.is_none() {
        return Err(Refusal::AtCapacity);
    }
    let asked = Approval {
        id: ApprovalId::stored(effects_builder.decide_context.ids.next()),
        run: run.id.clone(),
        room: run.room.clone(),
        agent: run.agent.clone(),
        agent_name: agent.name.clone(),
        gateway: new.gateway.clone(),
        request: new.request.clone(),
        tool: new.tool.clone(),
        kind: new.kind,
        input: new.input.clone(),
        digest: new.digest,
        asked_at: facts.now,
        expires_at: facts.now.plus(new.timeout.min(MAX_APPROVAL_WAIT)),
        decision: None,
        decided_at: None,
    };
    if facts.rule.is_some() {
        let decided = settle(&asked, Decision::AllowedByRule, &mut effects_builder)?;
        return effects_builder.done(Receipt::Approval(decided));
    }
    let asked = Arc::new(asked);
    effects_builder.change(Change::PutApproval(asked.clone()));
    effects_builder.tell(Event::ApprovalAsked(asked.clone()));
    effects_builder.done(Receipt::Approval(asked))
}

fn judge(
    approval_decision: &ApprovalDecision,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let facts = effects_builder.facts;
    let approval = the_approval(ApprovalKind::Tool, &effects_builder)?;
    if approval.decision.is_some() {
        return Err(Refusal::AlreadyExists(EntityKind::Approval));
    }
    if approval_decision.digest.is_some_and(|digest| digest != approval.digest) {
        return Err(Refusal::invalid("inputDigest", "is of another input than the one that is asked for"));
    }
    // What stands still stays so, also before its turns have ended.
    if approval_decision.allow && facts.room.as_ref().is_none_or(|room| room.is_frozen()) {
        return Err(Refusal::Forbidden);
    }
    let actor = effects_builder.actor()?;
    let by = Decider { user: actor.id.clone(), name: actor.display_name.clone() };
    let decision = match approval_decision.allow {
        true => Decision::Allowed { by },
        false => Decision::Denied { by, reason: approval_decision.reason.clone() },
    };
    let decided = settle(&approval, decision, &mut effects_builder)?;
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

fn answer(answers: &Payload, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let asked = the_approval(ApprovalKind::Questions, &effects_builder)?;
    if effects_builder.facts.room.as_ref().is_none_or(|room| room.is_frozen()) && asked.decision.is_none() {
        return Err(Refusal::Forbidden);
    }
    let actor = effects_builder.actor()?;
    let by = Decider { user: actor.id.clone(), name: actor.display_name.clone() };
    let decided = settle(&asked, Decision::Answered { by, answers: answers.clone() }, &mut effects_builder)?;
    effects_builder.done(Receipt::Approval(decided))
}

/// Somebody may have been quicker.
fn expire(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let approval = effects_builder.facts.approval.clone().ok_or(Refusal::NotFound(EntityKind::Approval))?;
    let approval = match approval.decision {
        Some(_) => Arc::new(approval),
        None => settle(&approval, Decision::Expired, &mut effects_builder)?,
    };
    effects_builder.done(Receipt::Approval(approval))
}

/// Nobody is to answer any more what is open of a turn, an agent or a room that ends.
pub fn withdraw(effects_builder: &mut EffectsBuilder) {
    for open in &effects_builder.facts.approvals {
        // What is open can be decided.
        let _ = settle(open, Decision::Withdrawn, effects_builder);
    }
}

/// What is asked about something else is not there for who answers this.
fn the_approval(approval_kind: ApprovalKind, effects_builder: &EffectsBuilder) -> Result<Approval, Refusal> {
    let found = effects_builder.facts.approval.as_ref().filter(|found| found.kind == approval_kind);
    found.cloned().ok_or(Refusal::NotFound(EntityKind::Approval))
}

fn settle(
    approval: &Approval,
    decision: Decision,
    effects_builder: &mut EffectsBuilder,
) -> Result<Arc<Approval>, Refusal> {
    let decided = approval.decided(decision, effects_builder.facts.now);
    let decided = Arc::new(decided.map_err(|_| Refusal::AlreadyExists(EntityKind::Approval))?);
    effects_builder.change(Change::PutApproval(decided.clone()));
    effects_builder.tell(Event::ApprovalDecided(decided.clone()));
    Ok(decided)
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::*;
    use super::*;
    use crate::facts::Facts;
    use parlor_model::{
        AddressedBy, AgentId, AgentReply, AnswerPolicy, ConversationId, Frozen, GatewayId, InputDigest,
        Lineage, Member, MemberId, Room, RoomId, RoomKind, RoomRole, Run, RunFinish, RunId, RunOutcome, Time,
        Usage, UserId,
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

    /// The agent runs in the room, and nothing was asked yet.
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
            kind: ApprovalKind::Tool,
            input: Payload(INPUT.into()),
            digest: InputDigest([1; 32]),
            timeout: Duration::from_secs(timeout),
        }
    }

    fn asked(facts: &Facts, new: NewApproval) -> Result<Effects, Refusal> {
        decide_with(&Command::AskApproval(new), facts)
    }

    fn approval(plan: &Effects) -> Approval {
        let Receipt::Approval(approval) = &plan.receipt else { panic!("no approval: {plan:?}") };
        Approval::clone(approval)
    }

    fn open() -> Approval {
        approval(&asked(&running(), new(60)).unwrap())
    }

    fn rule() -> ApprovalRule {
        let (agent, by) = (AgentId::stored("coder"), UserId::stored("bob"));
        ApprovalRule { room: room(), agent, tool: "Bash".into(), by, at: Time(1) }
    }

    fn judgement(allow: bool) -> ApprovalDecision {
        let approval = ApprovalId::stored("new");
        ApprovalDecision { approval, allow, always: false, reason: Some("no".into()), digest: None }
    }

    #[test]
    fn questions_are_answered_and_tools_are_allowed_and_neither_is_taken_for_the_other() {
        let questions = Approval { kind: ApprovalKind::Questions, ..open() };
        let facts = Facts { approval: Some(questions), ..running() };
        let missing = Refusal::NotFound(EntityKind::Approval);
        assert_eq!(judged(&facts, judgement(true)).unwrap_err(), missing);
        let answer =
            Command::AnswerQuestions { approval: ApprovalId::stored("new"), answers: Payload("[]".into()) };
        let answered = approval(&decide_with(&answer, &facts).unwrap());
        assert!(
            matches!(&answered.decision, Some(Decision::Answered { answers, .. }) if &*answers.0 == "[]")
        );
        let known = Facts { approval: Some(answered), ..running() };
        assert_eq!(decide_with(&answer, &known).unwrap_err(), Refusal::AlreadyExists(EntityKind::Approval));
        let tool = Facts { approval: Some(open()), ..running() };
        assert_eq!(decide_with(&answer, &tool).unwrap_err(), missing);
        let mut frozen = facts;
        let still = Some(Frozen { by: None, at: Time(1) });
        frozen.room = frozen.room.map(|room| Arc::new(Room { frozen: still, ..Room::clone(&room) }));
        assert_eq!(decide_with(&answer, &frozen).unwrap_err(), Refusal::Forbidden);
    }

    fn judged(facts: &Facts, approval_decision: ApprovalDecision) -> Result<Effects, Refusal> {
        decide_with(&Command::DecideApproval(approval_decision), facts)
    }

    #[test]
    fn a_question_is_open_for_as_long_as_it_says_and_no_longer_than_five_minutes() {
        for (timeout, open_for) in [(0, 0), (60, 60), (300, 300), (301, 300), (u64::MAX, 300)] {
            let plan = asked(&running(), new(timeout)).unwrap();
            let asked = approval(&plan);
            assert_eq!(asked.open_for(), Duration::from_secs(open_for));
            assert_eq!(asked.decision, None);
            assert_eq!(plan.events[0].event, Event::ApprovalAsked(Arc::new(asked)));
        }
    }

    #[test]
    fn the_same_question_asked_again_is_the_same_and_another_under_its_name_is_refused() {
        let known = Facts { approval: Some(open()), ..running() };
        let again = asked(&known, new(60)).unwrap();
        assert_eq!((approval(&again), again.changes.len(), again.events.len()), (open(), 0, 0));
        let others = [
            NewApproval { digest: InputDigest([2; 32]), ..new(60) },
            NewApproval { tool: "Write".into(), ..new(60) },
        ];
        for other in others {
            assert_eq!(asked(&known, other).unwrap_err(), Refusal::AlreadyExists(EntityKind::Approval));
        }
        let elsewhere = Facts { run: Some(run("next")), ..known };
        assert_eq!(asked(&elsewhere, new(60)).unwrap_err(), Refusal::AlreadyExists(EntityKind::Approval));
    }

    #[test]
    fn only_a_turn_that_goes_on_asks() {
        let over = Run { state: RunState::Ended(RunOutcome::Cancelled), ..run("run") };
        let cases = [
            Facts { run: None, ..running() },
            Facts { run: Some(over), ..running() },
            Facts { run: Some(Run { state: RunState::Queued, ..run("run") }), ..running() },
            Facts { target: None, ..running() },
            Facts { room: None, ..running() },
        ];
        for facts in cases {
            assert_eq!(asked(&facts, new(60)).unwrap_err(), Refusal::NotFound(EntityKind::Run));
        }
    }

    #[test]
    fn in_a_frozen_room_nothing_is_asked_and_nothing_allowed() {
        let mut facts = Facts { approval: Some(open()), ..running() };
        let frozen = Some(Frozen { by: None, at: Time(1) });
        facts.room = facts.room.map(|room| Arc::new(Room { frozen, ..Room::clone(&room) }));
        assert_eq!(judged(&facts, judgement(true)).unwrap_err(), Refusal::Forbidden);
        assert!(judged(&facts, judgement(false)).is_ok());
        let nothing_yet = Facts { approval: None, ..facts };
        assert_eq!(asked(&nothing_yet, new(60)).unwrap_err(), Refusal::NotFound(EntityKind::Run));
    }

    #[test]
    fn too_many_or_too_long_questions_are_refused_unless_a_rule_answers_them() {
        let long =
            Approval { input: Payload("x".repeat(512 * 1024).into()), run: RunId::stored("x"), ..open() };
        let cases = [
            Facts { open_approvals: 1000, ..running() },
            Facts { approvals: vec![open(); 20], ..running() },
            Facts { approvals: vec![long], ..running() },
        ];
        for facts in cases {
            assert_eq!(asked(&facts, new(60)).unwrap_err(), Refusal::AtCapacity);
            let decided = approval(&asked(&Facts { rule: Some(rule()), ..facts }, new(60)).unwrap());
            assert_eq!(decided.decision, Some(Decision::AllowedByRule));
        }
        let nearly = Facts { open_approvals: 999, approvals: vec![open(); 19], ..running() };
        assert!(asked(&nearly, new(60)).is_ok());
    }

    #[test]
    fn what_a_rule_allows_is_told_as_decided_and_never_as_open() {
        let plan = asked(&Facts { rule: Some(rule()), ..running() }, new(60)).unwrap();
        let [told] = &plan.events[..] else { panic!("{:?}", plan.events) };
        assert_eq!(told.event, Event::ApprovalDecided(Arc::new(approval(&plan))));
    }

    #[test]
    fn the_first_answer_counts_and_only_to_what_was_looked_at() {
        let facts = Facts { approval: Some(open()), ..running() };
        let ann = Decider { user: UserId::stored("ann"), name: "ann".into() };
        let allowed = approval(&judged(&facts, judgement(true)).unwrap());
        assert_eq!(allowed.decision, Some(Decision::Allowed { by: ann.clone() }));
        let denied = approval(&judged(&facts, judgement(false)).unwrap());
        assert_eq!(denied.decision, Some(Decision::Denied { by: ann, reason: Some("no".into()) }));
        let seen = |byte| ApprovalDecision { digest: Some(InputDigest([byte; 32])), ..judgement(true) };
        assert!(judged(&facts, seen(1)).is_ok());
        assert!(matches!(judged(&facts, seen(2)), Err(Refusal::Invalid(_))));
        let known = Facts { approval: Some(denied.clone()), ..running() };
        for late in [judgement(true), judgement(false), seen(2)] {
            assert_eq!(judged(&known, late).unwrap_err(), Refusal::AlreadyExists(EntityKind::Approval));
        }
        let expired = decide_with(&Command::ExpireApproval { approval: denied.id.clone() }, &known).unwrap();
        assert_eq!((approval(&expired), expired.changes.len()), (denied, 0), "it was too late to expire");
    }

    #[test]
    fn always_makes_a_rule_and_only_with_a_yes() {
        let facts = Facts { approval: Some(open()), ..running() };
        let rules = |allow| {
            let plan = judged(&facts, ApprovalDecision { always: true, ..judgement(allow) }).unwrap();
            let rule = |change: &Change| match change {
                Change::PutApprovalRule(rule) => Some(rule.clone()),
                _ => None,
            };
            plan.changes.iter().filter_map(rule).collect::<Vec<_>>()
        };
        assert_eq!(rules(true), [ApprovalRule { by: UserId::stored("ann"), at: NOW, ..rule() }]);
        assert_eq!(rules(false), []);
    }

    #[test]
    fn what_is_open_goes_with_its_turn() {
        let said = AgentReply {
            message: None,
            text: "done".into(),
            chunks: Vec::new(),
            target: None,
            claimed_depth: 0,
        };
        let (run, outcome) = (RunId::stored("run"), RunOutcome::Complete);
        let finished = RunFinish { run, outcome, said: Some(said) };
        let facts = Facts { approvals: vec![open()], ..running() };
        let plan = decide_with(&Command::FinishRun(finished), &facts).unwrap();
        let told: Vec<_> = plan.events.iter().map(|logged_event| &logged_event.event).collect();
        let [
            Event::ApprovalDecided(withdrawn),
            Event::MessagePosted { message, .. },
            Event::RunChanged(over),
        ] = told[..]
        else {
            panic!("{told:?}")
        };
        assert_eq!(message.seq, plan.events[1].seq, "what is said is at its own place");
        assert_eq!(withdrawn.decision, Some(Decision::Withdrawn));
        assert!(over.has_ended());
    }
}
