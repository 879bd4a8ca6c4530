//! Test fixture: a hub with users, a room, and an agent whose gateway is simulated by the test.

use parking_lot::Mutex;
use parlor_backends::sqlite::{self, Options, Synchronous};
use parlor_engine::hub::HubDependencies;
use parlor_engine::local::{LocalBus, RandomIds};
use parlor_engine::ports::{Clock, Reader, Triage};
use parlor_engine::runs::{
    ApprovalRequest, GatewayAbilities, GatewayConnectionId, Host, HostCommand, RuleBasedTriage,
};
use parlor_engine::{Hub, Limits};
use parlor_model::command::{
    AddMember, AgentRegistration, ConnectGateway, CreateKey, CreateRoom, CreateSignIn, CreateUser,
    DecideApproval, NewUser, RegisterAgent, Registered, RoomChanges, SignedIn,
};
use parlor_model::{
    Agent, AgentId, Approval, ApprovalSubject, Caller, Decision, Device, GatewayId, InputDigest, MemberId,
    Payload, Refusal, RoomId, RoomRole, RunContext, Scope, SecretHash, SiteRole, Time, UserId,
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
    /// Owner of the room and of the agent.
    pub ann: Caller,
    pub bob: Caller,
    pub cyd: Caller,
    /// User without any room.
    pub eve: Caller,
    /// API key of Ann with the scopes read, write, agents and admin.
    pub key: Caller,
}

impl Scene {
    pub async fn open(directory: &Path) -> Self {
        Self::with(directory, Arc::new(RuleBasedTriage), Limits::default()).await
    }

    pub async fn with(directory: &Path, triage: Arc<dyn Triage>, limits: Limits) -> Self {
        let clock = Arc::new(SetClock(AtomicI64::new(1_800_000_000_000_000)));
        let (hub, reader) = start(directory, &clock, triage, limits);
        let users = Users { hub: &hub, sign_ins: AtomicU8::new(0) };
        let [ann, bob, cyd, eve] = [
            users.join("ann").await,
            users.join("bob").await,
            users.join("cyd").await,
            users.join("eve").await,
        ];
        let members = [&bob, &cyd].map(|caller| MemberId::User(user(caller))).to_vec();
        let changes = RoomChanges { name: Some("Kitchen".into()), ..RoomChanges::default() };
        let room = hub.execute(&ann, CreateRoom { changes, members }).await.unwrap();
        let key = CreateKey {
            owner: None,
            name: "script".into(),
            scopes: vec![Scope::Read, Scope::Write, Scope::Agents, Scope::Admin],
            secret: SecretHash([99; 32]),
        };
        let key = hub.execute(&ann, key).await.unwrap();
        let key = Caller::program(user(&ann), key.id.clone());
        let gateway = Gateway::connect(&hub, &ann).await;
        let (member, role) = (MemberId::Agent(coder()), RoomRole::Member);
        let add = AddMember { room: room.id.clone(), member, role, description: None };
        hub.execute(&ann, add).await.unwrap();
        Self { hub, reader, clock, room: room.id.clone(), gateway, ann, bob, cyd, eve, key }
    }

    /// Restarts the hub on the same data. The gateway stays disconnected until the test reconnects it.
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
        let connection = *self.gateway.connection.lock();
        let (agent, room) = (&coder(), &self.room);
        let input = (Payload(format!("{{\"n\":{input}}}").into()), InputDigest([input; 32]));
        let (input, digest) = input;
        self.hub
            .hosting()
            .request_approval(ApprovalRequest {
                connection,
                agent,
                context: &RunContext::Room(room.clone()),
                request,
                tool: "Bash",
                is_own_tool: false,
                subject: ApprovalSubject::Tool(input),
                digest,
                timeout,
            })
            .await
    }

    /// First stored approval that the gateway `laptop` requested under this name.
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
        let command = DecideApproval { approval, allow, always: false, reason: None, digest: None };
        self.hub.execute(caller, command).await.map(drop)
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
    caller.user().expect("the caller is a user").clone()
}

pub fn coder() -> AgentId {
    AgentId::stored("coder")
}

/// Clock that the test controls. Each reading advances it by a microsecond.
pub struct SetClock(pub AtomicI64);

impl SetClock {
    pub fn advance(&self, seconds: i64) {
        self.0.fetch_add(seconds * 1_000_000, Ordering::SeqCst);
    }

    pub fn jump(&self, hours: i64) {
        self.0.fetch_add(hours * 3_600_000_000, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Time {
        Time(self.0.fetch_add(1, Ordering::SeqCst))
    }
}

struct Users<'a> {
    hub: &'a Hub,
    sign_ins: AtomicU8,
}

impl Users<'_> {
    async fn join(&self, name: &str) -> Caller {
        let account = NewUser {
            username: name.into(),
            display_name: None,
            role: SiteRole::User,
            password_hash: "hash".into(),
        };
        let user = self.hub.execute(&Caller::OPERATOR, CreateUser { account }).await.unwrap();
        let sign_in = CreateSignIn {
            user: user.id.clone(),
            verified_password_hash: "hash".into(),
            second: None,
            refresh: SecretHash([self.sign_ins.fetch_add(1, Ordering::SeqCst); 32]),
            device: "test".into(),
            address: "here".into(),
            expires_at: Time(i64::MAX),
        };
        let SignedIn { sign_in, .. } = self.hub.execute(&Caller::ANONYMOUS, sign_in).await.unwrap();
        Caller::person(user.id.clone(), sign_in.id.clone())
    }
}

/// Returns the result that the gateway of these tests records for a decision on a tool.
pub fn result(decision: &Decision) -> &'static str {
    match decision {
        Decision::Allowed { .. } | Decision::AllowedByRule => "allow",
        Decision::Denied { .. } | Decision::Withdrawn | Decision::Answered { .. } => "deny",
        Decision::Expired => "timeout",
    }
}

/// A gateway that records every decision and every started run it receives, on any of its connections.
pub struct Gateway {
    pub connection: Mutex<GatewayConnectionId>,
    agent: Mutex<Arc<Agent>>,
    records: Arc<Records>,
}

struct Records(watch::Sender<Vec<(String, String)>>);

impl Host for Records {
    fn send(&self, command: HostCommand) {
        let record = match command {
            HostCommand::Decided { request, decision, .. } => (request.into(), result(&decision).into()),
            HostCommand::StartRun { started, .. } => (started.run.id.to_string(), "work".into()),
            _ => return,
        };
        self.0.send_modify(|received| received.push(record));
    }
}

impl Gateway {
    async fn connect(hub: &Hub, owner: &Caller) -> Self {
        let records = Arc::new(Records(watch::Sender::new(Vec::new())));
        let (connection, agent) = register(hub, owner, "laptop", &records).await;
        hub.hosting().agent_online(connection, &agent).await.unwrap();
        Self { connection: Mutex::new(connection), agent: Mutex::new(agent), records }
    }

    /// Drops the connection of the gateway.
    pub async fn lose(&self, hub: &Hub) {
        let connection = *self.connection.lock();
        hub.hosting().gateway_disconnected(connection).await;
    }

    /// Reconnects the same gateway.
    pub async fn reconnect(&self, hub: &Hub, owner: &Caller) {
        self.reconnect_as(hub, owner, "laptop").await;
    }

    pub async fn reconnect_as(&self, hub: &Hub, owner: &Caller, gateway: &str) {
        let (connection, agent) = register(hub, owner, gateway, &self.records).await;
        *self.connection.lock() = connection;
        hub.hosting().agent_online(connection, &agent).await.unwrap();
        *self.agent.lock() = agent;
    }

    pub fn received(&self) -> Vec<(String, String)> {
        self.records.0.borrow().clone()
    }

    /// Waits until the gateway has received `times` runs and returns the id of the last of them.
    pub async fn receives_run(&self, times: usize) -> String {
        let mut received = self.records.0.subscribe();
        let run_ids = |received: &Vec<(String, String)>| -> Vec<String> {
            received.iter().filter(|(_, record)| record == "work").map(|(run, _)| run.clone()).collect()
        };
        let waits = received.wait_for(|received| run_ids(received).len() >= times);
        let received = tokio::time::timeout(Duration::from_secs(60), waits)
            .await
            .expect("the gateway receives it before the timeout")
            .unwrap();
        run_ids(&received).swap_remove(times - 1)
    }

    /// Waits for the first record about a request or a run: the decision, or `work` for a started run.
    pub async fn receives(&self, request: &str) -> String {
        let mut received = self.records.0.subscribe();
        let is_decided =
            |received: &Vec<(String, String)>| received.iter().any(|(known, _)| known == request);
        let waits = received.wait_for(is_decided);
        let received = tokio::time::timeout(Duration::from_secs(60), waits)
            .await
            .expect("the gateway receives it before the timeout")
            .unwrap();
        received.iter().find(|(known, _)| known == request).unwrap().1.clone()
    }
}

async fn register(
    hub: &Hub,
    owner: &Caller,
    gateway: &str,
    records: &Arc<Records>,
) -> (GatewayConnectionId, Arc<Agent>) {
    let id = GatewayId::stored(gateway);
    let connect = ConnectGateway { id: id.clone(), device: Device::default(), ephemeral: false };
    hub.execute(owner, connect).await.unwrap();
    let connection = hub
        .hosting()
        .gateway_connected(&user(owner), id.clone(), GatewayAbilities::NONE, records.clone())
        .unwrap();
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
        has_lasting_id: true,
    };
    let registered = hub.execute(owner, RegisterAgent { registration }).await;
    let Ok(Registered::Agent(agent)) = registered else { panic!("{registered:?}") };
    (connection, agent)
}
