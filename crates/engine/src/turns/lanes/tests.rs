//! Tests of the lanes with a controlled clock.

use super::*;
use parlor_model::{
    AddressedBy, ConversationId, Lineage, RunCause, RunOutcome, RunPlace, RunState, SessionId, Time, Usage,
    UserId,
};
use proptest::prelude::*;

const SECOND: Duration = Duration::from_secs(1);

fn id(name: &str) -> SessionRef {
    let (agent, session) = name.split_once(':').unwrap();
    SessionRef { agent: AgentId::stored(agent), session: SessionId::stored(session) }
}

fn sessions(names: &[&str], auto_run: AutoRun) -> BTreeMap<SessionRef, AutoRun> {
    names.iter().map(|name| (id(name), auto_run.clone())).collect()
}

/// Lanes with the default limits whose first checks, at `start`, found no mail.
fn lanes(names: &[&str], start: Instant) -> Lanes {
    let mut lanes = Lanes::default();
    lanes.configure(sessions(names, AutoRun::of(true)), start);
    for (id, _) in lanes.take_due(start) {
        lanes.checked(&id, Checked::Empty { next: None }, start);
    }
    lanes
}

fn due(lanes: &mut Lanes, now: Instant) -> Vec<String> {
    let due = lanes.take_due(now).into_iter();
    due.map(|(id, _)| format!("{}:{}", id.agent, id.session)).collect()
}

fn run(name: &str, of: &str, state: RunState) -> Run {
    let SessionRef { agent, session } = id(of);
    Run {
        id: RunId::stored(name),
        agent: agent.clone(),
        place: RunPlace::Session { session, room: None, owner: UserId::stored("ann") },
        cause: RunCause::Batch { messages: Vec::new(), attempt: 1 },
        asked_by: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored("c"), agent),
        parent: None,
        state,
        reply: None,
        usage: Usage::default(),
        stop_requested: false,
        queued_at: Time(1),
        started_at: None,
        ended_at: None,
    }
}

fn ended() -> RunState {
    RunState::Ended(RunOutcome::Complete)
}

const NONE: [&str; 0] = [];

#[test]
fn a_batch_is_due_when_no_message_arrives_within_the_debounce() {
    let start = Instant::now();
    let mut lanes = lanes(&["a:main", "b:main"], start);
    lanes.arrived(&id("a:main"), start);
    lanes.arrived(&id("a:main"), start + 2 * SECOND);
    assert_eq!(due(&mut lanes, start + 4 * SECOND), NONE);
    assert_eq!(lanes.next_deadline(), Some(start + 5 * SECOND));
    assert_eq!(due(&mut lanes, start + 5 * SECOND), ["a:main"]);
    assert_eq!(due(&mut lanes, start + 60 * SECOND), NONE, "it is being checked");
}

#[test]
fn a_full_batch_is_due_at_once() {
    let start = Instant::now();
    let mut lanes = lanes(&["a:main"], start);
    for _ in 0..19 {
        lanes.arrived(&id("a:main"), start);
    }
    assert_eq!(due(&mut lanes, start), NONE);
    lanes.arrived(&id("a:main"), start);
    assert_eq!(due(&mut lanes, start), ["a:main"]);
}

#[test]
fn messages_that_arrive_during_a_run_are_checked_after_it() {
    let start = Instant::now();
    let mut lanes = lanes(&["a:main"], start);
    lanes.arrived(&id("a:main"), start);
    assert_eq!(due(&mut lanes, start + 3 * SECOND), ["a:main"]);
    lanes.run_changed(&run("1", "a:main", RunState::Queued), start + 3 * SECOND);
    lanes.checked(&id("a:main"), Checked::Busy, start + 3 * SECOND);
    lanes.arrived(&id("a:main"), start + 4 * SECOND);
    lanes.run_changed(&run("1", "a:main", RunState::Running), start + 4 * SECOND);
    assert_eq!(due(&mut lanes, start + 60 * SECOND), NONE);
    assert_eq!(lanes.next_deadline(), None);
    lanes.run_changed(&run("1", "a:main", ended()), start + 60 * SECOND);
    assert_eq!(due(&mut lanes, start + 60 * SECOND), ["a:main"]);
}

#[test]
fn a_batch_that_was_begun_during_a_run_keeps_its_debounce() {
    let start = Instant::now();
    let mut lanes = lanes(&["a:main"], start);
    lanes.run_changed(&run("1", "a:main", RunState::Running), start);
    lanes.arrived(&id("a:main"), start + SECOND);
    lanes.run_changed(&run("1", "a:main", ended()), start + 2 * SECOND);
    assert_eq!(due(&mut lanes, start + 3 * SECOND), NONE);
    assert_eq!(due(&mut lanes, start + 4 * SECOND), ["a:main"]);
}

#[test]
fn an_event_during_a_check_causes_another_check() {
    let start = Instant::now();
    let mut lanes = lanes(&["a:main"], start);
    let other: fn(&mut Lanes) = |lanes| {
        lanes.run_changed(&run("1", "a:main", RunState::Running), Instant::now());
        lanes.run_changed(&run("1", "a:main", ended()), Instant::now());
    };
    let online: fn(&mut Lanes) = |lanes| lanes.agent_online(&AgentId::stored("a"), Instant::now());
    for happens in [other, online] {
        lanes.arrived(&id("a:main"), start);
        assert_eq!(due(&mut lanes, start + 3 * SECOND), ["a:main"]);
        happens(&mut lanes);
        lanes.checked(&id("a:main"), Checked::Busy, start + 3 * SECOND);
        assert_eq!(due(&mut lanes, start + 3 * SECOND), ["a:main"], "its result may be outdated");
        lanes.checked(&id("a:main"), Checked::Empty { next: None }, start + 3 * SECOND);
        assert_eq!(due(&mut lanes, start + 60 * SECOND), NONE);
    }
}

#[test]
fn a_session_whose_agent_is_offline_waits_for_it() {
    let start = Instant::now();
    let mut lanes = lanes(&["a:main", "a:side"], start);
    lanes.arrived(&id("a:main"), start);
    assert_eq!(due(&mut lanes, start + 3 * SECOND), ["a:main"]);
    lanes.checked(&id("a:main"), Checked::NeedsHost, start + 3 * SECOND);
    assert_eq!(due(&mut lanes, start + 600 * SECOND), NONE);
    lanes.agent_online(&AgentId::stored("b"), start + 601 * SECOND);
    assert_eq!(due(&mut lanes, start + 601 * SECOND), NONE);
    lanes.agent_online(&AgentId::stored("a"), start + 602 * SECOND);
    assert_eq!(due(&mut lanes, start + 602 * SECOND), ["a:main"], "the other session has no mail");
}

#[test]
fn a_held_session_waits_for_its_token_whatever_arrives() {
    let start = Instant::now();
    let limits =
        Limits { triage_fallback_burst: 1, triage_fallback_interval: 60 * SECOND, ..Limits::default() };
    let mut lanes = lanes(&["a:main", "b:main"], start);
    lanes.arrived(&id("a:main"), start);
    assert_eq!(due(&mut lanes, start + 3 * SECOND), ["a:main"]);
    assert_eq!(lanes.take_token(&id("a:main"), &limits, start), Ok(()));
    let until = lanes.take_token(&id("a:main"), &limits, start).unwrap_err();
    assert_eq!(until, start + 60 * SECOND);
    assert_eq!(lanes.take_token(&id("b:main"), &limits, start), Ok(()), "each session has its own budget");
    lanes.checked(&id("a:main"), Checked::Held(until), start + 3 * SECOND);
    for _ in 0..30 {
        lanes.arrived(&id("a:main"), start + 5 * SECOND);
    }
    assert_eq!(due(&mut lanes, start + 59 * SECOND), NONE);
    assert_eq!(lanes.next_deadline(), Some(until));
    assert_eq!(due(&mut lanes, until), ["a:main"]);
}

#[test]
fn mail_that_becomes_pending_later_is_checked_then() {
    let start = Instant::now();
    let mut lanes = lanes(&["a:main"], start);
    lanes.arrived(&id("a:main"), start);
    assert_eq!(due(&mut lanes, start + 3 * SECOND), ["a:main"]);
    lanes.checked(&id("a:main"), Checked::Empty { next: Some(start + 30 * SECOND) }, start + 3 * SECOND);
    lanes.arrived(&id("a:main"), start + 10 * SECOND);
    assert_eq!(due(&mut lanes, start + 13 * SECOND), ["a:main"], "new mail does not wait for it");
    lanes.checked(&id("a:main"), Checked::Empty { next: Some(start + 30 * SECOND) }, start + 13 * SECOND);
    assert_eq!(due(&mut lanes, start + 30 * SECOND), ["a:main"]);
}

#[test]
fn an_incomplete_batch_waits_for_its_debounce_and_counts_for_a_full_one() {
    let start = Instant::now();
    let mut lanes = Lanes::default();
    lanes.configure(sessions(&["a:main"], AutoRun { max_batch: 3, ..AutoRun::of(true) }), start);
    assert_eq!(due(&mut lanes, start), ["a:main"]);
    lanes.checked(&id("a:main"), Checked::Collecting { count: 1, until: start + 2 * SECOND }, start);
    assert_eq!(lanes.next_deadline(), Some(start + 2 * SECOND));
    lanes.arrived(&id("a:main"), start + SECOND);
    assert_eq!(due(&mut lanes, start + 2 * SECOND), NONE, "the debounce starts again");
    lanes.arrived(&id("a:main"), start + 2 * SECOND);
    assert_eq!(due(&mut lanes, start + 2 * SECOND), ["a:main"], "three messages");
}

#[test]
fn after_a_failure_the_check_is_repeated() {
    let start = Instant::now();
    let mut lanes = Lanes::default();
    lanes.configure(sessions(&["a:main"], AutoRun::of(true)), start);
    assert_eq!(due(&mut lanes, start), ["a:main"], "a new session may have mail already");
    lanes.checked(&id("a:main"), Checked::Failed, start);
    assert_eq!(due(&mut lanes, start), NONE);
    assert_eq!(due(&mut lanes, start + STORE_RETRY_DELAY), ["a:main"]);
}

#[test]
fn only_configured_sessions_are_checked() {
    let start = Instant::now();
    let mut lanes = lanes(&["a:main", "b:main"], start);
    for name in ["a:main", "b:main", "c:main"] {
        lanes.arrived(&id(name), start);
    }
    lanes.configure(sessions(&["b:main"], AutoRun { max_batch: 5, ..AutoRun::of(true) }), start);
    assert_eq!(due(&mut lanes, start + 3 * SECOND), ["b:main"]);
    lanes.checked(&id("a:main"), Checked::Decided, start + 3 * SECOND);
    lanes.agent_removed(&AgentId::stored("b"));
    lanes.checked(&id("b:main"), Checked::Decided, start + 3 * SECOND);
    assert_eq!(due(&mut lanes, start + 60 * SECOND), NONE);
}

#[test]
fn runs_of_a_removed_room_no_longer_block_their_session() {
    let start = Instant::now();
    let mut lanes = lanes(&["a:main"], start);
    let in_room = |room: &str| {
        let run = run(room, "a:main", RunState::Running);
        let RunPlace::Session { session, owner, .. } = run.place.clone() else { unreachable!() };
        Run { place: RunPlace::Session { session, room: Some(RoomId::stored(room)), owner }, ..run }
    };
    for room in ["1", "2"] {
        lanes.run_changed(&in_room(room), start);
    }
    lanes.arrived(&id("a:main"), start);
    lanes.room_removed(&RoomId::stored("1"), start + 4 * SECOND);
    assert_eq!(due(&mut lanes, start + 4 * SECOND), NONE, "another run is open");
    lanes.room_removed(&RoomId::stored("2"), start + 5 * SECOND);
    assert_eq!(due(&mut lanes, start + 5 * SECOND), ["a:main"]);
}

#[derive(Debug, Clone)]
enum Step {
    Arrive,
    Queue,
    End,
    Online,
    Configure(bool),
    Wait(u8),
    Check,
    Finish(u8),
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        4 => Just(Step::Arrive),
        1 => Just(Step::Queue),
        2 => Just(Step::End),
        1 => Just(Step::Online),
        1 => any::<bool>().prop_map(Step::Configure),
        4 => (0..10u8).prop_map(Step::Wait),
        4 => Just(Step::Check),
        4 => (0..6u8).prop_map(Step::Finish),
    ]
}

proptest! {
    #![proptest_config(parlor_seed::proptest_config())]

    /// Whatever happens, one check at a time and no check during a run; and once everything has ended, pending mail is
    /// checked again.
    #[test]
    fn a_session_has_one_turn_at_a_time_and_no_mail_is_forgotten(steps in prop::collection::vec(step(), 1..60)) {
        let (start, lane) = (Instant::now(), id("a:main"));
        let mut now = start;
        let mut lanes = lanes(&["a:main"], start);
        // `pending` is the mail in the store; `checking` the mail that the current check has read.
        let (mut pending, mut checking, mut open) = (0u32, None, None::<u32>);
        let mut runs = 0;
        for step in steps {
            match step {
                Step::Arrive => {
                    pending += 1;
                    lanes.arrived(&lane, now);
                }
                Step::Queue if open.is_none() => {
                    runs += 1;
                    open = Some(runs);
                    lanes.run_changed(&run(&runs.to_string(), "a:main", RunState::Queued), now);
                }
                Step::End => if let Some(run_number) = open.take() {
                    lanes.run_changed(&run(&run_number.to_string(), "a:main", ended()), now);
                },
                Step::Online => lanes.agent_online(&lane.agent, now),
                Step::Configure(small) => {
                    let max_batch = if small { 2 } else { 20 };
                    lanes.configure(sessions(&["a:main"], AutoRun { max_batch, ..AutoRun::of(true) }), now);
                }
                Step::Wait(seconds) => now += u32::from(seconds) * SECOND,
                Step::Check => {
                    let found = due(&mut lanes, now);
                    if !found.is_empty() {
                        prop_assert!(checking.is_none() && open.is_none());
                        checking = Some(pending);
                    }
                }
                Step::Finish(result) => if let Some(read) = checking.take() {
                    let result = match (open.is_some(), read, result) {
                        (true, ..) => Checked::Busy,
                        (_, 0, _) => Checked::Empty { next: None },
                        (_, _, 0) => Checked::NeedsHost,
                        (_, _, 1) => Checked::Held(now + 9 * SECOND),
                        (_, _, 2) => Checked::Failed,
                        (_, _, 3) => {
                            pending -= read;
                            Checked::Decided
                        }
                        _ => {
                            pending -= read;
                            runs += 1;
                            open = Some(runs);
                            lanes.run_changed(&run(&runs.to_string(), "a:main", RunState::Queued), now);
                            Checked::Busy
                        }
                    };
                    lanes.checked(&lane, result, now);
                },
                Step::Queue => {}
            }
        }
        if let Some(run_number) = open.take() {
            lanes.run_changed(&run(&run_number.to_string(), "a:main", ended()), now);
        }
        if checking.is_some() {
            lanes.checked(&lane, Checked::Empty { next: None }, now);
        }
        lanes.agent_online(&lane.agent, now);
        let is_due = !due(&mut lanes, now + 60 * SECOND).is_empty();
        let arrived_since_check = pending > checking.unwrap_or_default();
        prop_assert!(is_due || !arrived_since_check, "{pending} messages are pending");
    }
}
