//! Messages, history, read marks, revisions and idempotency keys.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{Change, MessageChange, RoomChange};
use parlor_engine::ports::{FirstRequest, IdempotencyKey, IdempotencyKind, MessageRange};
use parlor_model::query::{Page, Recent};
use parlor_model::{Destination, Member, Mention, Message, Revision, RoomPreferences, Sender, Seq, Time};
use std::sync::Arc;

/// Posts twelve messages in the lobby, mixed with messages of another room and of a path, deletes two of the
/// twelve, and returns the sequence numbers of the rest.
fn room_with_history(ports: &mut Ports) -> Vec<Seq> {
    ports.change(vec![put_user("ann", 1), put_room("lobby"), put_room("other")]);
    for _ in 0..12 {
        let seq = ports.next_seq();
        ports.post(message(&format!("m{seq}"), "lobby", "ann", seq));
        let seq = ports.next_seq();
        ports.post(message(&format!("m{seq}"), "other", "ann", seq));
        let seq = ports.next_seq();
        ports
            .post(Message { destination: on_path("slack/x"), ..message(&format!("m{seq}"), "", "ann", seq) });
    }
    ports.change(vec![
        Change::Message(MessageChange::DeleteMessage(message_id("m7"))),
        Change::Message(MessageChange::DeleteMessage(message_id("m34"))),
    ]);
    (0..12).map(|n| n * 3 + 1).filter(|seq| ![7, 34].contains(seq)).map(Seq).collect()
}

fn history(ports: &Ports, page: Page, limit: usize) -> Vec<Seq> {
    let messages = ports.read(|s| s.history(&room_id("lobby"), Seq(0), page, limit));
    messages.iter().map(|message| message.seq).collect()
}

#[test]
fn a_message_keeps_every_field() {
    each(|ports| {
        let destinations = [Destination::Room(room_id("lobby")), on_path("slack/team/#general")];
        let senders = [
            Sender::User(user_id("ann")),
            Sender::Agent(agent_id("coder/sub")),
            Sender::Source("slack".into()),
        ];
        for destination in &destinations {
            for sender in &senders {
                let seq = ports.next_seq();
                let id = format!("m{seq}");
                let full = full_message(&id, destination.clone(), sender.clone(), seq);
                ports.post(full.clone());
                assert_eq!(ports.read(|s| s.message(&full.id)).as_deref(), Some(&full));
            }
        }
        let plain = message("plain", "lobby", "ann", ports.next_seq());
        ports.post(plain.clone());
        assert_eq!(ports.read(|s| s.message(&plain.id)).as_deref(), Some(&plain));
        assert_eq!(ports.read(|s| s.message(&message_id("none"))), None);
    });
}

#[test]
fn messages_since_a_seq_include_that_message() {
    each(|ports| {
        let all = room_with_history(ports);
        let since = |from, limit| {
            let messages = ports.read(|s| s.said_since(&room_id("lobby"), from, limit));
            messages.iter().map(|message| message.seq).collect::<Vec<_>>()
        };
        assert_eq!(since(Seq(0), 100), all);
        assert_eq!(since(all[3], 100), all[3..]);
        assert_eq!(since(all[3], 2), all[3..5]);
        assert_eq!(since(all[all.len() - 1].next(), 9), []);
    });
}

#[test]
fn history_read_by_pages_has_no_gap_in_either_direction() {
    each(|ports| {
        let all = room_with_history(ports);
        for limit in 1..=all.len() + 1 {
            let (mut forward, mut from) = (Vec::new(), Seq(0));
            loop {
                let page = history(ports, Page::After(from), limit);
                let Some(last) = page.last() else { break };
                from = *last;
                forward.extend(page);
            }
            assert_eq!(forward, all, "forward by {limit}");

            let (mut backward, mut before) = (Vec::new(), None);
            loop {
                let page = history(ports, Page::Before(before), limit);
                let Some(last) = page.last() else { break };
                before = Some(*last);
                backward.extend(page);
            }
            backward.reverse();
            assert_eq!(backward, all, "backward by {limit}");
        }
        assert_eq!(history(ports, Page::After(Seq(u64::MAX)), 9), []);
        assert_eq!(history(ports, Page::Before(Some(Seq(u64::MAX))), 1), [*all.last().unwrap()]);
        assert_eq!(history(ports, Page::Before(Some(Seq(0))), 9), []);
        assert_eq!(history(ports, Page::Before(None), 0), []);
    });
}

#[test]
fn history_after_a_time_starts_after_the_last_message_of_that_time() {
    each(|ports| {
        room_with_history(ports);
        let after = |micros| history(ports, Page::AfterTime(Time(micros)), 3);
        assert_eq!(after(0), [1, 4, 10].map(Seq));
        assert_eq!(after(3_999), [4, 10, 13].map(Seq));
        assert_eq!(after(4_000), [10, 13, 16].map(Seq));
        assert_eq!(after(31_000), []);
        assert_eq!(after(i64::MAX), []);
    });
}

/// The sequence numbers of a range of messages, at most three.
fn in_range(ports: &Ports, range: MessageRange<'_>) -> Vec<u64> {
    ports.read(|s| s.messages_in_range(&range, 3)).iter().map(|message| message.seq.0).collect()
}

#[test]
fn a_range_of_messages_is_bounded_by_position_and_time_in_both_directions() {
    each(|ports| {
        room_with_history(ports);
        let lobby = Destination::Room(room_id("lobby"));
        let newest = MessageRange::all_of(&lobby);
        let oldest = MessageRange { forwards: true, ..newest };
        assert_eq!(in_range(ports, newest), [31, 28, 25]);
        assert_eq!(in_range(ports, oldest), [1, 4, 10]);
        assert_eq!(in_range(ports, MessageRange { after: Seq(4), ..oldest }), [10, 13, 16]);
        assert_eq!(in_range(ports, MessageRange { before: Some(Seq(28)), ..newest }), [25, 22, 19]);
        assert_eq!(in_range(ports, MessageRange { before: Some(Seq(10)), ..oldest }), [1, 4]);
        // A message has the time of its `Seq` in milliseconds.
        let time = |millis: i64| Some(Time(millis * 1000));
        assert_eq!(in_range(ports, MessageRange { start: time(4), ..oldest }), [4, 10, 13]);
        assert_eq!(in_range(ports, MessageRange { start: time(5), ..oldest }), [10, 13, 16]);
        assert_eq!(in_range(ports, MessageRange { start: time(28), ..newest }), [31, 28]);
        assert_eq!(in_range(ports, MessageRange { end: time(22), ..newest }), [22, 19, 16]);
        assert_eq!(in_range(ports, MessageRange { start: time(28), end: time(29), ..newest }), [28]);
        assert_eq!(in_range(ports, MessageRange { start: Some(Time(i64::MIN)), ..oldest }), [1, 4, 10]);
    });
}

#[test]
fn a_range_of_a_path_has_the_messages_of_exactly_that_path() {
    each(|ports| {
        room_with_history(ports);
        let seq = ports.next_seq();
        ports.post(Message { destination: on_path("slack/x/y"), ..message("below", "", "ann", seq) });
        let path = on_path("slack/x");
        assert_eq!(in_range(ports, MessageRange::all_of(&path)), [36, 33, 30]);
        assert_eq!(in_range(ports, MessageRange::all_of(&on_path("slack/x/y"))), [seq]);
        assert_eq!(in_range(ports, MessageRange::all_of(&on_path("slack"))), [0; 0]);
    });
}

#[test]
fn cleared_messages_are_in_no_page_and_not_counted() {
    each(|ports| {
        let all = room_with_history(ports);
        let beyond = |seq: u64, page| {
            let messages = ports.read(|s| s.history(&room_id("lobby"), Seq(seq), page, 9));
            messages.iter().map(|message| message.seq.0).collect::<Vec<_>>()
        };
        assert_eq!(beyond(25, Page::Before(None)), [31, 28]);
        assert!(beyond(25, Page::Before(Some(Seq(26)))).is_empty());
        assert_eq!(beyond(25, Page::After(Seq(0))), [28, 31]);
        assert_eq!(beyond(25, Page::After(Seq(28))), [31]);
        assert_eq!(beyond(25, Page::AfterTime(Time(0))), [28, 31]);
        assert_eq!(beyond(25, Page::AfterTime(Time(28_000))), [31]);
        let cleared = |through: Seq, read: u64| {
            let room_preferences = RoomPreferences { cleared_through: through, ..Default::default() };
            let bob =
                Member { room_preferences, read_through: Seq(read), ..member("lobby", person("bob"), 1) };
            ports.read(|s| s.recent(&room_id("lobby"), &bob)).map(|recent| recent.unread)
        };
        assert_eq!(cleared(Seq(0), 0), Some(all.len() as u64));
        assert_eq!(cleared(Seq(25), 0), Some(2));
        assert_eq!(cleared(Seq(25), 28), Some(1));
        assert_eq!(cleared(Seq(31), 0), None);
    });
}

#[test]
fn a_clock_set_back_does_not_reorder_messages() {
    each(|ports| {
        ports.change(vec![put_room("lobby")]);
        for (seq, at) in [(1, 100), (2, 200), (3, 50), (4, 60)] {
            ports.post(Message { at: Time(at), ..message(&format!("m{seq}"), "lobby", "ann", seq) });
        }
        assert_eq!(history(ports, Page::After(Seq(0)), 9), [1, 2, 3, 4].map(Seq));
        assert_eq!(history(ports, Page::AfterTime(Time(55)), 9), [Seq(4)]);
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("m3")))]);
        assert_eq!(history(ports, Page::AfterTime(Time(55)), 9), [1, 2, 4].map(Seq));
    });
}

#[test]
fn a_deleted_message_is_not_counted() {
    each(|ports| {
        let all = room_with_history(ports);
        assert_eq!(ports.read(|s| s.message(&message_id("m34"))), None);
        assert_eq!(ports.read(|s| s.newest_message(&room_id("lobby"))), all.last().copied());
        let reader = member("lobby", person("bob"), 1);
        let recent = ports.read(|s| s.recent(&room_id("lobby"), &reader)).unwrap();
        assert_eq!((recent.message.seq, recent.unread), (Seq(31), all.len() as u64));
        assert_eq!(ports.read(|s| s.newest_message(&room_id("empty"))), None);
        assert_eq!(ports.read(|s| s.recent(&room_id("empty"), &reader)), None);
    });
}

#[test]
fn the_id_of_a_deleted_message_stays_reserved_while_its_room_exists() {
    each(|ports| {
        room_with_history(ports);
        let was_said =
            |ports: &Ports| ["m31", "m34", "never"].map(|id| ports.read(|s| s.was_said(&message_id(id))));
        assert_eq!(was_said(ports), [true, true, false]);
        ports.change(vec![Change::Room(RoomChange::RemoveRoom(room_id("lobby")))]);
        assert_eq!(was_said(ports), [false, false, false]);
    });
}

#[test]
fn own_messages_are_not_unread_and_mentions_are_counted() {
    each(|ports| {
        ports.change(vec![put_user("ann", 1), put_room("lobby")]);
        let from = |id: &str, sender, seq| Message { sender, ..message(id, "lobby", "", seq) };
        let last = from("m4", Sender::Source("ann".into()), 4);
        let mentions = [person("ann"), agent_member("bob")];
        let mentions = mentions.map(|member| Mention { member, name: "Somebody".into() }).to_vec();
        ports.post(from("m1", Sender::User(user_id("ann")), 1));
        ports.post(Message { mentions, ..from("m2", Sender::User(user_id("bob")), 2) });
        ports.post(from("m3", Sender::Agent(agent_id("ann")), 3));
        ports.post(last.clone());
        let recent = |member| ports.read(|s| s.recent(&room_id("lobby"), &member));
        let expected = |unread, mentions| Some(Recent { message: Arc::new(last.clone()), unread, mentions });
        let ann = member("lobby", person("ann"), 1);
        assert_eq!(recent(ann.clone()), expected(3, 1));
        assert_eq!(
            recent(member("lobby", agent_member("ann"), 1)),
            expected(3, 0),
            "an agent of the same name is another member"
        );
        assert_eq!(recent(parlor_model::Member { read_through: Seq(3), ..ann.clone() }), expected(1, 0));
        assert_eq!(recent(parlor_model::Member { read_through: Seq(4), ..ann }), expected(0, 0));
    });
}

#[test]
fn the_read_mark_never_moves_back() {
    each(|ports| {
        ports.change(vec![
            put_user("ann", 1),
            put_room("lobby"),
            put_member("lobby", person("ann"), 2),
            put_member("other", person("ann"), 2),
        ]);
        let read = |through, at| {
            let (room, user) = (room_id("lobby"), user_id("ann"));
            Change::Room(RoomChange::MarkRead { room, user, through: Seq(through), at: Time(at) })
        };
        let state = |ports: &Ports, room| {
            let ann = ports.read(|s| s.member(&room_id(room), &person("ann"))).unwrap();
            (ann.read_through, ann.read_at)
        };
        ports.change(vec![read(5, 50)]);
        assert_eq!(state(ports, "lobby"), (Seq(5), Some(Time(50))));
        ports.change(vec![read(3, 60)]);
        assert_eq!(state(ports, "lobby"), (Seq(5), Some(Time(60))), "the read mark never moves back");
        assert_eq!(state(ports, "other"), (Seq(0), None));
    });
}

#[test]
fn an_edit_keeps_the_previous_text() {
    each(|ports| {
        ports.change(vec![put_room("lobby")]);
        let mut current = message("m1", "lobby", "ann", 1);
        ports.post(current.clone());
        // The clock does not advance before the second edit and is set back before the third.
        let mut revisions = Vec::new();
        for (text, at) in [("two", 2_000), ("three", 2_000), ("four", 1_500)] {
            let previous =
                Revision { message: message_id("m1"), text: (&*current.text).into(), edited_at: Time(at) };
            revisions.insert(0, previous.clone());
            current = Message { text: text.into(), edited_at: Some(Time(at)), ..current };
            ports.change(vec![Change::Message(MessageChange::Revise {
                message: Arc::new(current.clone()),
                previous,
            })]);
        }
        assert_eq!(ports.read(|s| s.message(&message_id("m1"))).as_deref(), Some(&current));
        assert_eq!(ports.read(|s| s.revisions(&message_id("m1"), 9)), revisions, "the latest edit first");
        assert_eq!(ports.read(|s| s.revisions(&message_id("m1"), 1)), revisions[..1]);
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("m1")))]);
        assert_eq!(ports.read(|s| s.revisions(&message_id("m1"), 9)), []);
    });
}

#[test]
fn an_idempotency_key_returns_its_first_request() {
    each(|ports| {
        ports.change(vec![put_room("lobby")]);
        ports.post(message("m1", "lobby", "ann", 1));
        let key =
            |kind, owner: &str, key: &str| IdempotencyKey { kind, owner: owner.into(), key: key.into() };
        let used = key(IdempotencyKind::ClientMessage, "ann", "1");
        let first = FirstRequest { digest: [7; 16], message: message_id("m1"), seq: Seq(1) };
        ports.change(vec![Change::Message(MessageChange::RememberIdempotencyKey {
            key: used.clone(),
            first: first.clone(),
            at: Time(1),
        })]);
        let lookup = |key| ports.read(|s| s.first_use(&key));
        assert_eq!(lookup(used.clone()), Some(first.clone()));
        for other in [
            key(IdempotencyKind::External, "ann", "1"),
            key(IdempotencyKind::ClientMessage, "bob", "1"),
            key(IdempotencyKind::ClientMessage, "ann", "2"),
            key(IdempotencyKind::ClientMessage, "ANN", "1"),
        ] {
            assert_eq!(lookup(other), None);
        }
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("m1")))]);
        assert_eq!(ports.read(|s| s.first_use(&used)), Some(first), "also after the message was deleted");
    });
}
