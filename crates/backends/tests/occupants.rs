//! Presence sets on a SQLite store: permissions, revocation, derived members and the end of grace periods.

use bytes::Bytes;
use parlor_backends::sqlite::{self, Options, Synchronous};
use parlor_engine::feed::{
    Codec, Encoding, Interest, Item, Kinds, NewSession, OccupantHistory, OccupantUpdate, Open, Order, Outbox,
    OutboxLimits, Session, Since,
};
use parlor_engine::hub::HubDependencies;
use parlor_engine::local::{LocalBus, RandomIds, SystemClock};
use parlor_engine::runs::{GatewayAbilities, Host, HostCommand, RuleBasedTriage};
use parlor_engine::{Hub, Limits};
use parlor_model::command::{
    AddMember, AgentProfile, CreateAgent, CreateRoom, CreateSignIn, CreateUser, NewUser, RemoveMember,
    RoomChanges, SignedIn,
};
use parlor_model::{
    AgentId, Caller, GatewayId, Grant, GrantEntry, MemberId, Occupant, OccupantChange, OccupantSource,
    Operation, Path, Payload, PresentUser, Refusal, Resource, RoomId, RoomRole, SecretHash, Signal, SiteRole,
    Time,
};
use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

struct Test {
    hub: Hub,
    _directory: tempfile::TempDir,
}

impl Test {
    fn open() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let options = Options { synchronous: Synchronous::Off, ..Options::default() };
        let (store, reader) = sqlite::open(directory.path(), options).unwrap();
        let hub = Hub::open(HubDependencies {
            store,
            reader,
            bus: Arc::new(LocalBus::new(64)),
            clock: Arc::new(SystemClock),
            ids: Arc::new(RandomIds),
            triage: Arc::new(RuleBasedTriage),
            // A grace period that has always ended when the loop looks for it.
            limits: Limits { occupant_grace: Duration::ZERO, ..Limits::default() },
        });
        Self { hub: hub.unwrap(), _directory: directory }
    }

    async fn user(&self, username: &str) -> Caller {
        let account = NewUser {
            username: username.into(),
            display_name: None,
            role: SiteRole::User,
            password_hash: "hash".into(),
        };
        let user = self.hub.execute(&Caller::OPERATOR, CreateUser { account }).await.unwrap();
        let sign_in = CreateSignIn {
            user: user.id.clone(),
            verified_password_hash: "hash".into(),
            second: None,
            refresh: SecretHash([username.as_bytes()[0]; 32]),
            device: "test".into(),
            address: "here".into(),
            expires_at: Time(i64::MAX),
        };
        let SignedIn { sign_in, .. } = self.hub.execute(&Caller::ANONYMOUS, sign_in).await.unwrap();
        Caller::person(user.id.clone(), sign_in.id.clone())
    }

    async fn room(&self, owner: &Caller, others: &[&Caller]) -> RoomId {
        let changes = RoomChanges { name: Some("Lobby".into()), ..RoomChanges::default() };
        let create = CreateRoom { changes, members: Vec::new() };
        let room = self.hub.execute(owner, create).await.unwrap().id.clone();
        for other in others {
            self.add(owner, &room, MemberId::User(other.user().unwrap().clone())).await;
        }
        room
    }

    async fn add(&self, owner: &Caller, room: &RoomId, member: MemberId) {
        let add = AddMember { room: room.clone(), member, role: RoomRole::Member, description: None };
        self.hub.execute(owner, add).await.unwrap();
    }

    async fn session(&self, caller: &Caller, enters_places: bool) -> (Session, Arc<Outbox>) {
        let outbox = Arc::new(Outbox::new(OutboxLimits { bytes: 1 << 20, buffers: 4096 }));
        let new = NewSession {
            outbox: outbox.clone(),
            encoding: ENCODING,
            present: true,
            enters_places,
            greeting: Bytes::new(),
        };
        let (session, ..) = self.hub.session(caller, new, |_| Ok(())).await.unwrap();
        (session, outbox)
    }

    async fn viewer(&self, caller: &Caller, room: &RoomId) -> Viewer {
        let (session, outbox) = self.session(caller, true).await;
        let (interest, since) = (Interest::Room(room.clone()), Since::Now);
        session.open(Open { interest, since, encoding: ENCODING, opened: None, live: None }).await.unwrap();
        Viewer { _session: session, outbox, set: BTreeMap::new() }
    }
}

const ENCODING: Encoding = Encoding { codec: Codec::new(0), kinds: Kinds::PRESENCE, order: Order::PerRoom };

/// A subscriber that keeps the presence set of a room.
struct Viewer {
    _session: Session,
    outbox: Arc<Outbox>,
    set: BTreeMap<(Box<str>, Box<str>), Arc<Occupant>>,
}

impl Viewer {
    /// Applies received items until the set has this state.
    async fn until(&mut self, reached: impl Fn(&BTreeMap<(Box<str>, Box<str>), Arc<Occupant>>) -> bool) {
        loop {
            let mut entries = Vec::new();
            self.outbox.take(&mut entries, 99).await;
            for entry in entries {
                match entry.item {
                    Item::Occupants(list) => {
                        let members = list.value.occupants.iter();
                        self.set = members.map(|member| (key(member), member.clone())).collect();
                    }
                    Item::Signal(signal) => {
                        let Signal::Occupant { change, occupant, .. } = &signal.value.0 else { continue };
                        match change {
                            OccupantChange::Left => drop(self.set.remove(&key(occupant))),
                            _ => drop(self.set.insert(key(occupant), occupant.clone())),
                        }
                    }
                    _ => {}
                }
            }
            if reached(&self.set) {
                return;
            }
        }
    }

    async fn until_clients(&mut self, clients: &[&str]) {
        self.until(|set| set.keys().map(|(_, client)| &**client).eq(clients.iter().copied())).await;
    }
}

fn key(occupant: &Occupant) -> (Box<str>, Box<str>) {
    (occupant.connection.clone(), occupant.client.clone())
}

fn present(occupant: &Occupant) -> &PresentUser {
    match &occupant.source {
        OccupantSource::Derived(user) => user,
        OccupantSource::Client { .. } => panic!("not derived: {occupant:?}"),
    }
}

fn update(client: &str, number: u64) -> OccupantUpdate {
    OccupantUpdate {
        client: client.into(),
        id: number.to_string().into(),
        order: Some((number, 0)),
        data: Some(Payload("1".into())),
        agents: Vec::new(),
    }
}

fn limited(caller: &Caller, place: &Path, operations: &[Operation]) -> Caller {
    let operations = operations.iter().copied().collect();
    let grant = Grant::new([GrantEntry { resource: Resource::Exactly(place.clone()), operations }]);
    caller.clone().limited(Arc::new(grant))
}

#[tokio::test(flavor = "multi_thread")]
async fn a_member_of_a_room_sees_its_own_presence_and_leaves_when_it_is_removed() {
    let test = Test::open();
    let (ada, ben) = (test.user("ada").await, test.user("ben").await);
    let room = test.room(&ada, &[&ben]).await;
    let place = Path::of_room(&room);
    let (mut ada_sees, mut ben_sees) = (test.viewer(&ada, &room).await, test.viewer(&ben, &room).await);
    let guard = test.hub.resume_presence(&ben, "c1").unwrap();
    guard.enter(&place, update("ben", 1)).await.unwrap();
    ada_sees.until_clients(&["ben"]).await;
    ben_sees.until_clients(&["ben"]).await;
    let (room, member) = (room.clone(), MemberId::User(ben.user().unwrap().clone()));
    test.hub.execute(&ada, RemoveMember { room: room.clone(), member }).await.unwrap();
    ada_sees.until_clients(&[]).await;
    assert_eq!(guard.enter(&place, update("ben", 2)).await, Err(Refusal::NotAMember { room: room.clone() }));
    assert_eq!(test.hub.occupants(&ben, &place).await, Err(Refusal::NotAMember { room }));
    test.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_grant_permits_presence_and_reading_it_apart() {
    let test = Test::open();
    let ada = test.user("ada").await;
    let room = test.room(&ada, &[]).await;
    let other = Path::parse("x/a").unwrap();
    for place in [Path::of_room(&room), other] {
        let enters = limited(&ada, &place, &[Operation::Presence]);
        let reads = limited(&ada, &place, &[Operation::Subscribe, Operation::History]);
        let mut guard = test.hub.resume_presence(&enters, place.as_str()).unwrap();
        guard.enter(&place, update("ada", 1)).await.unwrap();
        assert_eq!(test.hub.occupants(&enters, &place).await, Err(Refusal::Forbidden));
        assert_eq!(test.hub.occupants(&reads, &place).await.unwrap().len(), 1);
        let denied = test.hub.resume_presence(&reads, "reads").unwrap();
        assert_eq!(denied.enter(&place, update("ada", 1)).await, Err(Refusal::Forbidden));
        let all = OccupantHistory { forwards: true, start: None, end: None, cursor: None, limit: 10 };
        let history = |caller: Caller| {
            let (hub, place, all) = (test.hub.clone(), place.clone(), all.clone());
            async move { hub.presence_history(&caller, &place, all).await }
        };
        assert_eq!(history(enters.clone()).await, Err(Refusal::Forbidden));
        // Without the right, the members leave.
        guard.set_caller(&reads).await.unwrap();
        assert_eq!(test.hub.occupants(&reads, &place).await.unwrap(), []);
        let records = history(reads.clone()).await.unwrap();
        let changes: Vec<_> = records.iter().map(|record| record.change).collect();
        assert_eq!(changes, [OccupantChange::Entered, OccupantChange::Left]);
    }
    let without = test.hub.resume_presence(&ada, "without").unwrap();
    let path = Path::parse("x/a").unwrap();
    assert_eq!(without.enter(&path, update("ada", 1)).await, Err(Refusal::Forbidden));
    test.hub.close().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn members_leave_after_the_grace_period_or_when_their_connection_is_closed() {
    let test = Test::open();
    let ada = test.user("ada").await;
    let room = test.room(&ada, &[]).await;
    let place = Path::of_room(&room);
    let mut viewer = test.viewer(&ada, &room).await;
    for is_closed in [true, false] {
        let guard = test.hub.resume_presence(&ada, "c1").unwrap();
        guard.enter(&place, update("ada", 1)).await.unwrap();
        viewer.until_clients(&["ada"]).await;
        match is_closed {
            true => guard.close(),
            false => drop(guard),
        }
        viewer.until_clients(&[]).await;
    }
    test.hub.close().await;
}

/// A gateway that ignores its commands.
struct Gateway;

impl Host for Gateway {
    fn send(&self, _: HostCommand) {}
}

#[tokio::test(flavor = "multi_thread")]
async fn users_and_agents_of_other_protocols_are_members_of_their_rooms() {
    let test = Test::open();
    let (ada, ben) = (test.user("ada").await, test.user("ben").await);
    let room = test.room(&ada, &[&ben]).await;
    let coder = AgentId::parse("coder").unwrap();
    let profile = AgentProfile {
        name: Some("Coder".into()),
        description: Some("writes code".into()),
        ..AgentProfile::default()
    };
    let create = CreateAgent { id: coder.clone(), profile, subscriptions: Vec::new() };
    let agent = test.hub.execute(&ada, create).await.unwrap().agent;
    test.add(&ada, &room, MemberId::Agent(coder.clone())).await;

    let ben_connected = test.session(&ben, false).await;
    let mut viewer = test.viewer(&ada, &room).await;
    let (ada_id, ben_id) = (ada.user().unwrap().clone(), ben.user().unwrap().clone());
    viewer.until_clients(&[ben_id.as_str()]).await;
    assert_eq!(&*present(viewer.set.values().next().unwrap()).username, "ben");

    let hosting = test.hub.hosting();
    let gateway = GatewayId::parse("gateway").unwrap();
    let connection =
        hosting.gateway_connected(&ada_id, gateway, GatewayAbilities::ALL, Arc::new(Gateway)).unwrap();
    hosting.agent_online(connection, &agent).await.unwrap();
    viewer.until(|set| set.len() == 2).await;
    let of_ada = |set: &BTreeMap<(Box<str>, Box<str>), Arc<Occupant>>| {
        present(&set[&(Occupant::HUB.into(), ada_id.as_str().into())]).clone()
    };
    let member = of_ada(&viewer.set);
    assert_eq!((member.online, &*member.agents[0].name, member.rooms), (false, "Coder", vec![room.clone()]));
    let listed = test.hub.occupants(&ada, &Path::of_room(&room)).await.unwrap();
    assert_eq!(listed.len(), 2);

    let ada_connected = test.session(&ada, false).await;
    viewer.until(|set| of_ada(set).online).await;
    assert_eq!(of_ada(&viewer.set).agents.len(), 1);
    hosting.gateway_disconnected(connection).await;
    viewer.until(|set| of_ada(set).agents.is_empty()).await;
    drop((ada_connected, ben_connected));
    viewer.until_clients(&[]).await;
    test.hub.close().await;
}
