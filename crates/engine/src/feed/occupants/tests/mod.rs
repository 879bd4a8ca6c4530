//! Tests of presence sets. A subscriber that applies the received changes to the received set always has the set that
//! another query returns, and receives no change that does not apply.

mod derived;
mod members;
mod random;

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
    /// Facts about each user and the agents that are online, in place of a store.
    stored: HashMap<UserId, UserFacts>,
}

/// Members by connection and client id.
type ReceivedSet = BTreeMap<(Box<str>, Box<str>), OccupantSource>;

/// A subscriber that keeps a presence set from the items that it receives.
struct Viewer {
    id: SubscriberId,
    user: UserId,
    place: Path,
    outbox: Arc<Outbox>,
    set: Option<ReceivedSet>,
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
        let known = AgentFacts {
            name: (*name).into(),
            description: "helps".into(),
            rooms: ids(in_rooms),
            names: Default::default(),
        };
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
        self.limited_subscriber(id, present, enters_places, kinds, true)
    }

    fn limited_subscriber(
        &self,
        id: &str,
        present: bool,
        enters_places: bool,
        kinds: Kinds,
        receives_events: bool,
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
        assert!(self.fanout.connect(&reservation, subscriber, receives_events, Bytes::new()).is_some());
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
    /// Applies the received items. Asserts that an entering member is absent from the set, and that a changing or
    /// leaving member is present.
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
