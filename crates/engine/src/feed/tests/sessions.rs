//! Tests of feeds of the runs in sessions of a user's agents.

use super::super::*;
use super::replies;
use crate::Limits;
use parlor_model::{
    Chunk, ChunkKind, Epoch, Event, LoggedEvent, MessageId, RoomId, Run, RunId, RunOutcome, RunPlace,
    RunState, Seq, SessionId, Signal, Time, UserId,
};
use std::task::{Context, Waker};

const KINDS: Kinds = Kinds::RUNS.with(Kinds::REPLY_TEXT).with(Kinds::CHANGES).with(Kinds::SESSIONS);
const REPLY: ReplyLimits = ReplyLimits { chunks: 100, bytes: 1024 };

fn run(session: &str, room: Option<&str>, state: RunState) -> Run {
    let place = RunPlace::Session {
        session: SessionId::stored(session),
        room: room.map(RoomId::stored),
        owner: UserId::stored("ann"),
    };
    Run { place, ..replies::run(session, state) }
}

fn changed(seq: u64, run: Run) -> LoggedEvent {
    LoggedEvent { seq: Seq(seq), at: Time(0), event: Event::RunChanged(Arc::new(run)) }
}

fn follower(fanout: &Fanout, user: &str) -> Arc<Outbox> {
    let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1 << 20, buffers: 4096 }));
    let user = UserId::stored(user);
    let kinds = Kinds::NONE;
    let subscriber = Subscriber { user: user.clone(), kinds, ..super::subscriber(fanout, &outbox) };
    let id = subscriber.id;
    super::connect(fanout, subscriber, "");
    assert!(fanout.follow_sessions(&fanout.reserve(&user, None), id, KINDS));
    outbox
}

fn publish_text(fanout: &Fanout, run: &str, content: &str) {
    let chunk = Chunk { kind: ChunkKind::Text, content: content.into(), metadata: None };
    fanout.publish_chunk(&RunId::stored(run), &MessageId::stored("m"), "Coder", &chunk, REPLY).unwrap();
}

/// The queued items in short form, without the activities.
fn taken(outbox: &Outbox) -> Vec<String> {
    let mut entries = Vec::new();
    let _ = Box::pin(outbox.take(&mut entries, 64)).as_mut().poll(&mut Context::from_waker(Waker::noop()));
    let names = entries.iter().filter_map(|entry| match &entry.item {
        Item::Events(events) => match &events.value[0].event {
            Event::RunChanged(run) => Some(format!("{} {:?}", run.id, run.state)),
            other => panic!("unexpected: {other:?}"),
        },
        Item::Signal(signal) => match &signal.value.0 {
            Signal::SessionReply { text, .. } => Some(format!("reply {text}")),
            Signal::AgentSessions(sessions) => {
                let active: Vec<&str> = sessions.active.iter().map(SessionId::as_str).collect();
                Some(format!("active {active:?}"))
            }
            _ => None,
        },
        Item::ReplyText(_) => Some("text".into()),
        _ => None,
    });
    names.collect()
}

#[test]
fn the_owner_receives_runs_with_and_without_a_room_and_no_other_user_does() {
    let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), super::clock());
    let (ann, bob) = (follower(&fanout, "ann"), follower(&fanout, "bob"));
    let complete = || RunState::Ended(RunOutcome::Complete);
    fanout.publish(&[
        changed(1, run("one", None, RunState::Running)),
        changed(2, run("two", Some("lobby"), RunState::Running)),
        changed(3, replies::run("other", RunState::Running)),
    ]);
    assert_eq!(taken(&ann), ["one Running", "active [\"one\"]", "two Running", "active [\"one\", \"two\"]"]);
    for session in ["one", "two", "other"] {
        publish_text(&fanout, session, "hello");
    }
    assert_eq!(taken(&ann), ["text", "text"]);
    // A gateway may send the complete text without chunks.
    fanout.finish(&RunId::stored("two"), Some("hello there"));
    fanout.publish(&[
        changed(4, run("one", None, complete())),
        changed(5, run("two", Some("lobby"), complete())),
        changed(6, run("two", None, RunState::Running)),
        changed(7, run("two", None, RunState::Ended(RunOutcome::Cancelled))),
    ]);
    let ended = [
        "reply hello",
        "one Ended(Complete)",
        "active [\"two\"]",
        "reply hello there",
        "two Ended(Complete)",
        "active []",
        "two Running",
        "active [\"two\"]",
        "two Ended(Cancelled)",
        "active []",
    ];
    assert_eq!(taken(&ann), ended);
    assert_eq!(taken(&bob), [""; 0]);
}

#[test]
fn a_connection_that_is_opened_during_a_run_receives_the_text_so_far() {
    let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), super::clock());
    fanout.publish(&[changed(1, run("one", None, RunState::Running))]);
    publish_text(&fanout, "one", "hello");
    let (ann, bob) = (follower(&fanout, "ann"), follower(&fanout, "bob"));
    assert_eq!((taken(&ann), taken(&bob)), (vec!["text".into()], Vec::new()));
}
