//! The log: events are read with the current content of the entities they refer to.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::MAX_MEMBERS_IN_EVENT;
use parlor_engine::changes::{
    AccountChange, AnnotationChange, Change, MailChange, MessageChange, RoomChange,
};
use parlor_model::{
    Event, EventAudience, KeyId, Member, MemberChange, Message, Path, Revision, RoomRole, Seq, SignInId,
    Time, User,
};
use std::sync::Arc;

/// Stores two users in a room, and an agent outside it.
fn store_users(ports: &mut Ports) {
    ports.change(vec![
        put_user("ann", 1),
        put_user("bob", 1),
        put_agent("coder", "ann"),
        put_room("lobby"),
        put_member("lobby", person("ann"), 2),
        put_member("lobby", person("bob"), 3),
    ]);
}

fn members_changed(change: MemberChange, members: Vec<Member>) -> Event {
    Event::MembersChanged { room: Arc::new(room("lobby")), change, members: members.into() }
}

fn both_members() -> Vec<Member> {
    vec![member("lobby", person("ann"), 2), member("lobby", person("bob"), 3)]
}

fn read_by(user: &str, seq: u64) -> Event {
    let (room, username) = (room_id("lobby"), user.into());
    Event::RoomRead { room, user: user_id(user), username, at: Time(seq as i64 * 1000) }
}

fn user_changed(user: User) -> Event {
    let audience = EventAudience::user_and_rooms(&user.id, [room_id("lobby")]).into();
    Event::UserChanged { user: user.into(), audience }
}

fn agent_changed(rooms: &[&str]) -> Event {
    let agent = agent("coder", "ann");
    let audience = EventAudience::of(&agent, rooms.iter().map(|room| room_id(room))).into();
    Event::AgentChanged { agent: agent.into(), audience }
}

fn bookmark_changed(user: &str, kept: bool) -> Event {
    let (room, message) = (room_id("lobby"), message_id("hello"));
    Event::BookmarkChanged { room, user: user_id(user), message, kept }
}

#[test]
fn without_later_changes_the_log_returns_the_published_events() {
    each(|ports| {
        store_users(ports);
        let reactions = vec![reaction("+1", &["bob"])];
        let hello = Arc::new(Message { reactions, ..message("hello", "lobby", "ann", 1) });
        let routed = Arc::new(Message { destination: on_path("slack/x"), ..message("routed", "", "ann", 2) });
        let copy = delivery("routed", mailbox("coder", None));
        let events = vec![
            Event::MessagePosted { message: hello.clone(), deliveries: Arc::new([]) },
            Event::MessagePosted { message: routed.clone(), deliveries: Arc::new([copy.clone()]) },
            Event::MessageEdited(hello.clone()),
            Event::MessageDeleted { room: room_id("lobby"), message: message_id("other") },
            Event::RoomChanged(Arc::new(room("lobby"))),
            members_changed(MemberChange::Added(person("bob")), both_members()),
            members_changed(MemberChange::Changed(agent_member("coder")), both_members()),
            members_changed(MemberChange::Removed(person("coder")), both_members()),
            read_by("bob", 9),
            user_changed(user("ann", 1)),
            Event::UserRemoved(user_id("gone")),
            Event::SignInsEnded(user_id("ann")),
            Event::SignInEnded { user: user_id("ann"), sign_in: SignInId::stored("phone") },
            Event::KeyRevoked { user: user_id("ann"), key: KeyId::stored("key") },
            agent_changed(&[]),
            Event::AgentRemoved {
                agent: agent_id("gone/away"),
                audience: Arc::new(EventAudience::everyone()),
            },
            Event::RoomRemoved { room: room_id("old"), people: Arc::new([]) },
            Event::RoomPreferencesChanged(Arc::new(member("lobby", person("ann"), 2))),
            Event::RoomCleared { room: room_id("lobby"), user: user_id("ann"), at: Time(19_000) },
            Event::ReactionsChanged {
                room: room_id("lobby"),
                message: message_id("hello"),
                reactions: Arc::new([reaction("+1", &["bob"])]),
            },
            Event::MessagePinned(pin("hello", "lobby", "bob", 21)),
            Event::MessageUnpinned { room: room_id("lobby"), message: message_id("hello") },
            bookmark_changed("ann", true),
            bookmark_changed("bob", false),
            Event::SettingsChanged,
            Event::MailResent {
                message: routed.clone(),
                mailbox: None,
                deliveries: Arc::new([copy.clone()]),
            },
            Event::MailResent {
                message: routed.clone(),
                mailbox: Some(copy.mailbox.clone()),
                deliveries: Arc::new([copy.clone()]),
            },
            Event::TokensRevoked { user: user_id("ann"), key: KeyId::stored("key") },
            Event::Tombstone,
        ];
        let hello_reactions = hello.reactions.clone().into();
        let changes = vec![
            Change::Message(MessageChange::PutMessage(hello)),
            Change::Annotation(AnnotationChange::PutReactions {
                message: message_id("hello"),
                reactions: hello_reactions,
            }),
            Change::Message(MessageChange::PutMessage(routed)),
            Change::Mail(MailChange::PutDelivery { delivery: copy, seq: Seq(2) }),
        ];
        ports.commit(changes, events.clone());
        assert_eq!(ports.events(), events);
        let in_room = |event: &Event| event.room() == Some(&room_id("lobby"));
        let of_room: Vec<Event> = events.into_iter().filter(in_room).collect();
        let tail = ports.read(|s| s.room_tail(&room_id("lobby"), Seq(0), usize::MAX));
        assert_eq!(tail.into_iter().map(|logged_event| logged_event.event).collect::<Vec<_>>(), of_room);
    });
}

#[test]
fn room_preferences_are_visible_to_their_member_only() {
    each(|ports| {
        store_users(ports);
        let full = Arc::new(full_member("lobby", person("ann"), 2));
        let read = full.seen_by_others();
        assert_eq!(read.room_preferences, Default::default());
        let mut members = both_members();
        members[0] = read;
        let events = vec![
            members_changed(MemberChange::Changed(person("ann")), members),
            Event::RoomPreferencesChanged(full.clone()),
        ];
        ports.commit(vec![Change::Room(RoomChange::PutMember(full))], events.clone());
        assert_eq!(ports.events(), events);
        let people: Vec<_> = events.iter().map(Event::only_user).collect();
        assert_eq!(people, [None, Some(&user_id("ann"))]);
        ports.change(vec![Change::Room(RoomChange::RemoveMember(room_id("lobby"), person("ann")))]);
        assert_eq!(ports.events()[1], Event::Tombstone, "preferences of a former member are a tombstone");
    });
}

#[test]
fn an_edited_message_is_read_with_its_current_text() {
    each(|ports| {
        store_users(ports);
        let old = message("hello", "lobby", "ann", 1);
        ports.post(old.clone());
        let new = Arc::new(Message { text: "new".into(), edited_at: Some(Time(5)), ..old.clone() });
        let previous = Revision { message: old.id, text: "old".into(), edited_at: Time(5) };
        let edited = Event::MessageEdited(new.clone());
        ports.commit(
            vec![Change::Message(MessageChange::Revise { message: new.clone(), previous })],
            vec![edited.clone()],
        );
        let posted = Event::MessagePosted { message: new, deliveries: Arc::new([]) };
        assert_eq!(ports.events(), [posted, edited]);
    });
}

#[test]
fn events_of_deleted_entities_are_tombstones() {
    each(|ports| {
        store_users(ports);
        ports.post(message("hello", "lobby", "ann", 1));
        let hello = Arc::new(message("hello", "lobby", "ann", 1));
        let deleted = Event::MessageDeleted { room: room_id("lobby"), message: message_id("hello") };
        ports.commit(vec![], vec![Event::MessageEdited(hello), read_by("bob", 3), deleted.clone()]);
        ports.change(vec![Change::Message(MessageChange::DeleteMessage(message_id("hello")))]);
        assert_eq!(ports.events(), [Event::Tombstone, Event::Tombstone, read_by("bob", 3), deleted.clone()]);
        ports.change(vec![Change::Account(AccountChange::RemoveUser(user_id("bob")))]);
        assert_eq!(ports.events(), [Event::Tombstone, Event::Tombstone, Event::Tombstone, deleted]);
    });
}

#[test]
fn of_a_removed_room_only_the_removal_event_is_left() {
    each(|ports| {
        store_users(ports);
        ports.post(message("hello", "lobby", "ann", 1));
        let people: Arc<[_]> = Arc::new([user_id("ann"), user_id("bob")]);
        ports.commit(
            vec![Change::Room(RoomChange::RemoveRoom(room_id("lobby")))],
            vec![
                Event::RoomChanged(Arc::new(room("lobby"))),
                members_changed(MemberChange::Added(person("bob")), both_members()),
                Event::RoomRemoved { room: room_id("lobby"), people },
            ],
        );
        let end = Event::RoomRemoved { room: room_id("lobby"), people: Arc::new([]) };
        assert_eq!(ports.events(), [Event::Tombstone, Event::Tombstone, Event::Tombstone, end.clone()]);
        let tail = ports.read(|s| s.room_tail(&room_id("lobby"), Seq(0), 9));
        let left: Vec<Event> = tail
            .into_iter()
            .map(|logged_event| logged_event.event)
            .filter(|event| *event != Event::Tombstone)
            .collect();
        assert_eq!(left, [end]);
    });
}

#[test]
fn users_agents_and_members_are_read_in_their_current_state() {
    each(|ports| {
        store_users(ports);
        ports.commit(
            vec![],
            vec![
                user_changed(user("ann", 1)),
                agent_changed(&[]),
                members_changed(MemberChange::Added(person("bob")), both_members()),
            ],
        );
        let ann = Arc::new(User { display_name: "Ann Lee".into(), ..user("ann", 1) });
        let owner = Member { role: RoomRole::Owner, name: "Ann Lee".into(), ..both_members().swap_remove(0) };
        ports.change(vec![
            Change::Account(AccountChange::PutUser(ann.clone())),
            Change::Room(RoomChange::PutMember(Arc::new(owner.clone()))),
            Change::Room(RoomChange::RemoveMember(room_id("lobby"), person("bob"))),
        ]);
        assert_eq!(
            ports.events(),
            [
                user_changed(User::clone(&ann)),
                agent_changed(&[]),
                members_changed(MemberChange::Added(person("bob")), vec![owner]),
            ]
        );
        ports.change(vec![Change::Account(AccountChange::RemoveUser(user_id("ann")))]);
        let empty = members_changed(MemberChange::Added(person("bob")), vec![]);
        assert_eq!(ports.events(), [Event::Tombstone, Event::Tombstone, empty]);
    });
}

#[test]
fn an_agent_event_has_the_current_rooms_of_the_agent() {
    each(|ports| {
        store_users(ports);
        ports.commit(vec![], vec![agent_changed(&[])]);
        ports.change(vec![
            put_room("den"),
            put_member("lobby", agent_member("coder"), 5),
            put_member("den", agent_member("coder"), 4),
        ]);
        assert_eq!(ports.events(), [agent_changed(&["den", "lobby"])]);
    });
}

#[test]
fn member_events_of_large_rooms_omit_the_member_list() {
    each(|ports| {
        ports.change(vec![put_room("lobby")]);
        let add = |ports: &mut Ports, from: usize, to: usize| {
            let names: Vec<String> = (from..to).map(|n| format!("u{n}")).collect();
            let users = names.iter().map(|id| put_user(id, 1));
            ports.change(users.chain(names.iter().map(|id| put_member("lobby", person(id), 2))).collect());
        };
        add(ports, 0, MAX_MEMBERS_IN_EVENT);
        ports.commit(vec![], vec![members_changed(MemberChange::Added(person("u0")), vec![])]);
        let listed = |ports: &Ports| match &ports.events()[0] {
            Event::MembersChanged { members, .. } => members.len(),
            other => panic!("another event: {other:?}"),
        };
        assert_eq!(listed(ports), MAX_MEMBERS_IN_EVENT);
        add(ports, MAX_MEMBERS_IN_EVENT, MAX_MEMBERS_IN_EVENT + 1);
        assert_eq!(listed(ports), 0);
    });
}

#[test]
fn the_tail_is_read_in_pages_from_any_position() {
    each(|ports| {
        store_users(ports);
        for seq in 1..=9 {
            let room = if seq % 3 == 0 { "other" } else { "lobby" };
            ports.post(message(&format!("m{seq}"), room, "ann", seq));
        }
        ports.commit(vec![], vec![Event::RoomChanged(Arc::new(room("lobby")))]);
        let seqs = |found: Vec<parlor_model::LoggedEvent>| {
            found.iter().map(|logged_event| logged_event.seq.0).collect::<Vec<_>>()
        };
        let tail = |after, limit| seqs(ports.read(|s| s.tail(Seq(after), limit)));
        assert_eq!(tail(0, 3), [1, 2, 3]);
        assert_eq!(tail(8, 9), [9, 10]);
        assert_eq!(tail(10, 9), [0; 0]);
        assert_eq!(tail(u64::MAX, 9), [0; 0]);
        let lobby = |after, limit| seqs(ports.read(|s| s.room_tail(&room_id("lobby"), Seq(after), limit)));
        assert_eq!(lobby(0, 3), [1, 2, 4]);
        assert_eq!(lobby(4, 9), [5, 7, 8, 10]);
        assert_eq!(lobby(u64::MAX, 9), [0; 0]);
    });
}

#[test]
fn the_tail_of_a_path_has_its_messages_with_their_deliveries() {
    each(|ports| {
        store_users(ports);
        for (seq, path) in [(1, "slack/x"), (2, "slack/y"), (3, "slack/x"), (4, "slack/x")] {
            ports.post(Message { destination: on_path(path), ..message(&format!("m{seq}"), "", "ann", seq) });
        }
        let copy = delivery("m3", mailbox("coder", None));
        let put = MailChange::PutDelivery { delivery: copy.clone(), seq: Seq(3) };
        ports.change(vec![Change::Mail(put)]);
        let tail = ports.read(|s| s.path_tail(&Path::stored("slack/x"), Seq(1), 9));
        let found = tail.iter().map(|logged_event| match &logged_event.event {
            Event::MessagePosted { message, deliveries } => (logged_event.seq, message.seq, deliveries.len()),
            other => panic!("{other:?}"),
        });
        assert_eq!(found.collect::<Vec<_>>(), [(Seq(3), Seq(3), 1), (Seq(4), Seq(4), 0)]);
        assert_eq!(ports.read(|s| s.path_tail(&Path::stored("slack/x"), Seq(0), 1)).len(), 1);
    });
}
