//! Random joins, leaves, pauses and ends: what a viewer reads is what was said while it was there, and no more.

use super::super::*;
use parlor_model::{
    AddressedBy, AgentId, ChunkKind, ConversationId, Lineage, Payload, RunOutcome, Time, Usage,
};
use proptest::prelude::*;
use std::task::{Context, Waker};

const WIDE: ReplyLimits = ReplyLimits { chunks: 5000, bytes: 10 * 1024 * 1024 };
const CAPS: OutboxLimits = OutboxLimits { bytes: 1 << 20, buffers: 4096 };

/// A door that writes a piece as `kind:content;`, and a `!` before what begins anew.
struct Plain;

impl Egress for Plain {
    fn event(&self, _: &LoggedEvent, _: Epoch) -> Option<Bytes> {
        None
    }

    fn room_lost(&self, _: &RoomId, _: &LoggedEvent) -> Option<Bytes> {
        Some(Bytes::from_static(b"lost;"))
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, signal: &Signal, _: SignalStamp) -> Option<Bytes> {
        let Signal::Chunk { chunk, first, .. } = signal else { return None };
        let begin = if *first { "!" } else { "" };
        Some(format!("{begin}{}:{};", chunk.kind.as_str(), chunk.content).into())
    }

    fn disconnect_frame(&self, _: DisconnectReason) -> Bytes {
        Bytes::from_static(b"bye;")
    }
}

struct House {
    fanout: Fanout,
    egress: Arc<dyn Egress>,
}

struct Reader {
    id: SubscriberId,
    outbox: Arc<Outbox>,
}

impl House {
    fn new() -> Self {
        let fanout = Fanout::new(Epoch(1), Seq(0), &Limits::default(), super::clock());
        Self { fanout, egress: Arc::new(Plain) }
    }

    fn reader(&self, caps: OutboxLimits) -> Reader {
        let outbox = Arc::new(Outbox::new(caps, Bytes::new()));
        let subscriber = Subscriber {
            id: self.fanout.viewer_id(),
            user: UserId::stored("ann"),
            principal: Principal::Operator,
            egress: self.egress.clone(),
            outbox: outbox.clone(),
            present: false,
        };
        let id = subscriber.id;
        self.fanout
            .connect(subscriber, Bytes::new(), || Ok(Ok(((), ReceivesEvents(true)))))
            .unwrap()
            .unwrap();
        let reader = Reader { id, outbox };
        assert_eq!(reader.read(), "");
        reader
    }

    fn join(&self, reader: &Reader) {
        self.fanout.join(reader.id, &room(), None, || Ok(true), |_| None).unwrap();
    }

    fn joined(&self) -> Reader {
        let reader = self.reader(CAPS);
        self.join(&reader);
        reader
    }

    fn turn(&self, run: &str, state: RunState) {
        self.fanout.turn(&self::run(run, state));
    }

    fn speak(&self, run: &str, kind: ChunkKind, content: &str) -> Result<(), ChunkRejected> {
        let chunk = Chunk { kind, content: content.into(), metadata: None };
        self.fanout.publish_chunk(&RunId::stored(run), &MessageId::stored("m"), "Coder", &chunk, WIDE)
    }

    fn say(&self, content: &str) {
        self.speak("1", ChunkKind::Text, content).unwrap();
    }
}

impl Reader {
    /// The next buffers, if any wait.
    fn take(&self, most: usize) -> Vec<Bytes> {
        let mut out = Vec::new();
        let taking =
            Box::pin(self.outbox.take(&mut out, most)).as_mut().poll(&mut Context::from_waker(Waker::noop()));
        assert_eq!(taking.is_ready(), !out.is_empty());
        out
    }

    /// Waits for something to read.
    fn wait(&self) -> String {
        let mut out = Vec::new();
        let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
        runtime.block_on(self.outbox.take(&mut out, 64));
        String::from_utf8(out.concat()).unwrap()
    }

    /// Everything that waits.
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

fn room() -> RoomId {
    RoomId::stored("lobby")
}

pub fn run(id: &str, state: RunState) -> Run {
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
        state,
        reply: None,
        usage: Usage::default(),
        queued_at: Time(0),
        started_at: None,
        ended_at: None,
    }
}

fn ended() -> RunState {
    RunState::Ended(RunOutcome::Complete)
}

#[test]
fn who_keeps_up_gets_each_piece_as_it_came_in_bytes_that_all_share() {
    let house = House::new();
    let (ann, ben) = (house.joined(), house.joined());
    house.turn("1", RunState::Running);
    for (piece, expected) in [("one ", "!text:one ;"), ("two", "text:two;")] {
        house.say(piece);
        let (first, second) = (ann.take(64), ben.take(64));
        assert_eq!((first.len(), &first[0][..]), (1, expected.as_bytes()));
        assert_eq!(first[0].as_ptr(), second[0].as_ptr(), "encoded once");
    }
}

#[test]
fn only_neighbours_that_flow_are_merged_and_only_while_they_wait() {
    let house = House::new();
    let ann = house.joined();
    house.turn("1", RunState::Running);
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
        house.speak("1", kind, content).unwrap();
    }
    assert_eq!(ann.read(), "!thinking:hm;text:ab;tool_use:x;tool_use:;");
    house.speak("1", Error, "e").unwrap();
    house.say("c");
    assert_eq!(ann.read(), "error:e;text:c;");
    let with_metadata = Chunk { kind: Text, content: "d".into(), metadata: Some(Payload("{}".into())) };
    for _ in 0..2 {
        let (run, message) = (RunId::stored("1"), MessageId::stored("m"));
        house.fanout.publish_chunk(&run, &message, "Coder", &with_metadata, WIDE).unwrap();
    }
    house.say("e");
    assert_eq!(ann.read(), "text:d;text:d;text:e;");
}

#[test]
fn a_reader_that_does_not_read_loses_nothing_and_is_not_ended() {
    let house = House::new();
    let ann = house.reader(OutboxLimits { bytes: 100, buffers: 4 });
    house.join(&ann);
    house.turn("1", RunState::Running);
    let text: String = (0..30_000).map(|number| format!("{number} ")).collect();
    for piece in text.as_bytes().chunks(7) {
        house.say(std::str::from_utf8(piece).unwrap());
    }
    let some: usize = ann.take(64).iter().map(Bytes::len).sum();
    assert!(some < 100_000, "a long reply comes at the pace of its reading: {some}");
    let rest = ann.read();
    assert!(text.ends_with(rest.rsplit(':').next().unwrap().trim_end_matches(';')));
    assert_eq!(some + rest.len() - text.len(), "!".len() + 6 * text.len().div_ceil(32 * 1024));
    assert!(!ann.outbox.is_closed());
}

#[test]
fn who_is_put_out_of_the_room_hears_nothing_of_what_follows() {
    let house = House::new();
    let ann = house.joined();
    house.turn("1", RunState::Running);
    house.say("before");
    house.fanout.leave(ann.id, &room());
    house.say(" after");
    assert_eq!(ann.read(), "!text:before;");
}

#[test]
fn joining_again_goes_on_and_coming_back_begins_anew() {
    let house = House::new();
    let ann = house.joined();
    house.turn("1", RunState::Running);
    house.say("one");
    house.join(&ann);
    house.say(" two");
    assert_eq!(ann.read(), "!text:one two;");
    house.say(" three");
    house.fanout.leave(ann.id, &room());
    house.join(&ann);
    assert_eq!(ann.read(), "!text:one two three;");
}

#[test]
fn what_is_over_is_read_to_its_end_and_goes_on_no_more() {
    let house = House::new();
    assert_eq!(house.speak("1", ChunkKind::Text, "x"), Err(ChunkRejected::Over), "it has not begun");
    house.turn("1", RunState::Running);
    let (ann, slow) = (house.joined(), house.reader(OutboxLimits { bytes: 8, buffers: 4 }));
    house.join(&slow);
    house.say("one ");
    house.say("two");
    let kept = house.fanout.finish(&RunId::stored("1"), None).unwrap();
    assert_eq!((&*kept.0, kept.1.len()), ("one two", 1));
    house.turn("1", ended());
    assert_eq!(house.speak("1", ChunkKind::Text, "x"), Err(ChunkRejected::Over));
    assert_eq!(house.fanout.finish(&RunId::stored("1"), None), None);
    assert_eq!(ann.read(), "!text:one two;");
    assert_eq!(slow.read(), "", "the message that follows has all of it");
    assert_eq!(house.joined().read(), "");
}

#[test]
fn an_agent_or_a_room_that_is_gone_says_nothing_more() {
    let gone = [
        Event::AgentRemoved { agent: AgentId::stored("coder"), circle: Arc::default() },
        Event::RoomRemoved { room: room(), people: Arc::new([]) },
    ];
    for event in gone {
        let house = House::new();
        house.turn("1", RunState::Running);
        house.say("one");
        house.fanout.publish(&[LoggedEvent { seq: Seq(1), at: Time(0), event }]);
        assert_eq!(house.speak("1", ChunkKind::Text, "two"), Err(ChunkRejected::Over));
        assert_eq!(house.joined().read(), "");
    }
}

#[test]
fn what_is_too_long_is_not_said() {
    let house = House::new();
    let ann = house.joined();
    house.turn("1", RunState::Running);
    let chunk = Chunk { kind: ChunkKind::Text, content: "long".into(), metadata: None };
    let bounds = ReplyLimits { chunks: 1, bytes: 3 };
    let (run, message) = (RunId::stored("1"), MessageId::stored("m"));
    let said = house.fanout.publish_chunk(&run, &message, "Coder", &chunk, bounds);
    assert_eq!((said, ann.read().as_str()), (Err(ChunkRejected::TooLong), ""));
}

#[test]
fn whoever_joins_while_an_agent_speaks_has_the_whole_text_in_the_end() {
    const PIECES: usize = 4000;
    let house = House::new();
    house.turn("1", RunState::Running);
    let expected: String = (0..PIECES).map(|number| format!("{number},")).collect();
    let last = format!(",{},", PIECES - 1);
    std::thread::scope(|scope| {
        let mut readers = Vec::new();
        for number in 0..PIECES {
            if number % 250 == 0 {
                let (house, last) = (&house, &last);
                readers.push(scope.spawn(move || {
                    let reader = house.reader(CAPS);
                    house.join(&reader);
                    let mut heard = String::new();
                    while !heard.ends_with(last) {
                        heard.push_str(&spoken(&reader.wait()));
                    }
                    heard
                }));
            }
            house.say(&format!("{number},"));
        }
        for reader in readers {
            assert_eq!(reader.join().unwrap(), expected);
        }
    });
}

/// The texts of what was read, which never begins anew.
fn spoken(read: &str) -> String {
    read.split_terminator(';')
        .map(|piece| piece.trim_start_matches('!').trim_start_matches("text:"))
        .collect()
}

#[derive(Debug, Clone)]
enum Step {
    Say { run: usize, kind: ChunkKind, length: usize },
    Join(usize),
    Leave(usize),
    Take { reader: usize, most: usize },
    End(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let kind = prop::sample::select(vec![ChunkKind::Text, ChunkKind::Thinking, ChunkKind::ToolUse]);
    prop_oneof![
        12 => (0..2usize, kind, 1..4usize).prop_map(|(run, kind, length)| Step::Say { run, kind, length }),
        4 => (0..3usize).prop_map(Step::Join),
        2 => (0..3usize).prop_map(Step::Leave),
        6 => (0..3usize, 1..3usize).prop_map(|(reader, most)| Step::Take { reader, most }),
        1 => (0..2usize).prop_map(Step::End),
    ]
}

/// Pieces as one has them, neighbours that flow together as one.
#[derive(Debug, Default, Clone, PartialEq)]
struct Pieces(Vec<(String, String)>);

impl Pieces {
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

/// Sorts what was read by the reply it belongs to, which shows in the letters.
fn hear(heard: &mut [Pieces], read: &str) {
    for piece in read.split_terminator(';') {
        let (begin, content) = piece.split_once(':').unwrap();
        let of = usize::from(content.starts_with(|letter: char| letter.is_ascii_uppercase()));
        heard[of].add(begin.starts_with('!'), begin.trim_start_matches('!'), content);
    }
}

proptest! {
    #![proptest_config(parlor_seed::proptest_config())]

    #[test]
    fn what_is_heard_is_what_was_said_while_one_was_there(steps in prop::collection::vec(step(), 0..150)) {
        let house = House::new();
        let readers: Vec<Reader> = (0..3).map(|_| house.reader(CAPS)).collect();
        let (mut here, mut over) = ([false; 3], [false; 2]);
        let mut said = vec![Pieces::default(); 2];
        let mut heard = vec![said.clone(); 3];
        let mut expected = heard.clone();
        // Who had left when a reply ended may have less of it.
        let mut gone = [[false; 2]; 3];
        let mut letters = ('a'..='z').cycle();
        for run in ["0", "1"] {
            house.turn(run, RunState::Running);
        }
        for step in steps {
            match step {
                Step::Say { run, kind, length } => {
                    let content: String = letters.by_ref().take(length).collect();
                    let content = if run == 0 { content } else { content.to_uppercase() };
                    let result = house.speak(&run.to_string(), kind, &content);
                    prop_assert_eq!(result.is_err(), over[run]);
                    if !over[run] {
                        said[run].add(false, kind.as_str(), &content);
                        for reader in (0..3).filter(|reader| here[*reader]) {
                            expected[reader][run] = said[run].clone();
                        }
                    }
                }
                Step::Join(reader) => {
                    house.join(&readers[reader]);
                    here[reader] = true;
                    for run in (0..2).filter(|run| !over[*run]) {
                        expected[reader][run] = said[run].clone();
                    }
                }
                Step::Leave(reader) => {
                    house.fanout.leave(readers[reader].id, &room());
                    here[reader] = false;
                }
                Step::Take { reader, most } => {
                    let bytes = readers[reader].take(most).concat();
                    hear(&mut heard[reader], std::str::from_utf8(&bytes).unwrap());
                }
                Step::End(run) => {
                    house.turn(&run.to_string(), ended());
                    for reader in (0..3).filter(|reader| !here[*reader] && !over[run]) {
                        gone[reader][run] = true;
                    }
                    over[run] = true;
                }
            }
        }
        for reader in 0..3 {
            hear(&mut heard[reader], &readers[reader].read());
            for run in 0..2 {
                if gone[reader][run] {
                    prop_assert!(expected[reader][run].text().starts_with(&heard[reader][run].text()));
                } else {
                    prop_assert_eq!(&heard[reader][run], &expected[reader][run]);
                }
            }
        }
    }
}
