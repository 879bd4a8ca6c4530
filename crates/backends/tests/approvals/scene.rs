//! People, a room, and an agent in it whose gateway is the test.

use parking_lot::Mutex;
use parlor_backends::sqlite::{self, Options, Synchronous};
use parlor_engine::hub::HubDependencies;
use parlor_engine::local::{LocalBus, RandomIds};
use parlor_engine::ports::{Clock, Reader, Triage};
use parlor_engine::runs::{ApprovalRequest, GatewayConnectionId, Host, HostCommand, RuleBasedTriage};
use parlor_engine::{Hub, Limits};
use parlor_model::command::{
    AgentRegistration, ApprovalDecision, NewGateway, NewSignIn, NewUser, RoomChanges,
};
use parlor_model::{
    Agent, AgentId, Approval, ApprovalKind, Caller, Command, Device, GatewayId, InputDigest, MemberId,
    Payload, Receipt, Refusal, RoomId, RoomRole, Scope, SecretHash, SiteRole, Time, UserId,
};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU8, Ordering};
use std::time::Duration;
use tokio::sync::watch;

pub struct Scene {
    pub hub: Hub,
    pub reader: Arc<dyn Reader>,
    pub clock: Arc<SetClock>,
    pub room: RoomId,
    pub gateway: Gateway,
    /// Owns the room and the agent.
    pub ann: Caller,
    pub bob: Caller,
    pub cyd: Caller,
    /// In no room.
    pub eve: Caller,
    /// A key of Ann's that may do everything a key may.
    pub key: Caller,
}

impl Scene {
    pub async fn open(directory: &Path) -> Self {
        Self::with(directory, Arc::new(RuleBasedTriage), Limits::default()).await
    }

    pub async fn with(directory: &Path, triage: Arc<dyn Triage>, limits: Limits) -> Self {
        let clock = Arc::new(SetClock(AtomicI64::new(1_800_000_000_000_000)));
        let (hub, reader) = start(directory, &clock, triage, limits);
        let people = People { hub: &hub, made: AtomicU8::new(0) };
        let [ann, bob, cyd, eve] = [
            people.join("ann").await,
            people.join("bob").await,
            people.join("cyd").await,
            people.join("eve").await,
        ];
        let members = [&bob, &cyd].map(|caller| MemberId::User(user(caller))).to_vec();
        let changes = RoomChanges { name: Some("Kitchen".into()), ..RoomChanges::default() };
        let made = hub.execute(&ann, Command::CreateRoom { changes, members }).await;
        let Ok(Receipt::Room(room)) = made else { panic!("{made:?}") };
        let key = Command::CreateKey {
            owner: None,
            name: "script".into(),
            scopes: vec![Scope::Read, Scope::Write, Scope::Agents, Scope::Admin],
            secret: SecretHash([99; 32]),
        };
        let made = hub.execute(&ann, key).await;
        let Ok(Receipt::Key(key)) = made else { panic!("{made:?}") };
        let key = Caller::program(user(&ann), key.id.clone());
        let gateway = Gateway::connect(&hub, &ann).await;
        let (member, role) = (MemberId::Agent(coder()), RoomRole::Member);
        let add = Command::AddMember { room: room.id.clone(), member, role, description: None };
        hub.execute(&ann, add).await.unwrap();
        Self { hub, reader, clock, room: room.id.clone(), gateway, ann, bob, cyd, eve, key }
    }

    /// The hub ends and begins anew; its gateway comes back when the test says so.
    pub async fn restart(self, directory: &Path) -> Self {
        self.hub.close().await;
        drop((self.hub, self.reader));
        let (hub, reader) = start(directory, &self.clock, Arc::new(RuleBasedTriage), Limits::default());
        Self { hub, reader, ..self }
    }

    pub async fn ask(&self, request: &str, timeout: Duration) -> Result<(), Refusal> {
        self.ask_for(request, 1, timeout).await
    }

    pub async fn ask_for(&self, request: &str, input: u8, timeout: Duration) -> Result<(), Refusal> {
        let link = *self.gateway.link.lock();
        let (agent, room) = (&coder(), &self.room);
        let input = (Payload(format!("{{\"n\":{input}}}").into()), InputDigest([input; 32]));
        let (input, digest) = input;
        let (tool, approval_kind) = ("Bash", ApprovalKind::Tool);
        self.hub
            .request_approval(ApprovalRequest {
                link,
                agent,
                room,
                request,
                tool,
                kind: approval_kind,
                input,
                digest,
                timeout,
            })
            .await
    }

    /// What the store has of it.
    pub fn approval(&self, request: &str) -> Option<Approval> {
        let mut found = None;
        self.reader
            .with(&mut |store| {
                found = store.approvals_called(&GatewayId::stored("laptop"), request)?.into_iter().next();
                Ok(())
            })
            .unwrap();
        found
    }

    pub async fn decide(&self, caller: &Caller, approval: &Approval, allow: bool) -> Result<(), Refusal> {
        let approval = approval.id.clone();
        let approval_decision =
            ApprovalDecision { approval, allow, always: false, reason: None, digest: None };
        self.hub.decide_approval(caller, approval_decision).await.map(drop)
    }
}

fn start(
    directory: &Path,
    clock: &Arc<SetClock>,
    triage: Arc<dyn Triage>,
    limits: Limits,
) -> (Hub, Arc<dyn Reader>) {
    let options = Options { synchronous: Synchronous::Off, ..Options::default() };
    let (store, reader) = sqlite::open(directory, options).unwrap();
    let parts = HubDependencies {
        store,
        reader: reader.clone(),
        bus: Arc::new(LocalBus::new(64)),
        clock: clock.clone(),
        ids: Arc::new(RandomIds),
        triage,
        limits,
    };
    (Hub::open(parts).unwrap(), reader)
}

pub fn user(caller: &Caller) -> UserId {
    caller.user().expect("a person").clone()
}

pub fn coder() -> AgentId {
    AgentId::stored("coder")
}

/// Goes as the test sets it.
pub struct SetClock(pub AtomicI64);

impl SetClock {
    pub fn pass(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    pub fn leap(&self, hours: i64) {
        self.0.fetch_add(hours * 3_600_000_000, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Time {
        Time(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

struct People<'a> {
    hub: &'a Hub,
    made: AtomicU8,
}

impl People<'_> {
    async fn join(&self, name: &str) -> Caller {
        let account = NewUser {
            username: name.into(),
            display_name: None,
            role: SiteRole::User,
            password_hash: "hash".into(),
        };
        let created = self.hub.execute(&Caller::OPERATOR, Command::CreateUser(account)).await;
        let Ok(Receipt::User(user)) = created else { panic!("{created:?}") };
        let sign_in = Command::SignIn(NewSignIn {
            user: user.id.clone(),
            verified_password_hash: "hash".into(),
            second: None,
            refresh: SecretHash([self.made.fetch_add(1, Ordering::SeqCst); 32]),
            device: "test".into(),
            address: "here".into(),
            expires_at: Time(i64::MAX),
        });
        let signed_in = self.hub.execute(&Caller::ANONYMOUS, sign_in).await;
        let Ok(Receipt::SignedIn { sign_in, .. }) = signed_in else { panic!("{signed_in:?}") };
        Caller::person(user.id.clone(), sign_in.id.clone())
    }
}

/// A gateway that notes every decision and every turn that reaches it, by whichever of its links.
pub struct Gateway {
    pub link: Mutex<GatewayConnectionId>,
    agent: Mutex<Arc<Agent>>,
    notes: Arc<Notes>,
}

struct Notes(watch::Sender<Vec<(String, String)>>);

impl Host for Notes {
    fn send(&self, order: &HostCommand<'_>) {
        let note = match order {
            HostCommand::Decided { request, decision, .. } => ((*request).into(), decision.as_str().into()),
            HostCommand::StartRun { started, .. } => (started.run.id.to_string(), "work".into()),
            _ => return,
        };
        self.0.send_modify(|heard| heard.push(note));
    }
}

impl Gateway {
    async fn connect(hub: &Hub, owner: &Caller) -> Self {
        let notes = Arc::new(Notes(watch::Sender::new(Vec::new())));
        let (link, agent) = register(hub, owner, "laptop", &notes).await;
        hub.agent_online(link, &agent).await.unwrap();
        Self { link: Mutex::new(link), agent: Mutex::new(agent), notes }
    }

    /// The connection breaks.
    pub async fn lose(&self, hub: &Hub) {
        let link = *self.link.lock();
        hub.gateway_disconnected(link).await;
    }

    /// The same gateway is there again.
    pub async fn come_back(&self, hub: &Hub, owner: &Caller) {
        self.come_back_as(hub, owner, "laptop").await;
    }

    pub async fn come_back_as(&self, hub: &Hub, owner: &Caller, gateway: &str) {
        let (link, agent) = register(hub, owner, gateway, &self.notes).await;
        *self.link.lock() = link;
        hub.agent_online(link, &agent).await.unwrap();
        *self.agent.lock() = agent;
    }

    pub fn heard(&self) -> Vec<(String, String)> {
        self.notes.0.borrow().clone()
    }

    /// Waits for the work that comes as the so-manieth, and gives its turn.
    pub async fn works(&self, times: usize) -> String {
        let mut heard = self.notes.0.subscribe();
        let works = |heard: &Vec<(String, String)>| -> Vec<String> {
            heard.iter().filter(|(_, note)| note == "work").map(|(run, _)| run.clone()).collect()
        };
        let waits = heard.wait_for(|heard| works(heard).len() >= times);
        let heard =
            tokio::time::timeout(Duration::from_secs(60), waits).await.expect("told in time").unwrap();
        works(&heard).swap_remove(times - 1)
    }

    /// Waits for the decision about a request.
    pub async fn hears(&self, request: &str) -> String {
        let mut heard = self.notes.0.subscribe();
        let told = |heard: &Vec<(String, String)>| heard.iter().any(|(known, _)| known == request);
        let waits = heard.wait_for(told);
        let heard =
            tokio::time::timeout(Duration::from_secs(60), waits).await.expect("told in time").unwrap();
        heard.iter().find(|(known, _)| known == request).unwrap().1.clone()
    }
}

async fn register(
    hub: &Hub,
    owner: &Caller,
    gateway: &str,
    notes: &Arc<Notes>,
) -> (GatewayConnectionId, Arc<Agent>) {
    let id = GatewayId::stored(gateway);
    let new = NewGateway { id: id.clone(), device: Device::default(), ephemeral: false };
    hub.execute(owner, Command::ConnectGateway(new)).await.unwrap();
    let link = hub.gateway_connected(&user(owner), id.clone(), false, notes.clone()).unwrap();
    let registration = AgentRegistration {
        gateway: id,
        id: coder(),
        name: "Coder".into(),
        kind: "generic".into(),
        working_directory: None,
        capabilities: Vec::new(),
        model: None,
        slash_commands: None,
        mcp_servers: None,
    };
    let registered = hub.execute(owner, Command::RegisterAgent(registration)).await;
    let Ok(Receipt::Agent { agent, .. }) = registered else { panic!("{registered:?}") };
    (link, agent)
}
