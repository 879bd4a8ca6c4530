//! Approvals and approval rules.

use super::{Ports, each};
use crate::fixtures::*;
use crate::stores::WINDOWS;
use parlor_engine::changes::{AccountChange, AgentChange, ApprovalChange, Change, RoomChange};
use parlor_engine::ports::OpenApprovalsOf;
use parlor_model::{
    Approval, ApprovalId, ApprovalRule, ApprovalSubject, Decider, Decision, Event, GatewayId, InputDigest,
    Payload, RunId, RunPlace, Time,
};
use std::sync::Arc;
use std::time::Duration;

pub fn approval(id: &str, room: &str, agent: &str) -> Approval {
    Approval {
        id: ApprovalId::stored(id),
        run: RunId::stored(format!("run of {agent}")),
        place: RunPlace::Room(room_id(room)),
        agent: agent_id(agent),
        agent_name: "The \"Coder\"".into(),
        gateway: GatewayId::stored("laptop"),
        request: "their ' 1".into(),
        tool: "Bash".into(),
        subject: ApprovalSubject::Tool(Payload("{\"b\": 1.0, \"a\":null}".into())),
        digest: InputDigest(std::array::from_fn(|index| index as u8)),
        asked_at: Time(10),
        expires_at: Time(20),
        decision: None,
        decided_at: None,
    }
}

fn put(approval: &Approval) -> Change {
    Change::Approval(ApprovalChange::PutApproval(Arc::new(approval.clone())))
}

pub fn rule(room: &str, agent: &str, tool: &str, by: &str) -> ApprovalRule {
    ApprovalRule {
        room: room_id(room),
        agent: agent_id(agent),
        tool: tool.into(),
        by: user_id(by),
        at: Time(7),
    }
}

fn open(ports: &Ports, of: OpenApprovalsOf<'_>) -> Vec<String> {
    ports.read(|s| s.open_approvals(of)).iter().map(|approval| approval.id.to_string()).collect()
}

#[test]
fn an_approval_keeps_every_field_with_any_decision() {
    each(|ports| {
        let by = Decider { user: user_id("ann"), name: "Ann \"Lee\"".into() };
        let decisions = [
            None,
            Some(Decision::Allowed { by: by.clone() }),
            Some(Decision::AllowedByRule),
            Some(Decision::Denied { by: by.clone(), reason: None }),
            Some(Decision::Denied { by: by.clone(), reason: Some("no ' way".into()) }),
            Some(Decision::Answered {
                by,
                answers: vec![answer(1, &["Tea", "a \"b\""], Some("c \0 'd'")), answer(0, &[], Some(""))],
            }),
            Some(Decision::Expired),
            Some(Decision::Withdrawn),
        ];
        let mut all = Vec::new();
        for (index, decision) in decisions.into_iter().enumerate() {
            let answered = matches!(decision, Some(Decision::Answered { .. }));
            let mut requested = approval(&format!("a{index}"), "lobby", "coder");
            if answered {
                requested.subject = ApprovalSubject::Questions(questions());
            }
            ports.commit(vec![put(&requested)], vec![Event::ApprovalAsked(Arc::new(requested.clone()))]);
            let decided_at = decision.as_ref().map(|_| Time(15));
            let now = Approval { decision, decided_at, ..requested };
            ports.commit(vec![put(&now)], vec![Event::ApprovalDecided(Arc::new(now.clone()))]);
            all.push(now);
        }
        ports.restart();
        for approval in &all {
            assert_eq!(ports.read(|s| s.approval(&approval.id)).as_ref(), Some(approval));
        }
        assert_eq!(ports.read(|s| s.approval(&ApprovalId::stored("never"))), None);
        let called = |gateway: &str, request: &str| {
            ports.read(|s| s.approvals_called(&GatewayId::stored(gateway), request))
        };
        assert_eq!(called("laptop", "their ' 1"), all);
        assert_eq!(called("desk", "their ' 1"), []);
        assert_eq!(called("laptop", "2"), []);
        let expected: Vec<Event> = all
            .iter()
            .flat_map(|now| {
                let now = Arc::new(now.clone());
                [Event::ApprovalAsked(now.clone()), Event::ApprovalDecided(now)]
            })
            .collect();
        assert_eq!(ports.events(), expected, "logged events have the current content");
    });
}

#[test]
fn open_approvals_are_found_by_room_run_and_agent() {
    each(|ports| {
        let requested = [
            approval("b", "lobby", "coder"),
            approval("a", "other", "coder"),
            approval("c", "lobby", "writer"),
        ];
        ports.change(requested.iter().map(put).collect());
        let run = RunId::stored("run of coder");
        assert_eq!(open(ports, OpenApprovalsOf::Everybodys), ["b", "a", "c"]);
        assert_eq!(open(ports, OpenApprovalsOf::Room(&room_id("lobby"))), ["b", "c"]);
        assert_eq!(open(ports, OpenApprovalsOf::Run(&run)), ["b", "a"]);
        assert_eq!(open(ports, OpenApprovalsOf::Agent(&agent_id("writer"))), ["c"]);
        assert_eq!(ports.read(|s| s.open_approval_count()), 3);
        let decided = requested[0].decided(Decision::Expired, Time(20)).unwrap();
        ports.change(vec![put(&decided)]);
        assert_eq!(open(ports, OpenApprovalsOf::Run(&run)), ["a"]);
        assert_eq!(ports.read(|s| s.open_approval_count()), 2);
    });
}

#[test]
fn rules_are_listed_replaced_and_removed_one_by_one() {
    each(|ports| {
        let rules = [
            rule("lobby", "coder", "Bash", "ann"),
            rule("lobby", "coder", "W", "ann"),
            rule("lobby", "a", "Z", "bob"),
        ];
        ports.change(
            rules.iter().cloned().map(|it| Change::Approval(ApprovalChange::PutApprovalRule(it))).collect(),
        );
        ports.change(vec![Change::Approval(ApprovalChange::PutApprovalRule(rule(
            "other", "coder", "Bash", "ann",
        )))]);
        let list = |ports: &Ports| ports.read(|s| s.approval_rules(&room_id("lobby")));
        let found = |ports: &Ports, tool: &str| {
            ports.read(|s| s.approval_rule(&room_id("lobby"), &agent_id("coder"), tool))
        };
        assert_eq!(list(ports), [rules[2].clone(), rules[0].clone(), rules[1].clone()]);
        let newer = ApprovalRule { by: user_id("bob"), at: Time(9), ..rules[0].clone() };
        ports.change(vec![Change::Approval(ApprovalChange::PutApprovalRule(newer.clone()))]);
        assert_eq!((found(ports, "Bash"), found(ports, "bash")), (Some(newer), None));
        ports.change(vec![Change::Approval(ApprovalChange::RemoveApprovalRule(rules[1].clone()))]);
        assert_eq!((found(ports, "W"), list(ports).len()), (None, 2));
        assert_eq!(ports.read(|s| s.approval_rules(&room_id("other"))).len(), 1);
    });
}

#[test]
fn approvals_and_rules_are_deleted_with_their_room_agent_and_user() {
    each(|ports| {
        let fill = |ports: &mut Ports| {
            ports.change(vec![
                put_user("ann", 1),
                put_user("bob", 1),
                put_room("lobby"),
                put_agent("coder", "ann"),
                put(&approval("a", "lobby", "coder")),
                Change::Approval(ApprovalChange::PutApprovalRule(rule("lobby", "coder", "Bash", "bob"))),
            ]);
        };
        let left = |ports: &Ports| {
            let rules = ports.read(|s| s.approval_rules(&room_id("lobby"))).len();
            (open(ports, OpenApprovalsOf::Everybodys).len(), rules)
        };
        for (removal, expected) in [
            (Change::Room(RoomChange::RemoveRoom(room_id("lobby"))), (0, 0)),
            (Change::Agent(AgentChange::RemoveAgent(agent_id("coder"))), (0, 0)),
            (Change::Account(AccountChange::RemoveUser(user_id("ann"))), (0, 0)),
            (Change::Account(AccountChange::RemoveUser(user_id("bob"))), (1, 0)),
        ] {
            fill(ports);
            assert_eq!(left(ports), (1, 1));
            ports.change(vec![removal]);
            assert_eq!(left(ports), expected);
            ports.change(vec![Change::Room(RoomChange::RemoveRoom(room_id("lobby")))]);
        }
    });
}

#[test]
fn decided_approvals_are_deleted_with_the_log_and_open_ones_stay() {
    each(|ports| {
        let requested = approval("a", "lobby", "coder");
        let decided = approval("b", "lobby", "coder").decided(Decision::Withdrawn, Time(20)).unwrap();
        ports.change(vec![put(&requested), put(&decided)]);
        let stored = |ports: &Ports| {
            ["a", "b"].map(|id| ports.read(|s| s.approval(&ApprovalId::stored(id))).is_some())
        };
        ports.store.run_maintenance(Time(20).plus(WINDOWS.log)).unwrap();
        assert_eq!(stored(ports), [true, true]);
        ports.store.run_maintenance(Time(20).plus(WINDOWS.log + Duration::from_micros(1))).unwrap();
        assert_eq!(stored(ports), [true, false]);
    });
}
