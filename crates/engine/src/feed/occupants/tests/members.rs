//! Members of clients: newness, lost and resumed connections, limits and revocation.

use super::*;
use parlor_model::{KeyId, SiteRole, User};

#[test]
fn a_second_enter_is_an_update_and_an_older_state_is_ignored() {
    let test = Test::new();
    let mut viewer = test.viewer("ann", "x/a");
    let ben = test.hold("c1", "ben");
    assert_eq!(viewer.words(), ["set"]);
    test.enter(&ben, "ben", "x/a", update("ben", (2, 0), "1"));
    test.enter(&ben, "ben", "x/a", update("ben", (2, 1), "2"));
    test.enter(&ben, "ben", "x/a", update("ben", (1, 9), "old"));
    test.leave(&ben, "x/a", update("ben", (1, 0), ""));
    assert_eq!(viewer.words(), ["+ben", "*ben"]);
    test.check(&mut viewer);
    test.leave(&ben, "x/a", update("ben", (3, 0), ""));
    assert_eq!(viewer.words(), ["-ben"]);
    test.leave(&ben, "x/a", update("ben", (4, 0), ""));
    assert_eq!(viewer.words(), [""; 0], "a member that is not there");
}

#[test]
fn a_departure_without_data_carries_the_last_data() {
    let test = Test::new();
    let ben = test.hold("c1", "ben");
    let left = |data| {
        test.enter(&ben, "ben", "x/a", update("ben", (1, 0), "1"));
        let mut left = None;
        test.change(|sets, now| {
            left = sets.leave(&ben, &path("x/a"), update("ben", (2, 0), data), now);
            left.iter().cloned().collect()
        });
        left.unwrap().occupant.data().unwrap().0.to_string()
    };
    assert_eq!(left(""), "1");
    assert_eq!(left("2"), "2");
}

#[test]
fn members_of_a_lost_connection_leave_after_the_grace_period() {
    let test = Test::new();
    let mut viewer = test.viewer("ann", "x/a");
    let ben = test.hold("c1", "ben");
    test.enter(&ben, "ben", "x/a", update("ben", (1, 0), "1"));
    let before = Instant::now();
    test.lose(&ben);
    let after = Instant::now();
    test.fanout.end_grace_periods(before + Duration::from_millis(14_999));
    assert_eq!(viewer.words(), ["set", "+ben"]);
    test.fanout.end_grace_periods(after + Duration::from_secs(15));
    assert_eq!(viewer.words(), ["-ben"]);
    let state = test.fanout.state.lock();
    assert!(!state.occupants.has_user(&user("ben")) && state.occupants.principals().next().is_none());
}

#[test]
fn members_of_a_resumed_connection_stay() {
    let test = Test::new();
    let mut viewer = test.viewer("ann", "x/a");
    let old = test.hold("c1", "ben");
    test.enter(&old, "ben", "x/a", update("ben", (1, 0), "1"));
    test.lose(&old);
    let new = test.hold("c1", "ben");
    test.fanout.end_grace_periods(Instant::now() + Duration::from_secs(60));
    test.enter(&new, "ben", "x/a", update("ben", (1, 0), "again"));
    assert_eq!(viewer.words(), ["set", "+ben"], "a client enters again with the same id");
    test.enter(&old, "ben", "x/a", update("ben", (5, 0), "replaced"));
    test.change(|sets, now| sets.close(&old, now));
    test.lose(&old);
    test.fanout.end_grace_periods(Instant::now() + Duration::from_secs(60));
    assert_eq!(viewer.words(), [""; 0], "the replaced connection has no effect");
    test.change(|sets, now| sets.close(&new, now));
    assert_eq!(viewer.words(), ["-ben"]);
}

#[test]
fn a_connection_of_another_user_is_refused_and_one_client_may_have_two_connections() {
    let test = Test::new();
    let mut viewer = test.viewer("ann", "x/a");
    let first = test.hold("c1", "ben");
    let second = test.hold("c2", "ben");
    let stolen = test.fanout.state.lock().occupants.sets.hold("c1", &user("eve"), &principal("eve"));
    assert_eq!(stolen, Err(Refusal::Forbidden));
    test.enter(&first, "ben", "x/a", update("ben", (1, 0), ""));
    test.enter(&second, "ben", "x/a", update("ben", (0, 0), ""));
    test.change(|sets, now| sets.close(&first, now));
    assert_eq!(viewer.words(), ["set", "+ben", "+ben", "-ben"]);
    test.check(&mut viewer);
}

#[test]
fn a_departure_that_the_hub_makes_has_no_id_of_the_connection() {
    let test = Test::new();
    let ben = test.hold("c1", "ben");
    test.enter(&ben, "ben", "x/a", update("ben", (1, 0), "1"));
    let mut left = Vec::new();
    test.change(|sets, now| {
        left = sets.close(&ben, now);
        left.clone()
    });
    let occupant = &left[0].occupant;
    assert!(!occupant.id.starts_with("c1:") && occupant.order.is_none() && &*occupant.connection == "c1");
}

#[test]
fn the_limits_of_members_and_data_are_refused() {
    let limits = Limits {
        occupants: 4,
        place_occupants: 2,
        connection_occupants: 3,
        occupant_bytes: 20,
        all_occupant_bytes: 60,
        ..Limits::default()
    };
    let test = Test::with(limits);
    let (a, b) = (test.hold("a", "ann"), test.hold("b", "ben"));
    let enter = |hold: &Hold, place: &str, client: &str, data: &str| {
        test.try_enter(hold, "ann", place, update(client, (1, 0), data)).map(drop)
    };
    assert_eq!(enter(&a, "x/1", "1", &"x".repeat(20)), Err(Refusal::TooLarge { limit: 20, got: 25 }));
    assert_eq!(enter(&a, "x/1", "1", ""), Ok(()));
    assert_eq!(enter(&a, "x/1", "2", ""), Ok(()));
    assert_eq!(enter(&b, "x/1", "3", ""), Err(Refusal::AtCapacity), "the place is full");
    assert_eq!(enter(&a, "x/2", "1", ""), Ok(()));
    assert_eq!(enter(&a, "x/3", "1", ""), Err(Refusal::AtCapacity), "the connection is full");
    assert_eq!(enter(&b, "x/2", "1", ""), Ok(()));
    assert_eq!(enter(&b, "x/3", "1", ""), Err(Refusal::AtCapacity), "the hub is full");
    test.change(|sets, now| sets.leave_place(&a, &path("x/1"), now));
    for place in ["x/3", "x/4"] {
        let _ = enter(&b, place, "1", &"x".repeat(15));
    }
    let more = test.try_enter(&b, "ben", "x/3", update("1", (2, 0), &"x".repeat(15)));
    assert!(more.is_ok(), "an update replaces the bytes of the member");
    test.change(|sets, now| [sets.close(&a, now), sets.close(&b, now)].concat());
    assert_eq!(test.fanout.state.lock().occupants.sets.totals(), (0, 0));
}

#[test]
fn a_user_who_loses_a_right_leaves_in_the_same_publication() {
    let mut test = Test::new();
    let (mut lobby, mut other) = (test.viewer("ann", LOBBY), test.viewer("ann", "x/a"));
    let lost =
        |event: fn() -> Event, from_other: bool, test: &mut Test, lobby: &mut Viewer, other: &mut Viewer| {
            let ben = test.hold("c1", "ben");
            test.enter(&ben, "ben", LOBBY, update("ben", (1, 0), ""));
            test.enter(&ben, "ben", "x/a", update("ben", (2, 0), ""));
            lobby.words();
            other.words();
            test.publish(event());
            assert_eq!(lobby.words(), ["-ben"], "{:?}", event());
            assert_eq!(other.words().len(), usize::from(from_other), "{:?}", event());
            test.change(|sets, now| sets.close(&ben, now));
            lobby.words();
            other.words();
        };
    let removed = || Event::MembersChanged {
        room: Arc::new(crate::feed::tests::room("lobby")),
        change: MemberChange::Removed(MemberId::User(user("ben"))),
        members: Arc::new([]),
    };
    lost(removed, false, &mut test, &mut lobby, &mut other);
    lost(|| Event::SignInsEnded(user("ben")), true, &mut test, &mut lobby, &mut other);
    lost(|| Event::UserRemoved(user("ben")), true, &mut test, &mut lobby, &mut other);
    let sign_in = || Event::SignInEnded { user: user("ben"), sign_in: SignInId::stored("sign-in-of-ben") };
    lost(sign_in, true, &mut test, &mut lobby, &mut other);
}

#[test]
fn members_with_a_key_that_needs_a_site_admin_leave_with_the_role_of_its_owner() {
    let mut test = Test::new();
    let mut viewer = test.viewer("ann", "x/a");
    let key = KeyId::stored("key");
    test.fanout.add_admin_key(key.clone());
    let principal = Principal::Program { user: user("ben"), key };
    let ben = test.fanout.state.lock().occupants.sets.hold("c1", &user("ben"), &principal).unwrap();
    test.enter(&ben, "ben", "x/a", update("ben", (1, 0), ""));
    for (role, expected) in [(SiteRole::Admin, &["set", "+ben"][..]), (SiteRole::User, &["-ben"])] {
        let changed = User { role, ..crate::commands::test_fixtures::user("ben") };
        test.publish(Event::UserChanged { user: Arc::new(changed), audience: Arc::default() });
        assert_eq!(viewer.words(), expected, "{role:?}");
    }
}

#[test]
fn entering_after_the_credential_has_ended_is_refused() {
    let mut test = Test::new();
    let ben = test.hold("c1", "ben");
    test.publish(Event::SignInsEnded(user("ben")));
    let entered = test.try_enter(&ben, "ben", "x/a", update("ben", (1, 0), ""));
    assert_eq!(entered, Err(Refusal::NotSignedIn));
}

#[test]
fn the_set_of_a_removed_room_is_empty() {
    let mut test = Test::new();
    let ben = test.hold("c1", "ben");
    test.enter(&ben, "ben", LOBBY, update("ben", (1, 0), ""));
    test.publish(Event::RoomRemoved { room: RoomId::stored("lobby"), people: [user("ben")].into() });
    let viewer = test.viewer("ann", LOBBY);
    assert_eq!(test.query(&viewer), BTreeMap::new());
    assert!(!test.fanout.state.lock().occupants.has_user(&user("ben")));
}

#[test]
fn a_member_of_a_set_is_online_without_a_connection() {
    let test = Test::new();
    let ben = test.hold("c1", "ben");
    assert_eq!(test.try_enter(&ben, "ben", "x/a", update("ben", (1, 0), "")), Ok(true), "has come online");
    assert_eq!(test.try_enter(&ben, "ben", "x/b", update("ben", (2, 0), "")), Ok(false));
    assert!(test.fanout.state.lock().is_present(&user("ben")));
    test.change(|sets, now| sets.close(&ben, now));
    let state = test.fanout.state.lock();
    assert!(!state.is_present(&user("ben")) && state.departures.contains(&user("ben")));
}

#[test]
fn subscribers_of_one_place_share_the_encoding_of_the_set() {
    let test = Test::new();
    let viewers = [test.viewer("ann", "x/a"), test.viewer("ben", "x/a")];
    let lists = viewers.map(|viewer| {
        let Some(Entry { item: Item::Occupants(list), .. }) = take(&viewer.outbox).pop() else {
            panic!("no set")
        };
        list
    });
    assert!(Arc::ptr_eq(&lists[0], &lists[1]));
}

#[test]
fn a_client_may_request_the_set_again() {
    let test = Test::new();
    let mut viewer = test.viewer("ann", "x/a");
    let ben = test.hold("c1", "ben");
    test.enter(&ben, "ben", "x/a", update("ben", (1, 0), ""));
    test.fanout.resend_occupants(viewer.id, &path("x/a"));
    test.fanout.resend_occupants(viewer.id, &path("x/b"));
    assert_eq!(viewer.words(), ["set", "+ben", "set"]);
    test.check(&mut viewer);
}
