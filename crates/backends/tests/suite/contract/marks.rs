//! Replies and annotations of messages: threads, reactions, pins, bookmarks.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{AccountChange, AnnotationChange, Change, MessageChange, RoomChange};
use parlor_model::{Event, Member, Message, Reaction, RoomPreferences, Seq};
use std::sync::Arc;

/// Posts `m1`, its reply `m2`, a reply `m3` to `m2`, and `m4` in the lobby, and `m5` in another room.
fn conversation(ports: &mut Ports) {
    ports.change(vec![
        put_user("ann", 1),
        put_room("lobby"),
        put_room("other"),
        put_member("lobby", person("ann"), 2),
        put_member("other", person("ann"), 2),
    ]);
    let answer = |id: &str, to: &str, seq| Message {
        reply_to: Some(message_id(to)),
        thread: Some(message_id("m1")),
        ..message(id, "lobby", "ann", seq)
    };
    ports.post(message("m1", "lobby", "ann", 1));
    ports.post(answer("m2", "m1", 2));
    ports.post(answer("m3", "m2", 3));
    ports.post(message("m4", "lobby", "ann", 4));
    ports.post(message("m5", "other", "ann", 5));
}

fn answers(ports: &Ports, to: &str, after: u64, limit: usize) -> Vec<u64> {
    let to = ports.read(|s| s.message(&message_id(to))).unwrap();
    let found = ports.read(|s| s.answers(&to, Seq(after), limit));
    let found: Vec<u64> = found.iter().map(|message| message.seq.0).collect();
    if limit == usize::MAX {
        assert_eq!(ports.read(|s| s.answer_count(&to, Seq(after))), found.len() as u64);
    }
    found
}

#[test]
fn a_thread_contains_all_replies_below_its_first_message_and_a_reply_its_direct_replies() {
    each(|ports| {
        conversation(ports);
        let all = usize::MAX;
        assert_eq!(answers(ports, "m1", 0, all), [2, 3]);
        assert_eq!(answers(ports, "m2", 0, all), [3]);
        assert!(answers(ports, "m3", 0, all).is_empty());
        assert!(answers(ports, "m4", 0, all).is_empty());
        assert_eq!(answers(ports, "m1", 0, 1), [2]);
        assert_eq!(answers(ports, "m1", 2, all), [3]);
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("m2")))]);
        assert_eq!(
            answers(ports, "m1", 0, all),
            [3],
            "the deleted reply is not in the thread, the reply to it is"
        );
    });
}

#[test]
fn reactions_are_read_and_deleted_with_their_message() {
    each(|ports| {
        conversation(ports);
        let of = |ports: &Ports| ports.read(|s| s.message(&message_id("m1"))).map(|m| m.reactions.clone());
        let put = |list: &[Reaction]| {
            Change::Annotation(AnnotationChange::PutReactions {
                message: message_id("m1"),
                reactions: list.into(),
            })
        };
        let list = [reaction("+1", &["ann", "bob"]), reaction("\u{1f980}", &["bob"])];
        let event = Event::ReactionsChanged {
            room: room_id("lobby"),
            message: message_id("m1"),
            reactions: Arc::new(list.clone()),
        };
        ports.commit(vec![put(&list)], vec![event.clone()]);
        assert_eq!(of(ports), Some(list.to_vec()));
        assert_eq!(ports.events().last(), Some(&event));
        assert_eq!(ports.read(|s| s.message(&message_id("m4"))).unwrap().reactions, []);
        ports.change(vec![put(&[])]);
        assert_eq!(of(ports), Some(vec![]));
        ports.change(vec![put(&list), Change::Message(MessageChange::DeleteMessage(message_id("m1")))]);
        assert_eq!(of(ports), None);
        assert_eq!(ports.events().last(), Some(&Event::Tombstone));
    });
}

#[test]
fn pins_are_listed_per_room_newest_first() {
    each(|ports| {
        conversation(ports);
        let pins = [pin("m4", "lobby", "ann", 6), pin("m1", "lobby", "bob", 7), pin("m5", "other", "ann", 8)];
        ports.change(
            pins.iter().cloned().map(|it| Change::Annotation(AnnotationChange::PutPin(it))).collect(),
        );
        let of = |ports: &Ports, room, beyond| -> Vec<u64> {
            let found = ports.read(|s| s.pins(&room_id(room), Seq(beyond)));
            assert!(found.iter().all(|(pin, message)| pin.message == message.id));
            found.iter().map(|(pin, _)| pin.seq.0).collect()
        };
        assert_eq!(of(ports, "lobby", 0), [7, 6]);
        assert_eq!(of(ports, "lobby", 1), [6], "pins of cleared messages are left out");
        assert_eq!(ports.read(|s| s.pin(&message_id("m1"))), Some(pins[1].clone()));
        assert_eq!(ports.read(|s| s.pin_count(&room_id("lobby"))), 2);
        ports.change(vec![
            Change::Annotation(AnnotationChange::RemovePin(message_id("m4"))),
            Change::Message(MessageChange::DeleteMessage(message_id("m1"))),
        ]);
        assert!(of(ports, "lobby", 0).is_empty());
        assert_eq!(ports.read(|s| s.pin_count(&room_id("lobby"))), 0);
        ports.change(vec![Change::Room(RoomChange::RemoveRoom(room_id("other")))]);
        assert_eq!(ports.read(|s| s.pin(&message_id("m5"))), None);
    });
}

#[test]
fn bookmarks_list_only_messages_that_their_owner_may_see() {
    each(|ports| {
        conversation(ports);
        let marks = [bookmark("m5", "ann", 6), bookmark("m1", "ann", 7), bookmark("m4", "ann", 8)];
        ports.change(
            marks.iter().cloned().map(|it| Change::Annotation(AnnotationChange::PutBookmark(it))).collect(),
        );
        ports.change(vec![Change::Annotation(AnnotationChange::PutBookmark(bookmark("m1", "bob", 9)))]);
        let page = |ports: &Ports, user, before: Option<u64>, limit| -> Vec<u64> {
            let found = ports.read(|s| s.bookmarks(&user_id(user), before.map(Seq), limit));
            assert!(found.iter().all(|(mark, message)| mark.message == message.id));
            found.iter().map(|(mark, _)| mark.seq.0).collect()
        };
        let of = |ports: &Ports, user| page(ports, user, None, usize::MAX);
        assert_eq!(of(ports, "ann"), [8, 7, 6]);
        assert_eq!(page(ports, "ann", None, 2), [8, 7]);
        assert_eq!(page(ports, "ann", Some(7), 2), [6]);
        assert!(of(ports, "bob").is_empty(), "Bob is not a member of the room");
        assert_eq!(ports.read(|s| s.bookmark_count(&user_id("bob"))), 1);
        assert_eq!(ports.read(|s| s.bookmark(&user_id("ann"), &message_id("m1"))), Some(marks[1].clone()));
        assert_eq!(ports.read(|s| s.bookmark(&user_id("ann"), &message_id("m2"))), None);

        ports.change(vec![Change::Room(RoomChange::RemoveMember(room_id("other"), person("ann")))]);
        assert_eq!(of(ports, "ann"), [8, 7], "a former member does not see the message");
        let room_preferences = RoomPreferences { cleared_through: Seq(1), ..Default::default() };
        let cleared = Member { room_preferences, ..member("lobby", person("ann"), 2) };
        ports.change(vec![Change::Room(RoomChange::PutMember(Arc::new(cleared)))]);
        assert_eq!(of(ports, "ann"), [8]);
        ports.change(vec![put_member("other", person("ann"), 9)]);
        assert_eq!(of(ports, "ann"), [8, 6]);
        ports.change(vec![Change::Annotation(AnnotationChange::RemoveBookmark(
            user_id("ann"),
            message_id("m5"),
        ))]);
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("m4")))]);
        assert!(of(ports, "ann").is_empty());
        assert_eq!(ports.read(|s| s.bookmark_count(&user_id("ann"))), 1);
        ports.change(vec![Change::Account(AccountChange::RemoveUser(user_id("ann")))]);
        assert_eq!(ports.read(|s| s.bookmark_count(&user_id("ann"))), 0);
        ports.change(vec![Change::Room(RoomChange::RemoveRoom(room_id("lobby")))]);
        assert_eq!(ports.read(|s| s.bookmark_count(&user_id("bob"))), 0);
    });
}
