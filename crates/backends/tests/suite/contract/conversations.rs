//! Conversation logs of sessions, and runs and approvals that take place in sessions.

use super::approvals::approval;
use super::turns::ended;
use super::{Ports, each};
use crate::fixtures::*;
use crate::stores::{DAY, WINDOWS};
use parlor_engine::changes::{AgentChange, ApprovalChange, Change, ConversationChange, RunChange};
use parlor_engine::ports::{BudgetUsage, OpenApprovalsOf};
use parlor_model::query::EntryPage;
use parlor_model::{
    Approval, ConversationEntry, EntryKind, Event, MessageId, Payload, Run, RunCause, RunContext, RunId,
    RunOutcome, RunPlace, RunState, SessionId, Time, Usage,
};
use std::sync::Arc;

pub fn entry(agent: &str, session: &str, text: &str) -> ConversationEntry {
    ConversationEntry {
        agent: agent_id(agent),
        session: SessionId::stored(session),
        number: 0,
        at: Time(10),
        kind: EntryKind::Prompt,
        text: text.into(),
        run: None,
        details: None,
    }
}

fn append(entry: ConversationEntry) -> Change {
    Change::Conversation(ConversationChange::AppendEntry(Arc::new(entry)))
}

fn listed(ports: &Ports, session: &str, page: EntryPage, limit: usize) -> Vec<(u64, String)> {
    let session = SessionId::stored(session);
    let entries = ports.read(|s| s.conversation(&agent_id("coder"), &session, page, limit));
    entries.iter().map(|entry| (entry.number, entry.text.to_string())).collect()
}

#[test]
fn entries_are_numbered_per_session_and_listed_in_pages() {
    each(|ports| {
        let entries = ["a", "b", "c", "d"].map(|text| append(entry("coder", "main", text)));
        ports.change(entries.into());
        ports.change(vec![append(entry("coder", "side", "x")), append(entry("other", "main", "y"))]);
        let page = |page, limit| {
            let texts = listed(ports, "main", page, limit);
            texts.iter().map(|(number, text)| format!("{number}{text}")).collect::<Vec<_>>()
        };
        assert_eq!(page(EntryPage::After(0), 9), ["1a", "2b", "3c", "4d"]);
        assert_eq!(page(EntryPage::After(1), 2), ["2b", "3c"]);
        assert_eq!(page(EntryPage::Before(None), 2), ["3c", "4d"], "the newest, oldest first");
        assert_eq!(page(EntryPage::Before(Some(3)), 1), ["2b"]);
        assert_eq!(listed(ports, "side", EntryPage::After(0), 9), [(1, "x".into())]);
        ports.change(vec![Change::Agent(AgentChange::RemoveAgent(agent_id("coder")))]);
        assert_eq!(listed(ports, "main", EntryPage::After(0), 9), []);
    });
}

#[test]
fn an_entry_keeps_every_field() {
    each(|ports| {
        for kind in EntryKind::ALL {
            let (run, details) = (Some(RunId::stored("r")), Some(Payload(r#"{"a":1}"#.into())));
            let full = ConversationEntry { kind, run, details, ..entry("coder", "main", "é \"x\"\n") };
            ports.change(vec![append(full.clone())]);
            let session = SessionId::main();
            let last = |s: &mut dyn parlor_engine::ports::Snapshot| {
                s.conversation(&agent_id("coder"), &session, EntryPage::Before(None), 1)
            };
            let stored = ports.read(last).pop().unwrap();
            assert_eq!(stored, ConversationEntry { number: stored.number, ..full });
        }
    });
}

#[test]
fn old_entries_are_deleted_with_old_messages_except_the_last_of_each_session() {
    each(|ports| {
        let old = Time(1_700_000_000_000_000);
        for (session, text, at) in [("main", "a", old), ("main", "b", old), ("side", "x", old)] {
            ports.change(vec![append(ConversationEntry { at, ..entry("coder", session, text) })]);
        }
        let run = Run { place: place("side", None), ..ended("r", "coder", "c", old.0, RunOutcome::Complete) };
        ports.change(vec![Change::Run(RunChange::PutRun(Arc::new(run)))]);
        // The clock is trusted after a day of regular maintenance.
        let later = old.plus(WINDOWS.messages.unwrap()).plus(DAY);
        ports.store.run_maintenance(later).unwrap();
        ports.store.run_maintenance(later.plus(DAY)).unwrap();
        assert_eq!(listed(ports, "main", EntryPage::After(0), 9), [(2, "b".into())]);
        assert_eq!(listed(ports, "side", EntryPage::After(0), 9), [(1, "x".into())]);
        assert_eq!(ports.read(|s| s.run(&RunId::stored("r"))), None);
        ports.change(vec![append(entry("coder", "main", "c"))]);
        assert_eq!(listed(ports, "main", EntryPage::After(2), 9), [(3, "c".into())], "no number twice");
    });
}

fn place(session: &str, room: Option<&str>) -> RunPlace {
    let (session, room) = (SessionId::stored(session), room.map(room_id));
    RunPlace::Session { session, room, owner: user_id("ann") }
}

fn put(ports: &mut Ports, run: &Run) {
    ports.commit(
        vec![Change::Run(RunChange::PutRun(Arc::new(run.clone())))],
        vec![Event::RunChanged(Arc::new(run.clone()))],
    );
}

#[test]
fn a_run_keeps_its_place_and_cause() {
    each(|ports| {
        let batch = |count: usize| RunCause::Batch {
            messages: (0..count).map(|n| MessageId::stored(format!("m:{n}@x"))).collect(),
            attempt: 3,
        };
        let explicit = RunCause::Explicit { prompt: "é \"x\"\n".into(), by: user_id("bob") };
        let causes =
            [RunCause::Unprompted, RunCause::Message(MessageId::stored("m")), batch(2), batch(0), explicit];
        for (number, cause) in causes.into_iter().enumerate() {
            for place in [RunPlace::Room(room_id("lobby")), place("main", None), place("s", Some("lobby"))] {
                let id = format!("{number}-{place:?}");
                let run =
                    Run { place, cause: cause.clone(), ..ended(&id, "coder", "c", 9, RunOutcome::Complete) };
                put(ports, &run);
                assert_eq!(ports.read(|s| s.run(&run.id)), Some(run.clone()));
                assert_eq!(ports.events().pop(), Some(Event::RunChanged(Arc::new(run))));
            }
        }
    });
}

#[test]
fn runs_in_sessions_are_found_by_session_and_runs_without_a_room_by_owner() {
    each(|ports| {
        let run = |id: &str, place: RunPlace, state: RunState| Run {
            place,
            ended_at: matches!(state, RunState::Ended(_)).then_some(Time(9)),
            state,
            usage: Usage { input_tokens: 1, output_tokens: 2, cost: None },
            ..ended(id, "coder", "c", 9, RunOutcome::Complete)
        };
        let complete = RunState::Ended(RunOutcome::Complete);
        for (id, place, state) in [
            ("1", place("main", None), complete),
            ("2", place("main", None), RunState::Running),
            ("3", place("main", Some("lobby")), RunState::Queued),
            ("4", place("side", None), RunState::Queued),
            ("5", RunPlace::Room(room_id("lobby")), RunState::Queued),
        ] {
            put(ports, &run(id, place, state));
        }
        let ids = |runs: Vec<Run>| runs.iter().map(|run| run.id.to_string()).collect::<Vec<_>>();
        let (coder, ann) = (agent_id("coder"), user_id("ann"));
        let open =
            |session: &str| ids(ports.read(|s| s.open_runs_of_session(&coder, &SessionId::stored(session))));
        assert_eq!(
            (open("main"), open("side"), open("x")),
            (vec!["2".into(), "3".into()], vec!["4".into()], vec![])
        );
        assert_eq!(ids(ports.read(|s| s.open_runs_of_owner(&ann))), ["2", "4"]);
        assert_eq!(ids(ports.read(|s| s.runs_of_owner(&ann, 2))), ["4", "2"]);
        assert_eq!(ids(ports.read(|s| s.runs_of_owner(&user_id("bob"), 9))), [""; 0]);
        assert_eq!(ids(ports.read(|s| s.open_runs_in(&room_id("lobby")))), ["3", "5"]);
        let spent = |context| ports.read(|s| s.spent(&context, &coder, Time(0)));
        let main = RunContext::Session(SessionId::main());
        assert_eq!(spent(main), BudgetUsage { turns: 3, tokens: 9 });
        assert_eq!(spent(RunContext::Room(room_id("lobby"))), BudgetUsage { turns: 2, tokens: 6 });
    });
}

#[test]
fn approvals_without_a_room_are_found_by_owner() {
    each(|ports| {
        let places = [
            ("a", RunPlace::Room(room_id("lobby"))),
            ("b", place("main", None)),
            ("c", place("main", Some("lobby"))),
        ];
        for (id, place) in places {
            let approval = Approval { place, ..approval(id, "lobby", "coder") };
            ports.change(vec![Change::Approval(ApprovalChange::PutApproval(Arc::new(approval.clone())))]);
            assert_eq!(ports.read(|s| s.approval(&approval.id)), Some(approval));
        }
        let (owner, room) = (user_id("ann"), room_id("lobby"));
        for (of, expected) in
            [(OpenApprovalsOf::Owner(&owner), &["b"][..]), (OpenApprovalsOf::Room(&room), &["a", "c"])]
        {
            let open = ports.read(|s| s.open_approvals(of));
            let ids: Vec<&str> = open.iter().map(|approval| approval.id.as_str()).collect();
            assert_eq!(ids, expected);
        }
    });
}
