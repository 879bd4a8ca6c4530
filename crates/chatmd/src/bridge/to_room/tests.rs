//! Mapping of lines, their order, and their answers.

use super::*;
use crate::bridge::members::tests::member;
use parlor_model::{Epoch, Position, Seq};
use parlor_wire::broker::client::MemberKind;

fn cursor(generation: &str, offset: u64) -> Cursor {
    Cursor { generation: generation.into(), inode: 7, device: 1, offset, lines: 0, tail: String::new() }
}

fn line(header: &str) -> LineMessage {
    parlor_wire::chatmd::grammar::parse(header, &HashSet::<String>::new()).unwrap()
}

/// Lines that follow each other in the first generation, each ten bytes long.
fn read(headers: &[&str]) -> Vec<ReadMessage> {
    read_from("g1", 0, headers)
}

fn read_from(generation: &str, start: u64, headers: &[&str]) -> Vec<ReadMessage> {
    let message = |(number, header): (usize, &&str)| {
        let offset = start + 10 * number as u64;
        ReadMessage {
            line: line(header),
            line_number: offset / 10 + 1,
            offset,
            cursor: cursor(generation, offset + 10),
        }
    };
    headers.iter().enumerate().map(message).collect()
}

/// A direction with its state, and the hub's side of it.
struct Scene {
    to_room: ToRoom,
    state: BridgeState,
    members: Members,
    /// Author, recipient, text, continued message and external id of each request, in order.
    sent: Vec<[String; 5]>,
    notices: Vec<BridgeNotice>,
}

impl Scene {
    fn new() -> Self {
        let mut state = BridgeState::new("room", "hub");
        state.advance(cursor("g1", 0));
        let members = Members::new(&[
            member("u1", MemberKind::User, "Ada", "ada"),
            member("a1", MemberKind::Agent, "Coder", "a1"),
        ]);
        let to_room = ToRoom::new(cursor("g1", 0), Some("g1".into()));
        Self { to_room, state, members, sent: Vec::new(), notices: Vec::new() }
    }

    fn take(&mut self, messages: Vec<ReadMessage>) -> &mut Self {
        let end = messages.last().map_or(self.to_room.end.clone(), |message| message.cursor.clone());
        self.take_until(messages, end)
    }

    fn take_until(&mut self, messages: Vec<ReadMessage>, end: Cursor) -> &mut Self {
        self.to_room.take(messages, end, &self.state, &mut |notice| self.notices.push(notice));
        self
    }

    fn send(&mut self) -> usize {
        let before = self.sent.len();
        let (sent, notices) = (&mut self.sent, &mut self.notices);
        let send = |relay: &Relay<'_>| {
            if relay.text == "too large" {
                return Err(TooLarge);
            }
            let text = |text: Option<&str>| text.unwrap_or("-").to_owned();
            let fields = [
                Some(relay.author),
                relay.recipient,
                Some(relay.text),
                relay.continues,
                relay.external_id.rsplit_once(':').map(|(place, _)| place),
            ];
            sent.push(fields.map(text));
            Ok(sent.len() as u64)
        };
        self.to_room.send(&self.state, &self.members, send, &mut |notice| notices.push(notice));
        self.sent.len() - before
    }

    /// The hub accepts the request with this number as a message with the same number.
    fn accept(&mut self, request: u64) {
        let position = Position { epoch: Epoch(1), seq: Seq(request) };
        self.answer(request, Ok(Answer::Relayed { id: format!("m{request}").into(), position }));
    }

    fn answer(&mut self, request: u64, outcome: Result<Answer, Box<str>>) {
        assert!(self.to_room.is_waiting_for(request));
        self.to_room.answered(request, outcome, &mut self.state, &mut |notice| self.notices.push(notice));
    }

    fn position(&mut self) -> (String, u64) {
        self.to_room.settle(&mut self.state);
        let cursor = self.state.cursor.clone().unwrap();
        (cursor.generation, cursor.offset)
    }
}

#[test]
fn a_line_becomes_a_message_to_its_recipient_with_observers() {
    let mut body = line("[researcher__analyzer-to-Zo_ueb_] @ [dev, all, qa__2, dev, Zo_ueb_, a b]: first");
    body.body = Some("first\nsecond".into());
    let fields = Fields::of(&body);
    assert_eq!((&*fields.author, fields.recipient.as_deref()), ("researcher/analyzer", Some("Zoë")));
    assert_eq!(fields.observers, ["dev", "qa/2", "a b"]);
    assert_eq!(fields.text, "first\nsecond");
    for everyone in ["all", "ALL", "All"] {
        let line = line(&format!("[coder-to-{everyone}]: hi"));
        assert_eq!(Fields::of(&line).recipient, None);
    }
    let named_all = line("[coder-to-_u61_ll]: hi");
    assert_eq!(Fields::of(&named_all).recipient.as_deref(), Some("all"), "a member with this name");
}

#[test]
fn the_position_passes_a_line_only_after_every_line_before_it() {
    let mut scene = Scene::new();
    scene.take(read(&["[a-to-x]: 1", "[a-to-x]: 2", "[a-to-x]: 3"]));
    assert_eq!(scene.send(), 3);
    assert_eq!(scene.sent[1], ["a", "x", "2", "-", "g1:10"]);
    scene.accept(2);
    assert_eq!(scene.position(), ("g1".into(), 0));
    scene.accept(1);
    assert_eq!(scene.position(), ("g1".into(), 20));
    scene.accept(3);
    assert_eq!(scene.position(), ("g1".into(), 30));
    assert!(scene.to_room.is_idle());
}

#[test]
fn lines_without_an_answer_are_sent_again_with_the_same_id() {
    let mut scene = Scene::new();
    scene.take(read(&["[a-to-x]: 1", "[a-to-x]: 2"]));
    scene.send();
    scene.accept(1);
    scene.to_room.connection_lost();
    assert_eq!(scene.send(), 1);
    assert_eq!(scene.sent[2], scene.sent[1]);
}

#[test]
fn a_refused_line_is_reported_and_skipped() {
    let mut scene = Scene::new();
    scene.take(read(&["[a-to-x]: bad", "[a-to-x]: too large", "[a-to-x]: good"]));
    assert_eq!(scene.send(), 2);
    scene.answer(1, Err("no".into()));
    scene.accept(2);
    assert_eq!(scene.position(), ("g1".into(), 30));
    let refused = |line_number, why: &str| BridgeNotice::LineRefused { line_number, why: why.into() };
    assert_eq!(scene.notices, [refused(2, "the message is too long"), refused(1, "no")]);
}

#[test]
fn an_answer_waits_for_the_id_of_the_line_that_it_answers() {
    let mut scene = Scene::new();
    scene.take(read(&["[a-to-b] @ [c]: 1", "[a-to-d]: 2", "[b-to-a]: 3", "[c-to-a]: 4"]));
    assert_eq!(scene.send(), 2, "b answers a line that the hub has not acknowledged");
    scene.accept(1);
    assert_eq!(scene.send(), 2, "both lines answer the first line");
    assert_eq!((&*scene.sent[2][3], &*scene.sent[3][3]), ("m1", "m1"));
    assert_eq!(&*scene.sent[1][3], "-");
}

#[test]
fn a_line_to_everyone_is_answered_by_others_only() {
    let mut scene = Scene::new();
    scene.take(read(&["[a-to-all]: 1", "[a-to-all]: 2", "[b-to-c]: 3"]));
    assert_eq!(scene.send(), 2, "a does not answer itself");
    scene.accept(1);
    assert_eq!(scene.send(), 0);
    scene.accept(2);
    assert_eq!(scene.send(), 1);
    assert_eq!((&*scene.sent[1][3], &*scene.sent[2][3]), ("-", "m2"));
}

#[test]
fn another_spelling_of_a_name_does_not_leave_the_chain() {
    let mut scene = Scene::new();
    scene.take(read(&["[x-to-Coder]: 1"]));
    scene.send();
    scene.accept(1);
    for (number, sender) in ["coder", "CODER", "a1", "_u63_oder"].into_iter().enumerate() {
        let offset = 10 * (number as u64 + 1);
        scene.take(read_from("g1", offset, &[&format!("[{sender}-to-y]: answer")]));
        scene.send();
        assert_eq!(scene.sent.last().unwrap()[3], "m1", "{sender}");
    }
}

#[test]
fn own_lines_are_passed_and_not_sent() {
    let mut scene = Scene::new();
    let own = read(&["[ada-to-coder]: from the room"]).remove(0);
    scene.state.own_lines.push(crate::bridge::state::OwnLine {
        device: 1,
        inode: 7,
        offset: 0,
        end: 10,
        digest: crate::bridge::state::line_digest(&own.line),
    });
    let continued = ReadMessage { cursor: cursor("g1", 14), ..own };
    scene.take(vec![continued]);
    assert_eq!(scene.send(), 0);
    assert_eq!(scene.position(), ("g1".into(), 14));
    assert_eq!(scene.notices, [BridgeNotice::ContinuesOwnLine { line_number: 1 }]);
}

#[test]
fn lines_of_a_new_file_wait_until_its_generation_is_saved() {
    let mut scene = Scene::new();
    scene.take_until(read(&["[a-to-x]: old"]), cursor("g2", 0));
    scene.take(read_from("g2", 0, &["[a-to-x]: new"]));
    assert_eq!(scene.send(), 1, "lines of the new file follow those of the old one");
    assert!(!scene.to_room.waits_for_save());
    scene.accept(1);
    assert_eq!(scene.position(), ("g2".into(), 0));
    assert!(scene.to_room.waits_for_save());
    assert_eq!(scene.send(), 0);
    scene.to_room.saved("g2");
    assert_eq!(scene.send(), 1);
    assert_eq!(scene.sent[1][4], "g2:0");
}

#[test]
fn the_first_line_waits_until_the_first_position_is_saved() {
    let mut scene = Scene::new();
    scene.to_room = ToRoom::new(cursor("g1", 0), None);
    scene.take(read(&["[a-to-x]: 1"]));
    assert_eq!((scene.send(), scene.to_room.waits_for_save()), (0, true));
    scene.to_room.saved("g1");
    assert_eq!((scene.send(), scene.to_room.waits_for_save()), (1, false));
}

#[test]
fn lines_that_are_no_messages_are_passed() {
    let mut scene = Scene::new();
    scene.take_until(Vec::new(), cursor("g1", 500));
    assert_eq!(scene.position(), ("g1".into(), 500));
    scene.take_until(Vec::new(), cursor("g2", 0));
    assert_eq!(scene.position(), ("g2".into(), 0));
}

#[test]
fn lines_in_flight_are_bounded() {
    let mut scene = Scene::new();
    let headers = vec!["[a-to-x]: line"; MAX_QUEUED + 1];
    scene.take(read(&headers));
    assert!(!scene.to_room.has_capacity());
    assert_eq!(scene.send(), MAX_IN_FLIGHT);
    let mut answered = 0;
    while scene.to_room.has_unanswered() {
        answered += 1;
        scene.accept(answered);
        scene.position();
        scene.send();
    }
    assert_eq!(answered as usize, MAX_QUEUED + 1);
    assert!(scene.to_room.is_idle() && scene.to_room.queued_bytes == 0 && scene.to_room.in_flight_bytes == 0);

    let mut scene = Scene::new();
    let long = format!("[a-to-x]: {}", "x".repeat(MAX_IN_FLIGHT_BYTES / 2 + 1));
    scene.take(read(&[&long, &long, &long]));
    assert_eq!(scene.send(), 1, "two long lines exceed the limit");
}
