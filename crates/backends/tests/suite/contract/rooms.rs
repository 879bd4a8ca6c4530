//! Rooms and their members.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{AccountChange, AgentChange, Change, MailChange, MessageChange, RoomChange};
use parlor_engine::ports::{FirstRequest, IdempotencyKey, IdempotencyKind};
use parlor_model::{
    Agent, Member, MemberId, Notifications, Revision, Room, RoomKind, RoomPreferences, RoomRole, Seq, Time,
    User,
};
use std::sync::Arc;

fn members(ports: &Ports, room: &str, limit: usize, offset: usize) -> Vec<MemberId> {
    let members = ports.read(|s| s.members(&room_id(room), limit, offset));
    members.into_iter().map(|member| member.member).collect()
}

#[test]
fn a_room_keeps_every_field_and_is_replaced_as_a_whole() {
    each(|ports| {
        ports.change(vec![put_room("lobby")]);
        assert_eq!(ports.read(|s| s.room(&room_id("lobby"))), Some(room("lobby")));
        let plain = Room {
            kind: RoomKind::Group,
            policy: Default::default(),
            system_prompt: None,
            agent_command_role: RoomRole::Owner,
            approve_role: RoomRole::Member,
            router: None,
            frozen: None,
            project_root: None,
            description: None,
            ..room("lobby")
        };
        ports.change(vec![Change::Room(RoomChange::PutRoom(Arc::new(plain.clone())))]);
        assert_eq!(ports.read(|s| s.room(&room_id("lobby"))), Some(plain));
        assert_eq!(ports.read(|s| s.room(&room_id("other"))), None);
    });
}

#[test]
fn members_are_listed_in_the_order_in_which_they_joined() {
    each(|ports| {
        let names = ["zoe", "ann", "mia", "bob"];
        let mut changes: Vec<Change> = names.map(|id| put_user(id, 1)).into();
        changes.extend(names.map(|id| put_member("lobby", person(id), 7)));
        ports.change(changes);
        assert_eq!(members(ports, "lobby", usize::MAX, 0), names.map(person));
        assert_eq!(members(ports, "lobby", 2, 1), ["ann", "mia"].map(person));
        assert_eq!(members(ports, "lobby", 2, 9), []);

        let admin = Member { role: RoomRole::Admin, ..member("lobby", person("zoe"), 7) };
        ports.change(vec![Change::Room(RoomChange::PutMember(Arc::new(admin.clone())))]);
        assert_eq!(members(ports, "lobby", 9, 0), names.map(person), "a new role does not change the order");
        assert_eq!(ports.read(|s| s.member(&room_id("lobby"), &person("zoe"))), Some(admin));

        ports.change(vec![Change::Room(RoomChange::RemoveMember(room_id("lobby"), person("ann")))]);
        ports.change(vec![put_member("lobby", person("ann"), 9)]);
        assert_eq!(members(ports, "lobby", 9, 0), ["zoe", "mia", "bob", "ann"].map(person));
        assert_eq!(ports.read(|s| s.member_count(&room_id("lobby"))), 4);
        assert_eq!(ports.read(|s| s.member_count(&room_id("other"))), 0);
    });
}

#[test]
fn a_member_keeps_every_room_preference() {
    each(|ports| {
        let plain = member("lobby", person("ann"), 2);
        let full = full_member("lobby", person("ann"), 2);
        let mentions =
            RoomPreferences { notifications: Notifications::Mentions, ..RoomPreferences::default() };
        let mentions = Member { room_preferences: mentions, ..plain.clone() };
        ports.change(vec![put_user("ann", 1), put_member("lobby", person("ann"), 2)]);
        for kept in [full, mentions, plain] {
            ports.change(vec![Change::Room(RoomChange::PutMember(Arc::new(kept.clone())))]);
            assert_eq!(ports.read(|s| s.member(&room_id("lobby"), &person("ann"))), Some(kept));
        }
    });
}

#[test]
fn a_member_keeps_the_name_that_it_has_in_the_room() {
    each(|ports| {
        ports.change(vec![
            put_user("ann", 1),
            put_agent("ann", "ann"),
            put_member("lobby", person("ann"), 2),
            put_member("lobby", agent_member("ann"), 2),
        ]);
        let expected = [member("lobby", person("ann"), 2), member("lobby", agent_member("ann"), 2)];
        assert_eq!(ports.read(|s| s.members(&room_id("lobby"), 9, 0)), expected);
        let ann = User { display_name: "Ann Lee".into(), ..user("ann", 1) };
        let helper = Agent { name: "Helper".into(), ..agent("ann", "ann") };
        let renamed = RoomChange::RenameMember {
            room: room_id("lobby"),
            member: agent_member("ann"),
            name: "Helper-ann".into(),
        };
        ports.change(vec![
            Change::Account(AccountChange::PutUser(Arc::new(ann))),
            Change::Agent(AgentChange::PutAgent(Arc::new(helper))),
            Change::Room(renamed),
        ]);
        let names = ports.read(|s| {
            let user = s.member(&room_id("lobby"), &person("ann"))?.map(|member| member.name);
            let agent = s.memberships(&agent_member("ann"))?.pop().map(|member| member.name);
            Ok((user, agent))
        });
        assert_eq!(names, (Some("Display ann".into()), Some("Helper-ann".into())));
        let in_rooms = ports.read(|s| s.names_in_rooms());
        let name = |member, name: &str| (room_id("lobby"), member, name.into());
        let expected = [name(person("ann"), "Display ann"), name(agent_member("ann"), "Helper-ann")];
        assert_eq!(in_rooms, expected);
    });
}

#[test]
fn a_name_is_found_by_its_key_in_one_room() {
    each(|ports| {
        ports.change(vec![put_user("ann", 1), put_user("bob", 1), put_member("lobby", person("ann"), 2)]);
        let zoe = Member { name: "ZOË".into(), ..member("lobby", person("bob"), 3) };
        ports.change(vec![Change::Room(RoomChange::PutMember(Arc::new(zoe)))]);
        let has = |room: &str, key: &str, except: &str| {
            ports.read(|s| s.has_member_named(&room_id(room), key, &person(except)))
        };
        assert!(has("lobby", "zoë", "ann") && has("lobby", "display ann", "bob"));
        assert!(!has("lobby", "zoë", "bob"), "the member itself does not count");
        assert!(!has("lobby", "zoe", "ann") && !has("other", "zoë", "ann"));
    });
}

#[test]
fn memberships_are_listed_oldest_first_across_rooms() {
    each(|ports| {
        ports.change(vec![
            put_user("ann", 1),
            put_user("bob", 1),
            put_member("late", person("ann"), 30),
            put_member("early", person("bob"), 5),
            put_member("early", person("ann"), 10),
            put_member("b-same", person("ann"), 20),
            put_member("a-same", person("ann"), 20),
        ]);
        let rooms = ports.read(|s| s.memberships(&person("ann")));
        let rooms: Vec<&str> = rooms.iter().map(|member| member.room.as_str()).collect();
        assert_eq!(rooms, ["early", "a-same", "b-same", "late"]);
        assert_eq!(ports.read(|s| s.memberships(&agent_member("ann"))), []);
    });
}

#[test]
fn members_of_a_common_room_are_peers() {
    each(|ports| {
        let mut changes: Vec<Change> = ["ann", "bob", "cyd"].map(|id| put_user(id, 1)).into();
        changes.push(put_agent("ann", "cyd"));
        for (room, member) in [
            ("one", person("ann")),
            ("one", person("bob")),
            ("two", person("bob")),
            ("two", person("cyd")),
            ("two", agent_member("ann")),
        ] {
            changes.extend([put_room(room), put_member(room, member, 2)]);
        }
        ports.change(changes);
        let share = |first, second| ports.read(|s| s.share_a_room(&first, &second));
        assert!(share(person("ann"), person("bob")));
        assert!(share(person("bob"), agent_member("ann")));
        assert!(!share(person("ann"), person("cyd")));
        assert!(
            !share(person("ann"), agent_member("ann")),
            "an agent with the same id as a user is another member"
        );
        assert_eq!(ports.read(|s| s.peers(&user_id("bob"))), ["ann", "cyd"].map(user_id));
        assert_eq!(ports.read(|s| s.peers(&user_id("ann"))), [user_id("bob")]);
        assert_eq!(ports.read(|s| s.peers(&user_id("nobody"))), []);
    });
}

#[test]
fn removing_a_room_deletes_everything_in_it() {
    each(|ports| {
        ports.change(vec![put_user("ann", 1), put_agent("coder", "ann")]);
        for room in ["lobby", "other"] {
            ports.change(vec![put_room(room), put_member(room, person("ann"), 2)]);
        }
        for (seq, id, room) in [(1, "gone", "lobby"), (2, "stays", "other")] {
            ports.post(message(id, room, "ann", seq));
            let edited = Arc::new(message(id, room, "ann", seq));
            let previous = Revision { message: message_id(id), text: "old".into(), edited_at: Time(9) };
            let key =
                IdempotencyKey { kind: IdempotencyKind::ClientMessage, owner: "ann".into(), key: id.into() };
            let first = FirstRequest { digest: [1; 16], message: message_id(id), seq: Seq(seq) };
            let delivery = delivery(id, mailbox("coder", None));
            ports.change(vec![
                Change::Message(MessageChange::Revise { message: edited, previous }),
                Change::Message(MessageChange::RememberIdempotencyKey { key, first, at: Time(9) }),
                Change::Mail(MailChange::PutDelivery { delivery, seq: Seq(seq) }),
            ]);
        }
        ports.change(vec![Change::Room(RoomChange::RemoveRoom(room_id("lobby")))]);
        ports.read(|s| {
            let (lobby, gone, stays) = (room_id("lobby"), message_id("gone"), message_id("stays"));
            assert_eq!((s.room(&lobby)?, s.member(&lobby, &person("ann"))?), (None, None));
            assert_eq!((s.message(&gone)?, s.newest_message(&lobby)?), (None, None));
            assert_eq!((s.revisions(&gone, 9)?, s.deliveries(&gone)?), (vec![], vec![]));
            let mail = s.pending(&mailbox("coder", None), Time(0), 9)?;
            assert!(matches!(&mail[..], [(message, _)] if message.id == stays));
            assert_eq!((s.revisions(&stays, 9)?.len(), s.memberships(&person("ann"))?.len()), (1, 1));
            let key = IdempotencyKey {
                kind: IdempotencyKind::ClientMessage,
                owner: "ann".into(),
                key: "gone".into(),
            };
            assert!(s.first_use(&key)?.is_some(), "a late retry is still recognised");
            Ok(())
        });
    });
}

#[test]
fn the_agents_of_a_room_are_listed_without_its_users() {
    each(|ports| {
        let mut changes = vec![put_agent("zed", "ann"), put_agent("coder", "ann"), put_agent("away", "ann")];
        changes.extend(
            [agent_member("zed"), person("ann"), agent_member("coder")].map(|id| put_member("lobby", id, 7)),
        );
        changes.push(put_member("other", agent_member("away"), 7));
        ports.change(changes);
        assert_eq!(ports.read(|s| s.agents_in(&room_id("lobby"))), ["coder", "zed"].map(agent_id));
        assert_eq!(ports.read(|s| s.agents_in(&room_id("empty"))), []);
    });
}
