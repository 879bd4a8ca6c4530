//! Tests of streaming replies. With random joins, leaves, pauses and run ends, a subscriber receives exactly
//! the chunks published while it was subscribed.

use super::super::*;
use crate::Limits;
use bytes::Bytes;
use parlor_model::{
    AddressedBy, AgentId, Chunk, ChunkKind, ConversationId, Destination, Epoch, Event, Lineage, LoggedEvent,
    MessageId, Payload, RoomId, Run, RunCause, RunId, RunOutcome, RunPlace, RunState, Seq, Signal, Time,
    Usage,
};
use proptest::prelude::*;
use std::task::{Context, Waker};

const LIMITS: ReplyLimits = ReplyLimits { chunks: 5000, bytes: 10 * 1024 * 1024 };
const OUTBOX: OutboxLimits = OutboxLimits { bytes: 1 << 20, buffers: 4096 };

const CODEC: Codec = Codec::new(0);

/// Writes a chunk as `kind:content;`, with a `!` before the start of a reply.
fn encode(entry: &Entry) -> Option<Bytes> {
    match &entry.item {
        Item::ReplyText(piece) => piece.encoded(entry.codec, |signal, _, _| {
            let Signal::Chunk { chunk, first, .. } = signal else { return None };
            let begin = if *first { "!" } else { "" };
            Some(format!("{begin}{}:{};", chunk.kind.as_str(), chunk.content).into())
        }),
        _ => None,
    }
}

struct TestFanout {
    fanout: Fanout,
}

struct Reader {
    id: SubscriberId,
    outbox: Arc<Outbox>,
}

impl TestFanout {
    fn new() -> Self {
        let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), super::clock());
        Self { fanout }
    }

    fn reader(&self, limits: OutboxLimits) -> Reader {
        self.reader_on(Arc::new(Outbox::new(limits)), CODEC)
    }

    /// A subscriber in one encoding of the session that this queue belongs to.
    fn reader_on(&self, outbox: Arc<Outbox>, codec: Codec) -> Reader {
        let subscriber = Subscriber {
            id: self.fanout.next_subscriber_id(),
            user: UserId::stored("ann"),
            principal: Principal::Operator,
            outbox: outbox.clone(),
            codec,
            kinds: Kinds::REPLY_TEXT,
            order: Order::PerRoom,
            present: false,
            enters_places: false,
            only_follows: false,
        };
        let id = subscriber.id;
        super::connect(&self.fanout, subscriber, "");
        let reader = Reader { id, outbox };
        assert_eq!(reader.read(), "");
        reader
    }

    fn join(&self, reader: &Reader) {
        super::join(&self.fanout, reader.id, &room(), None, None);
    }

    fn joined(&self) -> Reader {
        let reader = self.reader(OUTBOX);
        self.join(&reader);
        reader
    }

    fn set_run_state(&self, run: &str, state: RunState) {
        self.fanout.apply_run(&self::run(run, state));
    }

    fn publish_chunk(&self, run: &str, kind: ChunkKind, content: &str) -> Result<(), ChunkRejected> {
        let chunk = Chunk { kind, content: content.into(), metadata: None };
        self.fanout.publish_chunk(&RunId::stored(run), &MessageId::stored("m"), "Coder", &chunk, LIMITS)
    }

    fn publish_text(&self, content: &str) {
        self.publish_chunk("1", ChunkKind::Text, content).unwrap();
    }
}

impl Reader {
    /// The next queued frames, if any.
    fn take(&self, limit: usize) -> Vec<Bytes> {
        let mut out = Vec::new();
        let taking = Box::pin(self.outbox.take(&mut out, limit))
            .as_mut()
            .poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(taking.is_ready(), !out.is_empty());
        out.iter().filter_map(encode).collect()
    }

    /// Waits for queued bytes.
    fn wait(&self) -> String {
        let mut out = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.outbox.take(&mut out, 64));
        out.iter().filter_map(encode).map(|frame| String::from_utf8(frame.to_vec()).unwrap()).collect()
    }

    /// All queued bytes.
    fn read(&self) -> String {
        let mut all = Vec::new();
        loop {
            let some = self.take(64);
            if some.is_empty() {
                return String::from_utf8(all.concat()).unwrap();
            }
            all.extend(some);
        }
    }
}

pub(super) fn room() -> RoomId {
    RoomId::stored("lobby")
}

pub fn run(id: &str, state: RunState) -> Run {
    Run {
        id: RunId::stored(id),
        agent: AgentId::stored("coder"),
        place: RunPlace::Room(room()),
        cause: RunCause::Unprompted,
        asked_by: None,
        addressed: AddressedBy::Directly,
        lineage: Lineage::start(ConversationId::stored("c"), AgentId::stored("coder")),
        parent: None,
        state,
        reply: None,
        usage: Usage::default(),
        stop_requested: false,
        queued_at: Time(0),
        started_at: None,
        ended_at: None,
    }
}

fn complete() -> RunState {
    RunState::Ended(RunOutcome::Complete)
}

#[test]
fn subscribers_that_keep_up_share_the_encoded_frame_of_each_chunk() {
    let test = TestFanout::new();
    let (ann, ben) = (test.joined(), test.joined());
    test.set_run_state("1", RunState::Running);
    for (chunk, expected) in [("one ", "!text:one ;"), ("two", "text:two;")] {
        test.publish_text(chunk);
        let (first, second) = (ann.take(64), ben.take(64));
        assert_eq!((first.len(), &first[0][..]), (1, expected.as_bytes()));
        assert_eq!(first[0].as_ptr(), second[0].as_ptr(), "encoded once");
    }
}

#[test]
fn adjacent_mergeable_chunks_are_merged_while_they_are_queued() {
    let test = TestFanout::new();
    let ann = test.joined();
    test.set_run_state("1", RunState::Running);
    use ChunkKind::{Error, Text, Thinking, ToolUse};
    for (kind, content) in [
        (Thinking, "h"),
        (Thinking, "m"),
        (Text, "a"),
        (Text, ""),
        (Text, "b"),
        (ToolUse, "x"),
        (ToolUse, ""),
    ] {
        test.publish_chunk("1", kind, content).unwrap();
    }
    assert_eq!(ann.read(), "!thinking:hm;text:ab;tool_use:x;tool_use:;");
    test.publish_chunk("1", Error, "e").unwrap();
    test.publish_text("c");
    assert_eq!(ann.read(), "error:e;text:c;");
    let with_metadata = Chunk { kind: Text, content: "d".into(), metadata: Some(Payload("{}".into())) };
    for _ in 0..2 {
        let (run, message) = (RunId::stored("1"), MessageId::stored("m"));
        test.fanout.publish_chunk(&run, &message, "Coder", &with_metadata, LIMITS).unwrap();
    }
    test.publish_text("e");
    assert_eq!(ann.read(), "text:d;text:d;text:e;");
}

#[test]
fn a_stalled_subscriber_loses_no_chunk_and_is_not_closed() {
    let test = TestFanout::new();
    let ann = test.reader(OutboxLimits { bytes: 100, buffers: 4 });
    test.join(&ann);
    test.set_run_state("1", RunState::Running);
    let text: String = (0..30_000).map(|number| format!("{number} ")).collect();
    for chunk in text.as_bytes().chunks(7) {
        test.publish_text(std::str::from_utf8(chunk).unwrap());
    }
    let some: usize = ann.take(64).iter().map(Bytes::len).sum();
    assert!(some < 100_000, "a long reply is sent at the rate of the subscriber: {some}");
    let rest = ann.read();
    assert!(text.ends_with(rest.rsplit(':').next().unwrap().trim_end_matches(';')));
    assert_eq!(some + rest.len() - text.len(), "!".len() + 6 * text.len().div_ceil(32 * 1024));
    assert!(!ann.outbox.is_closed());
}

#[test]
fn a_removed_subscriber_receives_no_later_chunks() {
    let test = TestFanout::new();
    let ann = test.joined();
    test.set_run_state("1", RunState::Running);
    test.publish_text("before");
    test.fanout.leave(ann.id, &Destination::Room(room()));
    test.publish_text(" after");
    assert_eq!(ann.read(), "!text:before;");
}

#[test]
fn a_repeated_join_continues_and_a_rejoin_restarts_the_reply() {
    let test = TestFanout::new();
    let ann = test.joined();
    test.set_run_state("1", RunState::Running);
    test.publish_text("one");
    test.join(&ann);
    test.publish_text(" two");
    assert_eq!(ann.read(), "!text:one two;");
    test.publish_text(" three");
    test.fanout.leave(ann.id, &Destination::Room(room()));
    test.join(&ann);
    assert_eq!(ann.read(), "!text:one two three;");
}

#[test]
fn a_reply_that_ends_in_two_encodings_of_a_session_leaves_its_queue_empty() {
    let test_fanout = TestFanout::new();
    let limits = OutboxLimits { bytes: 4096, buffers: 64 };
    let outbox = Arc::new(Outbox::new(limits));
    let readers = [CODEC, Codec::new(1)].map(|codec| test_fanout.reader_on(outbox.clone(), codec));
    readers.iter().for_each(|reader| test_fanout.join(reader));
    test_fanout.set_run_state("1", RunState::Running);
    test_fanout.publish_text("unsent");
    test_fanout.set_run_state("1", complete());
    assert_eq!(readers[0].read(), "!text:unsent;!text:unsent;");
    assert!(outbox.fits(&[Item::Frames(Bytes::from(vec![b'x'; limits.bytes]))]), "no weight is left");
}

#[test]
fn an_ended_reply_is_delivered_completely_and_rejects_chunks() {
    let test = TestFanout::new();
    assert_eq!(
        test.publish_chunk("1", ChunkKind::Text, "x"),
        Err(ChunkRejected::Over),
        "the run has not started"
    );
    test.set_run_state("1", RunState::Running);
    let (ann, slow) = (test.joined(), test.reader(OutboxLimits { bytes: 8, buffers: 4 }));
    test.join(&slow);
    test.publish_text("one ");
    test.publish_text("two");
    let kept = test.fanout.finish(&RunId::stored("1"), None).unwrap();
    assert_eq!((&*kept.0, kept.1.len()), ("one two", 1));
    test.set_run_state("1", complete());
    assert_eq!(test.publish_chunk("1", ChunkKind::Text, "x"), Err(ChunkRejected::Over));
    assert_eq!(test.fanout.finish(&RunId::stored("1"), None), None);
    assert_eq!(ann.read(), "!text:one two;");
    assert_eq!(slow.read(), "", "the message that follows contains the whole reply");
    assert_eq!(test.joined().read(), "");
}

#[test]
fn replies_of_a_removed_agent_or_room_are_dropped() {
    let removals = [
        Event::AgentRemoved { agent: AgentId::stored("coder"), audience: Arc::default() },
        Event::RoomRemoved { room: room(), people: Arc::new([]) },
    ];
    for event in removals {
        let test = TestFanout::new();
        test.set_run_state("1", RunState::Running);
        test.publish_text("one");
        test.fanout.publish(&[LoggedEvent { seq: Seq(1), at: Time(0), event }]);
        assert_eq!(test.publish_chunk("1", ChunkKind::Text, "two"), Err(ChunkRejected::Over));
        assert_eq!(test.joined().read(), "");
    }
}

#[test]
fn a_chunk_beyond_the_reply_limits_is_rejected() {
    let test = TestFanout::new();
    let ann = test.joined();
    test.set_run_state("1", RunState::Running);
    let chunk = Chunk { kind: ChunkKind::Text, content: "long".into(), metadata: None };
    let bounds = ReplyLimits { chunks: 1, bytes: 3 };
    let (run, message) = (RunId::stored("1"), MessageId::stored("m"));
    let published = test.fanout.publish_chunk(&run, &message, "Coder", &chunk, bounds);
    assert_eq!((published, ann.read().as_str()), (Err(ChunkRejected::TooLong), ""));
}

#[test]
fn a_late_joiner_receives_the_whole_reply() {
    const PIECES: usize = 4000;
    let test = TestFanout::new();
    test.set_run_state("1", RunState::Running);
    let expected: String = (0..PIECES).map(|number| format!("{number},")).collect();
    let last = format!(",{},", PIECES - 1);
    std::thread::scope(|scope| {
        let mut readers = Vec::new();
        for number in 0..PIECES {
            if number % 250 == 0 {
                let (test, last) = (&test, &last);
                readers.push(scope.spawn(move || {
                    let reader = test.reader(OUTBOX);
                    test.join(&reader);
                    let mut received = String::new();
                    while !received.ends_with(last) {
                        received.push_str(&texts(&reader.wait()));
                    }
                    received
                }));
            }
            test.publish_text(&format!("{number},"));
        }
        for reader in readers {
            assert_eq!(reader.join().unwrap(), expected);
        }
    });
}

/// The concatenated texts of the frames, in which the reply starts only once.
fn texts(read: &str) -> String {
    read.split_terminator(';')
        .map(|chunk| chunk.trim_start_matches('!').trim_start_matches("text:"))
        .collect()
}

#[derive(Debug, Clone)]
enum Step {
    Say { run: usize, kind: ChunkKind, length: usize },
    Join(usize),
    Leave(usize),
    Take { reader: usize, limit: usize },
    End(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop::sample::select(vec![ChunkKind::Text, ChunkKind::Thinking, ChunkKind::ToolUse]);
    prop_oneof![
        12 => (0..2usize, kind, 1..4usize).prop_map(|(run, kind, length)| Step::Say { run, kind, length }),
        4 => (0..3usize).prop_map(Step::Join),
        2 => (0..3usize).prop_map(Step::Leave),
        6 => (0..3usize, 1..3usize).prop_map(|(reader, limit)| Step::Take { reader, limit }),
        1 => (0..2usize).prop_map(Step::End),
    ]
}

/// Received chunks, with adjacent ones of the same mergeable kind joined.
#[derive(Debug, Default, Clone, PartialEq)]
struct ReceivedChunks(Vec<(String, String)>);

impl ReceivedChunks {
    fn add(&mut self, first: bool, kind: &str, content: &str) {
        if first {
            self.0.clear();
        }
        match self.0.last_mut() {
            Some((last, text)) if last == kind && kind != "tool_use" => text.push_str(content),
            _ => self.0.push((kind.into(), content.into())),
        }
    }

    fn text(&self) -> String {
        self.0.iter().map(|(_, content)| content.as_str()).collect()
    }
}

/// Assigns the chunks to their replies by letter case: lower case is run 0, upper case run 1.
fn collect(received: &mut [ReceivedChunks], read: &str) {
    for chunk in read.split_terminator(';') {
        let (begin, content) = chunk.split_once(':').unwrap();
        let of = usize::from(content.starts_with(|letter: char| letter.is_ascii_uppercase()));
        received[of].add(begin.starts_with('!'), begin.trim_start_matches('!'), content);
    }
}

proptest! {
    #![proptest_config(parlor_seed::proptest_config())]

    #[test]
    fn subscribers_receive_the_chunks_published_while_subscribed(steps in prop::collection::vec(step(), 0..150)) {
        let test = TestFanout::new();
        let readers: Vec<Reader> = (0..3).map(|_| test.reader(OUTBOX)).collect();
        let (mut subscribed, mut ended) = ([false; 3], [false; 2]);
        let mut published = vec![ReceivedChunks::default(); 2];
        let mut received = vec![published.clone(); 3];
        let mut expected = received.clone();
        // A subscriber that had left when a reply ended may have received only a prefix.
        let mut left_early = [[false; 2]; 3];
        let mut letters = ('a'..='z').cycle();
        for run in ["0", "1"] {
            test.set_run_state(run, RunState::Running);
        }
        for step in steps {
            match step {
                Step::Say { run, kind, length } => {
                    let content: String = letters.by_ref().take(length).collect();
                    let content = if run == 0 { content } else { content.to_uppercase() };
                    let result = test.publish_chunk(&run.to_string(), kind, &content);
                    prop_assert_eq!(result.is_err(), ended[run]);
                    if !ended[run] {
                        published[run].add(false, kind.as_str(), &content);
                        for reader in (0..3).filter(|reader| subscribed[*reader]) {
                            expected[reader][run] = published[run].clone();
                        }
                    }
                }
                Step::Join(reader) => {
                    test.join(&readers[reader]);
                    subscribed[reader] = true;
                    for run in (0..2).filter(|run| !ended[*run]) {
                        expected[reader][run] = published[run].clone();
                    }
                }
                Step::Leave(reader) => {
                    test.fanout.leave(readers[reader].id, &Destination::Room(room()));
                    subscribed[reader] = false;
                }
                Step::Take { reader, limit } => {
                    let bytes = readers[reader].take(limit).concat();
                    collect(&mut received[reader], std::str::from_utf8(&bytes).unwrap());
                }
                Step::End(run) => {
                    test.set_run_state(&run.to_string(), complete());
                    for reader in (0..3).filter(|reader| !subscribed[*reader] && !ended[run]) {
                        left_early[reader][run] = true;
                    }
                    ended[run] = true;
                }
            }
        }
        for reader in 0..3 {
            collect(&mut received[reader], &readers[reader].read());
            for run in 0..2 {
                if left_early[reader][run] {
                    prop_assert!(expected[reader][run].text().starts_with(&received[reader][run].text()));
                } else {
                    prop_assert_eq!(&received[reader][run], &expected[reader][run]);
                }
            }
        }
    }
}
