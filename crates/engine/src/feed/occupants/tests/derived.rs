//! Members that the hub derives from other protocols.

use super::*;

#[test]
fn users_and_agents_of_other_protocols_are_derived_members() {
    let mut test = Test::new();
    test.stored.insert(user("ben"), facts("Ben", &["lobby"], &[]));
    test.stored.insert(user("cat"), facts("Cat", &["lobby", "attic"], &[]));
    test.stored.insert(user("dan"), facts("Dan", &["attic"], &[]));
    let cat = test.online("cat");
    let mut viewer = test.viewer("ann", LOBBY);
    assert!(viewer.derived("cat").unwrap().online, "online before the place was opened");
    test.online("ben");
    test.online("dan");
    assert_eq!(viewer.words(), ["set", "+ben"], "dan is in another room");
    // An agent of a user who is offline is a member of its own; with its owner it is part of the owner's.
    test.stored.insert(user("eve"), facts("Eve", &["lobby"], &[("coder", &["lobby"])]));
    test.fanout.agent_came_online(&user("eve"));
    test.load();
    let eve = viewer.derived("eve").unwrap();
    assert!(!eve.online && &*eve.agents[0].name == "coder");
    test.online("eve");
    assert!(viewer.derived("eve").unwrap().online);
    test.fanout.agent_went_offline(&AgentId::stored("coder"));
    assert_eq!(viewer.derived("eve").unwrap().agents, []);
    assert_eq!(viewer.words(), ["+eve", "*eve", "*eve"]);
    test.fanout.disconnect(cat);
    test.fanout.end_grace_periods(Instant::now() + Duration::from_secs(3));
    assert_eq!(viewer.words(), ["-cat"]);
    test.check(&mut viewer);
}

#[test]
fn a_user_who_enters_a_place_has_no_derived_member_there() {
    let mut test = Test::new();
    test.stored
        .insert(user("ben"), facts("Ben", &["lobby"], &[("coder", &["lobby"]), ("tester", &["lobby"])]));
    test.online("ben");
    let mut viewer = test.viewer("ann", LOBBY);
    assert_eq!(viewer.derived("ben").unwrap().agents.len(), 2);
    let ben = test.hold("c1", "ben");
    let agents = vec![AgentId::stored("coder")];
    test.enter(&ben, "ben", LOBBY, OccupantUpdate { agents, ..update("ben", (1, 0), "") });
    let rest = viewer.derived("ben").unwrap();
    assert!(!rest.online && rest.agents.len() == 1 && &*rest.agents[0].name == "tester");
    test.leave(&ben, LOBBY, update("ben", (2, 0), ""));
    assert!(viewer.derived("ben").unwrap().online);
    test.check(&mut viewer);
}

#[test]
fn derived_members_follow_memberships_and_names() {
    let mut test = Test::new();
    test.stored.insert(user("ben"), facts("Ben", &[], &[("coder", &[])]));
    test.online("ben");
    let mut viewer = test.viewer("ann", LOBBY);
    let ben = MemberId::User(user("ben"));
    let coder = MemberId::Agent(AgentId::stored("coder"));
    test.change_member("lobby", MemberChange::Added(coder.clone()));
    test.change_member("lobby", MemberChange::Added(ben.clone()));
    assert_eq!(viewer.words(), ["set", "+ben", "*ben"]);
    test.change_member("lobby", MemberChange::Removed(coder));
    test.change_member("lobby", MemberChange::Removed(ben));
    assert_eq!(viewer.words(), ["*ben", "-ben"]);
    test.check(&mut viewer);
}

#[test]
fn the_place_of_all_users_shows_only_users_with_a_shared_room() {
    let mut test = Test::new();
    test.stored.insert(user("ann"), facts("Ann", &["lobby"], &[]));
    test.stored.insert(user("ben"), facts("Ben", &["lobby", "secret"], &[]));
    test.stored.insert(user("cat"), facts("Cat", &["secret"], &[]));
    let mut viewer = test.viewer("ann", EVERYONE);
    test.online("ben");
    test.online("cat");
    assert_eq!(viewer.words(), ["set", "+ben"]);
    assert_eq!(viewer.derived("ben").unwrap().rooms, [RoomId::stored("lobby")]);
    test.change_member("secret", MemberChange::Added(MemberId::User(user("ann"))));
    assert_eq!(viewer.words(), ["*ben", "+cat"]);
    test.check(&mut viewer);
    test.change_member("lobby", MemberChange::Removed(MemberId::User(user("ann"))));
    test.change_member("secret", MemberChange::Removed(MemberId::User(user("ann"))));
    assert_eq!(viewer.words(), ["*ben", "-ben", "-cat"]);
    test.check(&mut viewer);
}

#[test]
fn members_that_clients_entered_in_the_place_of_all_users_are_seen_only_with_a_shared_room() {
    let mut test = Test::new();
    test.stored.insert(user("ann"), facts("Ann", &["lobby"], &[]));
    test.stored.insert(user("ben"), facts("Ben", &["lobby"], &[]));
    test.stored.insert(user("cat"), facts("Cat", &["attic"], &[]));
    let mut ann = test.viewer("ann", EVERYONE);
    let (ben, cat) = (test.hold("c1", "ben"), test.hold("c2", "cat"));
    test.enter(&ben, "ben", EVERYONE, update("ben", (1, 0), "1"));
    assert_eq!(ann.words(), ["set"], "the rooms of ben are not known yet");
    test.load();
    test.enter(&cat, "cat", EVERYONE, update("cat", (1, 0), "1"));
    test.load();
    test.enter(&cat, "cat", EVERYONE, update("cat", (2, 0), "2"));
    test.fanout.sweep_occupants();
    assert_eq!(ann.words(), ["+ben"], "the facts about members are kept");
    let mut own = test.viewer("cat", EVERYONE);
    test.check(&mut own);
    assert_eq!(own.set.as_ref().unwrap().len(), 1, "only the own member");
    // The rooms of a member's user, then those of a viewer.
    test.change_member("lobby", MemberChange::Added(MemberId::User(user("cat"))));
    assert_eq!((ann.words(), own.words()), (vec!["+cat".into()], vec!["set".into(), "+ben".into()]));
    test.enter(&cat, "cat", EVERYONE, update("cat", (3, 0), "3"));
    test.change_member("lobby", MemberChange::Removed(MemberId::User(user("ann"))));
    assert_eq!(ann.words(), ["*cat", "-ben", "-cat"]);
    test.leave(&cat, EVERYONE, update("cat", (4, 0), ""));
    assert_eq!((ann.words(), own.words()), (vec![], vec!["*cat".into(), "-cat".into()]));
    test.check(&mut ann);
    test.check(&mut own);
}

#[test]
fn a_change_of_the_place_of_all_users_is_one_item_for_all_viewers_that_see_the_same() {
    let mut test = Test::new();
    for name in ["ann", "ben", "cat"] {
        test.stored.insert(user(name), facts(name, &["lobby", "attic"], &[]));
    }
    test.stored.insert(user("dan"), facts("dan", &["lobby"], &[]));
    test.stored.insert(user("eve"), facts("eve", &[], &[]));
    let viewers = ["ann", "ann", "cat", "dan", "eve"].map(|name| test.viewer(name, EVERYONE));
    for viewer in &viewers {
        take(&viewer.outbox);
    }
    let before = test.fanout.state.lock().last_ordinal;
    test.online("ben");
    assert_eq!(test.fanout.state.lock().last_ordinal, before.plus(1), "one number for all viewers");
    let items = viewers.map(|viewer| match take(&viewer.outbox).pop() {
        Some(Entry { item: Item::Signal(signal), .. }) => Some(signal),
        _ => None,
    });
    let [Some(first), Some(second), Some(third), Some(fourth), None] = items else {
        panic!("eve shares no room")
    };
    assert!(Arc::ptr_eq(&first, &second) && Arc::ptr_eq(&first, &third) && !Arc::ptr_eq(&first, &fourth));
}

#[test]
fn all_members_of_a_user_whose_rooms_change_are_the_same_items_for_all_viewers() {
    let mut test = Test::new();
    for (name, room) in [("ann", "lobby"), ("dan", "lobby"), ("cat", "attic")] {
        test.stored.insert(user(name), facts(name, &[room], &[]));
    }
    let cat = test.hold("c1", "cat");
    for (index, client) in ["c1", "c2", "c3"].into_iter().enumerate() {
        test.enter(&cat, "cat", EVERYONE, update(client, (1, index as u64), "1"));
    }
    test.load();
    let mut viewers = ["ann", "ann", "dan"].map(|name| test.viewer(name, EVERYONE));
    for viewer in &mut viewers {
        test.check(viewer);
        assert_eq!(viewer.set.as_ref().unwrap().len(), 0, "no shared room");
        take(&viewer.outbox);
    }
    test.change_member("lobby", MemberChange::Added(MemberId::User(user("cat"))));
    let state = test.fanout.state.lock();
    assert_eq!(
        state.last_ordinal,
        parlor_model::Ordinal::after(state.published_through).plus(4),
        "one number for each member, and one for the rooms of the user"
    );
    drop(state);
    let [first, second, third] = viewers.map(|viewer| {
        let signals = take(&viewer.outbox).into_iter().filter_map(|entry| match entry.item {
            Item::Signal(signal) => Some(signal),
            _ => None,
        });
        signals.collect::<Vec<_>>()
    });
    assert_eq!(first.len(), 3);
    for (index, signal) in first.iter().enumerate() {
        assert!(Arc::ptr_eq(signal, &second[index]) && Arc::ptr_eq(signal, &third[index]));
    }
}

#[test]
fn a_connection_that_enters_places_itself_makes_no_derived_member() {
    let mut test = Test::new();
    test.stored.insert(user("ben"), facts("Ben", &["lobby"], &[]));
    let mut viewer = test.viewer("ann", LOBBY);
    test.subscriber("ben", true, true, Kinds::NONE);
    test.load();
    assert_eq!(viewer.words(), ["set"]);
    assert!(test.fanout.state.lock().is_present(&user("ben")));
}

#[test]
fn facts_that_an_event_has_changed_since_their_read_are_discarded() {
    let mut test = Test::new();
    test.stored.insert(user("ben"), facts("Ben", &["lobby"], &[]));
    test.load();
    test.subscriber("ben", true, false, Kinds::NONE);
    let read = test.fanout.begin_read().unwrap();
    test.change_member("lobby", MemberChange::Removed(MemberId::User(user("ben"))));
    assert!(!test.fanout.install(&read, test.stored.clone(), false));
    test.stored.insert(user("ben"), facts("Ben", &[], &[]));
    let mut viewer = test.viewer("ann", LOBBY);
    assert_eq!(viewer.words(), ["set"]);
    assert_eq!(viewer.derived("ben"), None);
}

#[test]
fn nothing_is_kept_without_subscribers_to_presence() {
    let mut test = Test::new();
    test.stored.insert(user("ben"), facts("Ben", &["lobby"], &[]));
    test.subscriber("ben", true, false, Kinds::ALL);
    assert!(!test.fanout.state.lock().occupants.directory.is_used());
    let viewer = test.viewer("ann", LOBBY);
    assert!(test.fanout.state.lock().occupants.directory.is_complete());
    test.fanout.disconnect(viewer.id);
    test.fanout.sweep_occupants();
    let state = test.fanout.state.lock();
    assert!(!state.occupants.directory.is_used() && state.occupants.derived.is_empty());
    assert!(state.occupants.lists.is_empty());
}

#[test]
fn a_connection_with_a_limited_credential_makes_its_user_online_if_it_enters_places() {
    let test = Test::new();
    for (id, enters_places) in [("ann", true), ("ben", false)] {
        test.limited_subscriber(id, true, enters_places, Kinds::NONE, false);
        assert_eq!(test.fanout.state.lock().is_present(&user(id)), enters_places);
    }
}
