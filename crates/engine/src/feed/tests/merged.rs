//! Tests of merged replies: their subscribers receive the start, the text so far in few signals, and the failure.

use super::super::*;
use super::{Subscription, Topics};
use crate::Limits;
use parlor_model::{
    AgentId, Chunk, ChunkKind, Epoch, Event, LoggedEvent, MessageId, ReplyPart, RunId, RunOutcome, RunState,
    Seq, Signal, Time,
};

const LIMITS: ReplyLimits = ReplyLimits { chunks: 5000, bytes: 1 << 20 };
const OUTBOX: OutboxLimits = OutboxLimits { bytes: 1 << 20, buffers: 100 };

struct Scene {
    fanout: Fanout,
    run: RunId,
}

impl Scene {
    fn new() -> Self {
        let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), super::clock());
        fanout.apply_run(&super::replies::run("1", RunState::Running));
        Self { fanout, run: RunId::stored("1") }
    }

    fn joined(&self) -> Arc<Outbox> {
        let outbox = Arc::new(Outbox::new(OUTBOX));
        let subscriber =
            Subscriber { kinds: Kinds::MERGED_REPLIES, ..super::subscriber(&self.fanout, &outbox) };
        let id = subscriber.id;
        super::connect(&self.fanout, subscriber, "");
        let reservation = self.fanout.reserve(&UserId::stored("ann"), None);
        let rooms = [super::replies::room()];
        let topics = Topics::Rooms { rooms: &rooms, following: None };
        let kinds = Kinds::MERGED_REPLIES;
        self.fanout.subscribe(&reservation, &Subscription { kinds, ..super::subscription(id, topics) });
        outbox
    }

    fn begin(&self) {
        let begun = Begun {
            room: super::replies::room(),
            message: MessageId::stored("m"),
            agent_name: "Coder".into(),
            owner: UserId::stored("ann"),
            connection: Some("c1".into()),
        };
        self.fanout.begin_reply(&self.run, begun);
    }

    fn publish(&self, kind: ChunkKind, content: &str) {
        let chunk = Chunk { kind, content: content.into(), metadata: None };
        self.fanout.publish_chunk(&self.run, &MessageId::stored("m"), "Coder", &chunk, LIMITS).unwrap();
    }

    fn end(&self, outcome: RunOutcome) {
        let run = Arc::new(super::replies::run("1", RunState::Ended(outcome)));
        let event = LoggedEvent { seq: Seq(1), at: Time(1), event: Event::RunChanged(run) };
        self.fanout.publish(&[event]);
    }
}

/// The queued parts of replies as words.
async fn parts(outbox: &Outbox) -> Vec<String> {
    let mut entries = Vec::new();
    // The queue holds at least the greeting or a signal whenever this is called.
    outbox.take(&mut entries, 100).await;
    let part = |entry: &Entry| match &entry.item {
        Item::Signal(signal) => match &signal.value.0 {
            Signal::Reply { part, connection, agent, owner, .. } => {
                assert_eq!(
                    (connection.as_deref(), agent.as_str(), owner.as_str()),
                    (Some("c1"), AgentId::stored("coder").as_str(), "ann")
                );
                Some(match part {
                    ReplyPart::Started => "started".to_owned(),
                    ReplyPart::Text(text) => format!("text {text}"),
                    ReplyPart::Failed(reason) => format!("failed {reason}"),
                })
            }
            _ => None,
        },
        _ => None,
    };
    entries.iter().filter_map(part).collect()
}

#[tokio::test]
async fn text_is_merged_and_flushed_before_the_reply_is_stored() {
    let scene = Scene::new();
    let outbox = scene.joined();
    scene.begin();
    scene.begin();
    scene.publish(ChunkKind::Text, "Hel");
    scene.publish(ChunkKind::Text, "lo");
    scene.publish(ChunkKind::Thinking, "hm");
    scene.publish(ChunkKind::Text, " you");
    assert_eq!(parts(&outbox).await, ["started"]);
    let late = scene.joined();
    assert_eq!(parts(&late).await, ["started"], "the text waits for the end of its interval");
    scene.fanout.finish(&scene.run, None);
    for outbox in [outbox, late] {
        assert_eq!(parts(&outbox).await, ["text Hello", "text  you"]);
    }
    let later = scene.joined();
    assert_eq!(parts(&later).await, ["started", "text Hello", "text  you"]);
}

#[tokio::test]
async fn a_failed_reply_ends_with_its_reason_after_its_text() {
    let scene = Scene::new();
    let outbox = scene.joined();
    scene.begin();
    scene.publish(ChunkKind::Text, "par");
    scene.end(RunOutcome::Failed("no credits".into()));
    assert_eq!(parts(&outbox).await, ["started", "text par", "failed no credits"]);
}

#[tokio::test]
async fn a_reply_without_subscribers_keeps_its_text_for_late_ones() {
    let scene = Scene::new();
    scene.begin();
    scene.publish(ChunkKind::Text, "early");
    let outbox = scene.joined();
    assert_eq!(parts(&outbox).await, ["started", "text early"]);
    scene.end(RunOutcome::Cancelled);
    assert_eq!(parts(&outbox).await, ["failed stopped"]);
}
