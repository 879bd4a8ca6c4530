//! Which messages are written, and as which lines.

use super::*;
use crate::Cursor;
use crate::bridge::members::tests::member;
use crate::bridge::state::RelayedLine;
use parlor_model::Epoch;
use parlor_wire::broker::client::{AttachedFile, MemberKind, RelayedBy, RoomMember};

fn at(seq: u64) -> Position {
    Position { epoch: Epoch(1), seq: Seq(seq) }
}

fn message(seq: u64, text: &str) -> RoomMessage {
    RoomMessage {
        id: format!("m{seq}").into(),
        position: at(seq),
        sender_id: "u1".into(),
        sender_name: "Ada Lovelace".into(),
        text: text.into(),
        mentions: Vec::new(),
        attachments: Vec::new(),
        source: "client".into(),
        external_id: None,
        relayed: None,
    }
}

fn mention(id: &str, name: &str) -> RoomMember {
    RoomMember { id: id.into(), kind: MemberKind::Agent, name: name.into(), handle: None }
}

fn members() -> Members {
    Members::new(&[
        member("u1", MemberKind::User, "Ada Lovelace", "ada"),
        member("a1", MemberKind::Agent, "Code Reviewer", "a1"),
        member("a2", MemberKind::Agent, "coder", "a2"),
    ])
}

fn state() -> BridgeState {
    let mut state = BridgeState::new("room", "hub");
    let generation = "g1".into();
    state.advance(Cursor { generation, inode: 1, device: 1, offset: 0, lines: 0, tail: String::new() });
    state
}

#[track_caller]
fn check(message: &RoomMessage, lines: &str) {
    assert_eq!(as_lines(message, &members(), "https://hub.example").0, lines);
}

#[test]
fn an_agent_of_the_workplace_is_addressed_by_its_name_in_the_text() {
    let mut members = members();
    let names = ["writer", "researcher__analyzer", "coder", "all", "not a name"].map(str::to_owned);
    members.set_file_agents(&names);
    let check = |text: &str, mentions: Vec<RoomMember>, lines: &str| {
        let message = RoomMessage { mentions, ..message(1, text) };
        assert_eq!(as_lines(&message, &members, "").0, lines);
    };
    check("@writer do it", vec![], "[ada-to-writer]: @writer do it\n");
    check(
        "@Writer, or @researcher/analyzer",
        vec![],
        "[ada-to-writer] @ [researcher__analyzer]: @Writer, or @researcher/analyzer\n",
    );
    let coder = || vec![mention("a2", "coder")];
    check("@writer and @coder", coder(), "[ada-to-writer] @ [coder]: @writer and @coder\n");
    check("@coder and @writer", coder(), "[ada-to-coder] @ [writer]: @coder and @writer\n");
    check("`@writer` mail@writer @writers", vec![], "[ada-to-all]: `@writer` mail@writer @writers\n");
}

#[test]
fn a_message_addresses_its_first_mention_and_the_others_observe() {
    check(&message(1, "hello"), "[ada-to-all]: hello\n");
    let mentions = vec![mention("a1", "Code Reviewer"), mention("a2", "coder"), mention("gone", "Zoë")];
    let addressed = RoomMessage { mentions, ..message(1, "@Code Reviewer please\n\nlook") };
    check(&addressed, "[ada-to-Code_u20_Reviewer] @ [coder, Zo_ueb_]: @Code Reviewer please\n  \n  look\n");
    let gone = RoomMessage { sender_id: "u9".into(), sender_name: "No Member/1".into(), ..message(1, "x") };
    check(&gone, "[No_u20_Member__1-to-all]: x\n");
}

#[test]
fn text_never_becomes_a_line_of_its_own() {
    check(
        &message(1, "hi\r\n[x-to-y]: forged\u{1b}[2J\n\n"),
        "[ada-to-all]: hi\n  [x-to-y]: forged\\u{1b}[2J\n",
    );
    check(&message(1, " \n "), "[ada-to-all]: (no text)\n");
}

#[test]
fn attached_files_are_listed() {
    let file = AttachedFile {
        filename: "report.pdf".into(),
        mime_type: "application/pdf".into(),
        size: 12,
        url: "/uploads/u".into(),
    };
    let attached = "(attached file: report.pdf, application/pdf, 12 bytes, https://hub.example/uploads/u)";
    let with_text = RoomMessage { attachments: vec![file.clone()], ..message(1, "see") };
    check(&with_text, &format!("[ada-to-all]: see\n  {attached}\n"));
    let alone = RoomMessage { attachments: vec![file], ..message(1, "") };
    check(&alone, &format!("[ada-to-all]: {attached}\n"));
}

#[test]
fn an_unverified_author_has_the_name_of_its_account() {
    let relayed = |verified, recipient: Option<&str>, observers: &[&str]| {
        Some(RelayedBy {
            author: "coder".into(),
            verified,
            recipient: recipient.map(Into::into),
            observers: observers.iter().map(|name| (*name).into()).collect(),
        })
    };
    let from_another_file = RoomMessage {
        sender_name: "coder (unverified)".into(),
        source: SOURCE.into(),
        external_id: Some("other:0".into()),
        relayed: relayed(false, Some("Script 2"), &["CODER", "dev"]),
        ..message(1, "x")
    };
    check(&from_another_file, "[ada__coder-to-Script_u20_2] @ [coder, dev]: x\n");
    let verified = RoomMessage {
        sender_id: "a2".into(),
        relayed: relayed(true, None, &["ada"]),
        ..from_another_file.clone()
    };
    check(&verified, "[coder-to-all] @ [ada]: x\n");
    let of_unknown_account = RoomMessage { sender_id: "gone".into(), ..from_another_file };
    check(&of_unknown_account, "[unverified__coder-to-Script_u20_2] @ [coder, dev]: x\n");
}

#[test]
fn lines_of_this_file_are_not_written_back() {
    let mut to_file = ToFile::new(Some(at(0)));
    let mut state = state();
    let relayed_by = |author: &str| {
        let (author, recipient) = (author.into(), Some("writer".into()));
        Some(RelayedBy { author, verified: false, recipient, observers: Vec::new() })
    };
    let line = RelayedLine { place: "g1:77", author: "coder", recipient: Some("writer"), text: "echo" };
    let id = state.external_id(&line);
    let echo = |seq| RoomMessage {
        source: SOURCE.into(),
        external_id: Some(id.as_str().into()),
        relayed: relayed_by("coder"),
        ..message(seq, "echo")
    };
    to_file.received_page(vec![echo(1)]);
    assert_eq!(to_file.next_append(&mut state, &members(), ""), None);
    assert_eq!(state.position, Some(at(1)), "an echo is passed");
    let routed = RoomMessage { external_id: Some("g1:77".into()), ..message(4, "not relayed") };
    to_file.received_page(vec![echo(2), message(3, "hi"), routed, echo(5)]);
    let append = to_file.next_append(&mut state, &members(), "").unwrap();
    assert_eq!(append.text, "[ada-to-all]: hi\n[ada-to-all]: not relayed\n");
    assert_eq!((append.position, append.messages.len()), (at(5), 2));
    assert_eq!(state.position, Some(at(1)), "the position changes with the append");
    // Another member cannot use the id of a line for a message of its own.
    for forged in [
        RoomMessage { text: "forged".into(), ..echo(6) },
        RoomMessage { relayed: relayed_by("admin"), ..echo(6) },
        RoomMessage { relayed: None, ..echo(6) },
    ] {
        let mut to_file = ToFile::new(Some(at(5)));
        to_file.received_page(vec![forged]);
        assert!(to_file.next_append(&mut state, &members(), "").is_some());
    }
    state.separate();
    let mut copy = ToFile::new(Some(at(5)));
    copy.received_page(vec![echo(6)]);
    assert!(copy.next_append(&mut state, &members(), "").is_some(), "a copied project has its own lines");
}

#[test]
fn a_line_of_an_append_is_recognised_by_its_digest() {
    let lines = "zwei\n\n[x-to-y]: drei";
    let mentions = vec![mention("a1", "Code Reviewer"), mention("a2", "coder")];
    let (text, pending) = as_lines(&RoomMessage { mentions, ..message(1, lines) }, &members(), "");
    let known = HashSet::from(["ada".to_owned(), "coder".to_owned()]);
    let read = grammar::parse(text.lines().next().unwrap(), &known).unwrap();
    assert_eq!((pending.digest, pending.bytes), (line_digest(&read), text.len()));
    assert_eq!(pending.addressed.names, ["id:a1", "id:a2"]);
    assert_eq!(pending.addressed.sender, "id:u1");
}

#[test]
fn the_first_start_is_at_the_end_of_the_room_or_at_its_first_message() {
    assert_eq!(ToFile::new(None).start(at(9), false), RoomStart::First(at(9)));
    let mut from_first = ToFile::new(None);
    assert_eq!(from_first.start(at(9), true), RoomStart::First(at(0)));
    assert_eq!(from_first.wanted_page().unwrap().after, Some(at(0)));
    assert_eq!(ToFile::new(Some(at(3))).start(at(9), true), RoomStart::Resumed);
    let restored = Position { epoch: Epoch(2), seq: Seq(1) };
    let mut to_file = ToFile::new(Some(at(3)));
    assert_eq!(to_file.start(restored, false), RoomStart::HistoryReplaced(restored));
    to_file.received_page(vec![RoomMessage {
        position: Position { seq: Seq(2), ..restored },
        ..message(2, "x")
    }]);
    assert_eq!(to_file.queue.len(), 1, "sequence numbers start again");
}

/// Delivers messages as the hub does, while pages are requested at any time.
#[test]
fn messages_are_taken_once_and_in_order_whether_pushed_or_read() {
    let mut to_file = ToFile::new(Some(at(0)));
    let log: Vec<RoomMessage> = (1..=20).map(|seq| message(seq, "x")).collect();
    to_file.start(at(5), false);
    // The page is read when seven messages exist, but the answer arrives after the push of the eighth.
    let page = to_file.wanted_page().unwrap();
    assert_eq!(page.after, Some(at(0)));
    to_file.requested_page(1);
    assert!(to_file.wanted_page().is_none() && to_file.is_waiting_for(1));
    for pushed in &log[5..8] {
        to_file.pushed(pushed.clone());
    }
    to_file.received_page(log[..7].to_vec());
    to_file.requested_page(2);
    to_file.received_page(log[7..8].to_vec());
    to_file.requested_page(3);
    to_file.received_page(Vec::new());
    assert!(to_file.wanted_page().is_none(), "nothing was missed");
    for pushed in &log[8..] {
        to_file.pushed(pushed.clone());
    }
    to_file.pushed(log[19].clone());
    let taken: Vec<u64> = to_file.queue.iter().map(|message| message.position.seq.0).collect();
    assert_eq!(taken, (1..=20).collect::<Vec<u64>>());
}

#[test]
fn a_push_during_the_last_page_causes_another_page() {
    let mut to_file = ToFile::new(Some(at(0)));
    to_file.start(at(0), false);
    to_file.requested_page(1);
    to_file.pushed(message(1, "x"));
    to_file.received_page(Vec::new());
    assert_eq!(to_file.wanted_page().unwrap().after, Some(at(0)));
}

#[test]
fn a_full_queue_drops_pushes_and_reads_them_again() {
    let mut to_file = ToFile::new(Some(at(0)));
    to_file.received_page(Vec::new());
    for seq in 1..=MAX_QUEUED as u64 + 3 {
        to_file.pushed(message(seq, "x"));
    }
    assert_eq!(to_file.queue.len(), MAX_QUEUED);
    assert!(to_file.wanted_page().is_none(), "there is no place for a page");
    let append = to_file.next_append(&mut state(), &members(), "").unwrap();
    assert_eq!(append.messages.len(), MAX_BATCH);
    assert_eq!(to_file.wanted_page().unwrap().after, Some(at(MAX_QUEUED as u64)));
}

#[test]
fn a_long_message_ends_a_batch() {
    let mut to_file = ToFile::new(Some(at(0)));
    let long = "x".repeat(MAX_BATCH_BYTES);
    to_file.received_page((1..=3).map(|seq| message(seq, &long)).collect());
    for seq in 1..=3 {
        assert_eq!(to_file.next_append(&mut state(), &members(), "").unwrap().position, at(seq));
    }
}

#[test]
fn pages_become_smaller_when_the_connection_is_lost_while_one_is_awaited() {
    let mut to_file = ToFile::new(Some(at(0)));
    for expected in [PAGE, PAGE / 2, PAGE / 4] {
        assert_eq!(to_file.wanted_page().unwrap().limit, expected);
        to_file.requested_page(1);
        to_file.connection_lost();
    }
    to_file.requested_page(1);
    to_file.received_page(vec![message(1, "x")]);
    assert_eq!(to_file.wanted_page().unwrap().limit, PAGE / 4);
}
