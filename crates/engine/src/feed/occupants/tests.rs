//! Tests of presence sets. A subscriber that applies the received changes to the received set always has the set that
//! another query returns, and receives no change that does not apply.

use super::directory::{AgentFacts, UserFacts};
use super::sets::{Access, Hold};
use super::*;
use crate::Limits;
use crate::feed::subscribe::{Subscribed, Subscription, Topics};
use crate::feed::*;
use bytes::Bytes;
use parlor_model::{
    AgentId, Destination, Epoch, Event, LoggedEvent, MemberChange, MemberId, OccupantChange, OccupantSource,
    Payload, PresentUser, Principal, Refusal, RoomId, Seq, SignInId, Signal, Time,
};
use std::collections::{BTreeMap, BTreeSet, HashMap};
use std::task::{Context, Waker};
use std::time::Duration;
use tokio::time::Instant;

const OUTBOX: OutboxLimits = OutboxLimits { bytes: 1 << 24, buffers: 1 << 16 };
const LOBBY: &str = "room/lobby";
const EVERYONE: &str = "x/everyone";

struct Test {
    fanout: Fanout,
    seq: u64,
    /// Stands for the store: facts about each user, with the agents that are online.
    stored: HashMap<UserId, UserFacts>,
}

/// A subscriber that keeps a presence set from the items that it receives.
struct Viewer {
    id: SubscriberId,
    user: UserId,
    place: Path,
    outbox: Arc<Outbox>,
    set: Option<BTreeMap<(Box<str>, Box<str>), OccupantSource>>,
    /// Words of the received items, such as `+ann`, `*ann`, `-ann` and `set`.
    words: Vec<String>,
}

/// Takes the queued items, without waiting.
fn take(outbox: &Outbox) -> Vec<Entry> {
    let mut entries = Vec::new();
    {
        let taken = std::pin::pin!(outbox.take(&mut entries, usize::MAX));
        let _ = taken.poll(&mut Context::from_waker(Waker::noop()));
    }
    entries
}

fn user(id: &str) -> UserId {
    UserId::stored(id)
}

fn path(place: &str) -> Path {
    Path::stored(place)
}

fn principal(id: &str) -> Principal {
    Principal::Person { user: user(id), sign_in: SignInId::stored(format!("sign-in-of-{id}")) }
}

fn update(client: &str, order: (u64, u64), data: &str) -> OccupantUpdate {
    OccupantUpdate {
        client: client.into(),
        id: format!("{}:{}", order.0, order.1).into(),
        order: Some(order),
        data: (!data.is_empty()).then(|| Payload(data.into())),
        agents: Vec::new(),
    }
}

fn facts(username: &str, rooms: &[&str], agents: &[(&str, &[&str])]) -> UserFacts {
    let ids = |rooms: &[&str]| rooms.iter().map(|room| RoomId::stored(*room)).collect::<BTreeSet<_>>();
    let agent = |(name, in_rooms): &(&str, &[&str])| {
        let known = AgentFacts { name: (*name).into(), description: "helps".into(), rooms: ids(in_rooms) };
        (AgentId::stored(*name), known)
    };
    UserFacts { username: username.into(), rooms: ids(rooms), agents: agents.iter().map(agent).collect() }
}

impl Test {
    fn new() -> Self {
        Self::with(Limits::default())
    }

    fn with(limits: Limits) -> Self {
        let fanout = Fanout::new(Epoch(1), Seq(0), &limits, Arc::new(crate::local::SystemClock));
        fanout.state.lock().occupants.users_place = Some(path(EVERYONE));
        Self { fanout, seq: 0, stored: HashMap::new() }
    }

    fn subscriber(
        &self,
        id: &str,
        present: bool,
        enters_places: bool,
        kinds: Kinds,
    ) -> (SubscriberId, Arc<Outbox>) {
        let outbox = Arc::new(Outbox::new(OUTBOX));
        let subscriber = Subscriber {
            id: self.fanout.next_subscriber_id(),
            user: user(id),
            principal: principal(id),
            outbox: outbox.clone(),
            codec: Codec::new(0),
            kinds,
            order: Order::PerRoom,
            present,
            enters_places,
            only_follows: false,
        };
        let (id, reservation) = (subscriber.id, self.fanout.reserve(&subscriber.user, None));
        assert!(self.fanout.connect(&reservation, subscriber, true, Bytes::new()).is_some());
        (id, outbox)
    }

    /// A connection from which the hub derives members.
    fn online(&self, id: &str) -> SubscriberId {
        let connected = self.subscriber(id, true, false, Kinds::NONE).0;
        self.load();
        connected
    }

    /// Installs the stored facts that were requested.
    fn load(&self) {
        while let Some(read) = self.fanout.begin_read() {
            let wanted = |(user, facts): (&UserId, &UserFacts)| {
                let is_read = read.users.contains(user) || read.owners && !facts.agents.is_empty();
                is_read.then(|| (user.clone(), facts.clone()))
            };
            self.fanout.install(&read, self.stored.iter().filter_map(wanted).collect(), false);
        }
    }

    fn viewer(&self, id: &str, place: &str) -> Viewer {
        let (subscriber, outbox) = self.subscriber(id, true, true, Kinds::PRESENCE);
        self.load();
        let place = path(place);
        let viewer = Viewer { id: subscriber, user: user(id), place, outbox, set: None, words: Vec::new() };
        self.open(&viewer);
        viewer
    }

    fn open(&self, viewer: &Viewer) {
        let rooms = viewer.place.room();
        let topics = match &rooms {
            Some(room) => Topics::Rooms { rooms: std::slice::from_ref(room), following: None },
            None => Topics::Path { path: &viewer.place, by_role: false },
        };
        let reservation = self.fanout.reserve(&viewer.user, None);
        let subscription = Subscription {
            id: viewer.id,
            topics,
            kinds: Kinds::PRESENCE,
            since: None,
            resync: None,
            opened: None,
            live: None,
        };
        assert!(matches!(self.fanout.subscribe(&reservation, &subscription), Subscribed::Live));
    }

    fn hold(&self, connection: &str, id: &str) -> Hold {
        self.fanout.state.lock().occupants.sets.hold(connection, &user(id), &principal(id)).unwrap()
    }

    fn try_enter(&self, hold: &Hold, id: &str, place: &str, update: OccupantUpdate) -> Result<bool, Refusal> {
        let reservation = self.fanout.reserve(&user(id), None);
        let entered =
            self.fanout.enter(&reservation, &user(id), hold, &path(place), Access::ByMembership, update);
        entered.expect("no event was published since the reservation")
    }

    fn enter(&self, hold: &Hold, id: &str, place: &str, update: OccupantUpdate) {
        self.try_enter(hold, id, place, update).unwrap();
    }

    fn change(&self, change: impl FnOnce(&mut PresenceSets, Time) -> Vec<Changed>) {
        let state = &mut *self.fanout.state.lock();
        let changes = change(&mut state.occupants.sets, self.fanout.clock.now());
        self.fanout.publish_occupants(state, changes);
    }

    fn leave(&self, hold: &Hold, place: &str, update: OccupantUpdate) {
        self.change(|sets, now| sets.leave(hold, &path(place), update, now).into_iter().collect());
    }

    fn lose(&self, hold: &Hold) {
        self.fanout.state.lock().occupants.sets.lose(hold);
    }

    fn publish(&mut self, event: Event) {
        self.seq += 1;
        self.fanout.publish(&[LoggedEvent { seq: Seq(self.seq), at: Time(0), event }]);
    }

    fn change_member(&mut self, room: &str, change: MemberChange) {
        let room = Arc::new(crate::feed::tests::room(room));
        self.publish(Event::MembersChanged { room, change, members: Arc::new([]) });
    }

    /// The set as a query returns it for a place without subscribers: its derived members are computed anew.
    fn query(&self, viewer: &Viewer) -> BTreeMap<(Box<str>, Box<str>), OccupantSource> {
        let (rooms, kept) = {
            let state = &mut *self.fanout.state.lock();
            let facts = state.occupants.directory.user(&viewer.user);
            let rooms = facts.map(|facts| facts.rooms.clone()).unwrap_or_default();
            (rooms, state.occupants.derived.remove(&viewer.place))
        };
        let occupants = self.fanout.occupants_for(&viewer.place, &viewer.user, &rooms);
        if let Some(kept) = kept {
            self.fanout.state.lock().occupants.derived.insert(viewer.place.clone(), kept);
        }
        occupants.iter().map(|occupant| (key(occupant), occupant.source.clone())).collect()
    }

    #[track_caller]
    fn check(&self, viewer: &mut Viewer) {
        viewer.read();
        assert_eq!(viewer.set.as_ref(), Some(&self.query(viewer)), "{} in {}", viewer.user, viewer.place);
    }
}

fn key(occupant: &Occupant) -> (Box<str>, Box<str>) {
    (occupant.connection.clone(), occupant.client.clone())
}

impl Viewer {
    /// Applies the received items. Each change applies to the set: an entering member is not there, a changing or
    /// leaving member is.
    fn read(&mut self) {
        for entry in take(&self.outbox) {
            match entry.item {
                Item::Occupants(list) => {
                    let members = list.value.occupants.iter();
                    self.set =
                        Some(members.map(|occupant| (key(occupant), occupant.source.clone())).collect());
                    self.words.push("set".into());
                }
                Item::Signal(signal) => {
                    let Signal::Occupant { change, occupant, place } = &signal.value.0 else { continue };
                    assert_eq!(*place, self.place);
                    let set = self.set.as_mut().expect("the set precedes its changes");
                    let (sign, was_there) = match change {
                        OccupantChange::Entered => ('+', false),
                        OccupantChange::Updated => ('*', true),
                        OccupantChange::Left => ('-', true),
                    };
                    assert_eq!(set.contains_key(&key(occupant)), was_there, "{change:?} of {occupant:?}");
                    match change {
                        OccupantChange::Left => drop(set.remove(&key(occupant))),
                        _ => drop(set.insert(key(occupant), occupant.source.clone())),
                    }
                    self.words.push(format!("{sign}{}", occupant.client));
                }
                _ => {}
            }
        }
    }

    /// Words of the items received since the last call.
    fn words(&mut self) -> Vec<String> {
        self.read();
        std::mem::take(&mut self.words)
    }

    /// The derived member of a user.
    fn derived(&mut self, id: &str) -> Option<PresentUser> {
        self.read();
        match self.set.as_ref()?.get(&(Occupant::HUB.into(), id.into()))? {
            OccupantSource::Derived(user) => Some(user.clone()),
            OccupantSource::Client { .. } => None,
        }
    }
}

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
            (lobby.words(), other.words());
            test.publish(event());
            assert_eq!(lobby.words(), ["-ben"], "{:?}", event());
            assert_eq!(other.words().len(), usize::from(from_other), "{:?}", event());
            test.change(|sets, now| sets.close(&ben, now));
            (lobby.words(), other.words());
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
    test.fanout.resend_occupants(&[viewer.id], &path("x/a"));
    test.fanout.resend_occupants(&[viewer.id], &path("x/b"));
    assert_eq!(viewer.words(), ["set", "+ben", "set"]);
    test.check(&mut viewer);
}

#[test]
fn a_set_opened_during_concurrent_changes_has_no_gap_and_no_duplicate() {
    let test = Test::new();
    let mut viewers = std::thread::scope(|scope| {
        for connection in ["c1", "c2", "c3"] {
            let test = &test;
            scope.spawn(move || {
                let hold = test.hold(connection, "ben");
                for number in 0..300 {
                    let client = format!("{}", number % 7);
                    match number % 3 {
                        2 => test.leave(&hold, "x/a", update(&client, (number, 0), "")),
                        _ => {
                            test.enter(&hold, "ben", "x/a", update(&client, (number, 0), &number.to_string()))
                        }
                    }
                }
            });
        }
        (0..40).map(|_| test.viewer("ann", "x/a")).collect::<Vec<_>>()
    });
    for viewer in &mut viewers {
        test.check(viewer);
    }
}

#[test]
fn the_received_set_and_changes_equal_the_set_of_a_query() {
    let mut rng = parlor_seed::rng();
    for _ in 0..parlor_seed::cases(60) {
        run_random_changes(&mut rng);
    }
}

const NAMES: [&str; 4] = ["ann", "ben", "cat", "dan"];
const PLACES: [&str; 4] = [LOBBY, "room/attic", EVERYONE, "x/a"];

fn run_random_changes(rng: &mut parlor_seed::Rng) {
    let mut test = Test::new();
    for name in NAMES {
        let rooms = ["lobby", "attic"].into_iter().filter(|_| rng.below(2) == 0).collect::<Vec<_>>();
        test.stored.insert(user(name), facts(name, &rooms, &[]));
    }
    let mut viewers = Vec::new();
    let mut online: Vec<SubscriberId> = Vec::new();
    let mut holds: Vec<(Hold, &str)> = Vec::new();
    for step in 0..120 {
        let pick =
            |rng: &mut parlor_seed::Rng, from: &[&'static str]| from[rng.below(from.len() as u64) as usize];
        match rng.below(12) {
            0 | 1 => viewers.push(test.viewer(pick(rng, &NAMES), pick(rng, &PLACES))),
            2 => online.push(test.online(pick(rng, &NAMES))),
            3 if !online.is_empty() => {
                test.fanout.disconnect(online.swap_remove(rng.below(online.len() as u64) as usize))
            }
            4 => drop(test.fanout.end_grace_periods(Instant::now() + Duration::from_secs(60))),
            5 => {
                let name = pick(rng, &NAMES);
                holds.push((test.hold(&format!("c{step}"), name), name));
            }
            6 | 7 | 8 if !holds.is_empty() => {
                let (hold, name) = &holds[rng.below(holds.len() as u64) as usize];
                let (place, client) = (pick(rng, &PLACES), pick(rng, &NAMES));
                let change = update(client, (rng.below(120), 0), &step.to_string());
                // A connection whose members the hub has ended is refused.
                match rng.below(3) {
                    0 => test.leave(hold, place, change),
                    _ => drop(test.try_enter(hold, name, place, change)),
                }
            }
            9 if !holds.is_empty() => {
                let (hold, _) = holds.swap_remove(rng.below(holds.len() as u64) as usize);
                match rng.below(3) {
                    0 => test.change(|sets, now| sets.close(&hold, now)),
                    1 => test.change(|sets, now| sets.leave_place(&hold, &path(LOBBY), now)),
                    _ => test.lose(&hold),
                }
            }
            10 => {
                let (name, room) = (pick(rng, &NAMES), pick(rng, &["lobby", "attic"]));
                let member = MemberId::User(user(name));
                let is_added = rng.below(2) == 0;
                let rooms = &mut test.stored.get_mut(&user(name)).unwrap().rooms;
                match is_added {
                    true => rooms.insert(RoomId::stored(room)),
                    false => rooms.remove(&RoomId::stored(room)),
                };
                let change =
                    if is_added { MemberChange::Added(member) } else { MemberChange::Removed(member) };
                test.change_member(room, change);
                // A removed member receives nothing more.
                let is_open = |viewer: &Viewer| {
                    let topic = match viewer.place.room() {
                        Some(room) => Destination::Room(room),
                        None => Destination::Path(viewer.place.clone()),
                    };
                    test.fanout.is_in(viewer.id, &topic)
                };
                viewers.retain(is_open);
            }
            _ => {
                let name = pick(rng, &NAMES);
                let agents = [("bot", ["lobby", "attic"])];
                let known = test.stored[&user(name)].clone();
                let rooms: Vec<&str> = known.rooms.iter().map(RoomId::as_str).collect();
                if known.agents.is_empty() && test.stored.values().all(|facts| facts.agents.is_empty()) {
                    let agents = agents.each_ref().map(|(name, rooms)| (*name, &rooms[..]));
                    test.stored.insert(user(name), facts(name, &rooms, &agents));
                    test.fanout.agent_came_online(&user(name));
                    test.load();
                } else if !known.agents.is_empty() {
                    test.stored.insert(user(name), facts(name, &rooms, &[]));
                    test.fanout.agent_went_offline(&AgentId::stored("bot"));
                }
            }
        }
        for viewer in &mut viewers {
            test.check(viewer);
        }
    }
}
