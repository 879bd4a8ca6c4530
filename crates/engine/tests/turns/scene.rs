//! Test fixture: a hub on a store in memory, users, and agents whose gateway is simulated by the test.

use parlor_engine::commands::Command;
use parlor_engine::hub::HubDependencies;
use parlor_engine::local::{LocalBus, RandomIds};
use parlor_engine::ports::{Clock, Reader, Snapshot};
use parlor_engine::runs::{GatewayAbilities, GatewayConnectionId, Host, HostCommand, RuleBasedTriage};
use parlor_engine::{Fault, HUB, Hub, Limits};
use parlor_model::command::{
    AgentProfile, AgentRegistration, BatchReceipt, BatchVerdict, ConnectGateway, CreateAgent, CreateSignIn,
    CreateUser, DecideBatch, FinishRun, HostAgent, NewUser, RegisterAgent, Registered, SignedIn, StartRun,
};
use parlor_model::query::MailPage;
use parlor_model::{
    Agent, AgentId, Caller, DeadLetter, Delivery, Device, Epoch, GatewayId, Mailbox, MessageId,
    NewTurnDecision, Path, Payload, Refusal, Route, Run, RunId, RunOutcome, SecretHash, SessionId, SiteRole,
    Time, TurnDecisionKind, TurnPage, UserId,
};
use parlor_testkit::stores::{MemoryStore, Retention};
use std::future::Future;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};
use std::time::Duration;
use tokio::sync::watch;

/// A Monday at noon.
pub const NOON: Time = Time(1_799_668_800_000_000);
/// Every message is a complete batch.
pub const SINGLE: &str = r#"{"enabled":true,"maxBatchSize":1}"#;
const TIMEOUT: Duration = Duration::from_secs(60);
/// Leaves the processor to the hub between two looks at the store, whose changes no event reports.
const POLL_INTERVAL: Duration = Duration::from_millis(2);

pub struct Scene {
    running: Option<(Hub, Arc<dyn Reader>)>,
    store: MemoryStore,
    limits: Limits,
    pub clock: Arc<SetClock>,
    pub ann: Caller,
    pub bob: Caller,
    /// Site admin.
    pub root: Caller,
    programs: Arc<Programs>,
    connection: Option<GatewayConnectionId>,
}

/// Clock that only moves when the test sets it.
pub struct SetClock(AtomicI64);

impl SetClock {
    pub fn advance(&self, by: Duration) {
        self.0.fetch_add(by.as_micros() as i64, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::SeqCst))
    }
}

/// The gateway of the test: records the runs that it has to start.
struct Programs(watch::Sender<Vec<Arc<Run>>>);

impl Host for Programs {
    fn send(&self, command: HostCommand) {
        if let HostCommand::StartRun { started, .. } = command {
            self.0.send_modify(|runs| runs.push(started.run));
        }
    }
}

impl Scene {
    /// Retries are due at once.
    pub async fn start() -> Self {
        Self::with(Limits { turn_retry_delays: vec![Duration::ZERO; 4], ..Limits::default() }).await
    }

    pub async fn with(limits: Limits) -> Self {
        let mut scene = Self {
            running: None,
            store: MemoryStore::new(Epoch(1), Retention::default()),
            limits,
            clock: Arc::new(SetClock(AtomicI64::new(NOON.0))),
            ann: Caller::ANONYMOUS,
            bob: Caller::ANONYMOUS,
            root: Caller::ANONYMOUS,
            programs: Arc::new(Programs(watch::Sender::new(Vec::new()))),
            connection: None,
        };
        scene.open();
        scene.ann = scene.user("ann", SiteRole::User, 1).await;
        scene.bob = scene.user("bob", SiteRole::User, 2).await;
        scene.root = scene.user("root", SiteRole::Admin, 3).await;
        scene.connect().await;
        scene
    }

    fn open(&mut self) {
        let (store, reader) = self.store.handles();
        let dependencies = HubDependencies {
            store,
            reader: reader.clone(),
            bus: Arc::new(LocalBus::new(64)),
            clock: self.clock.clone(),
            ids: Arc::new(RandomIds),
            triage: Arc::new(RuleBasedTriage),
            limits: self.limits.clone(),
        };
        self.running = Some((Hub::open(dependencies).unwrap(), reader));
    }

    /// Stops the hub and starts it again on the same store. The agents are offline afterwards.
    pub async fn restart(&mut self) {
        self.close().await;
        self.open();
        self.connect().await;
    }

    pub async fn close(&mut self) {
        if let Some((hub, reader)) = self.running.take() {
            hub.close().await;
            drop((hub, reader));
        }
    }

    pub fn hub(&self) -> &Hub {
        &self.running.as_ref().expect("the hub runs except during a restart").0
    }

    async fn user(&self, name: &str, role: SiteRole, refresh: u8) -> Caller {
        let account =
            NewUser { username: name.into(), display_name: None, role, password_hash: "hash".into() };
        let user = self.must(&Caller::OPERATOR, CreateUser { account }).await;
        let sign_in = CreateSignIn {
            user: user.id.clone(),
            verified_password_hash: "hash".into(),
            second: None,
            refresh: SecretHash([refresh; 32]),
            device: "test".into(),
            address: "here".into(),
            expires_at: Time(i64::MAX),
        };
        let SignedIn { sign_in, .. } = self.must(&Caller::ANONYMOUS, sign_in).await;
        Caller::person(user.id.clone(), sign_in.id.clone())
    }

    async fn connect(&mut self) {
        let (id, device) = (GatewayId::stored("laptop"), Device::default());
        self.must(&self.ann, ConnectGateway { id: id.clone(), device, ephemeral: false }).await;
        let host = self.programs.clone();
        let connection =
            self.hub().hosting().gateway_connected(&owner(&self.ann), id, GatewayAbilities::ALL, host);
        self.connection = Some(connection.unwrap());
    }

    /// Creates an agent of Ann with these settings. It is offline.
    pub async fn agent(&self, id: &str, settings: &[(&str, &str)]) {
        let settings =
            settings.iter().map(|(name, json)| ((*name).into(), Payload((*json).into()))).collect();
        let profile = AgentProfile { settings, ..AgentProfile::default() };
        self.must(&self.ann, CreateAgent { id: agent(id), profile, subscriptions: Vec::new() }).await;
        self.register(id).await;
    }

    async fn register(&self, id: &str) -> Arc<Agent> {
        match self.must(&self.ann, RegisterAgent { registration: registration("laptop", id) }).await {
            Registered::Agent(agent) => agent,
            dismissed => panic!("{dismissed:?}"),
        }
    }

    /// Creates an agent of Ann that the hub itself hosts.
    pub async fn hosted_agent(&self, id: &str) -> Arc<Agent> {
        let owner = owner(&self.ann);
        let hosted = HostAgent { owner, registration: registration(HUB, id) };
        self.must(&Caller::OPERATOR, hosted).await
    }

    pub async fn online(&self, id: &str) {
        let agent = self.register(id).await;
        self.came_online(&agent).await;
    }

    /// The gateway of the test reports that a registered agent is online.
    pub async fn came_online(&self, agent: &Agent) {
        let connection = self.connection.expect("the gateway is connected");
        self.hub().hosting().agent_online(connection, agent).await.unwrap();
    }

    pub async fn must<C: Command>(&self, caller: &Caller, command: C) -> C::Receipt {
        match self.hub().execute(caller, command).await {
            Ok(receipt) => receipt,
            Err(refusal) => panic!("{refusal:?}"),
        }
    }

    /// Sends a message from one agent of Ann to another.
    pub async fn send(&self, from: &str, to: &str) -> MessageId {
        self.must(&self.ann, route(from, &format!("agent/{to}"))).await.id
    }

    /// Decides about pending mail of `main` as the hub does after triage.
    pub async fn decide(&self, of: &str, messages: &[&MessageId], verdict: BatchVerdict) -> BatchReceipt {
        let (agent, session) = (agent(of), SessionId::main());
        let messages = messages.iter().copied().cloned().collect();
        self.must(&Caller::OPERATOR, DecideBatch { agent, session, messages, verdict }).await
    }

    /// Queues and starts a run for messages in `main` of an agent that is offline, in place of the scheduler.
    pub async fn begin(&self, of: &str, messages: &[&MessageId]) -> RunId {
        let run = self.decide(of, messages, go()).await.run.expect("a run was queued");
        self.must(&Caller::OPERATOR, StartRun { run: run.clone() }).await;
        run
    }

    pub async fn end(&self, run: &RunId, outcome: RunOutcome) {
        self.must(&Caller::OPERATOR, FinishRun { run: run.clone(), outcome, said: None }).await;
    }

    pub fn read<T>(&self, mut read: impl FnMut(&mut dyn Snapshot) -> Result<T, Fault>) -> T {
        let mut found = None;
        let (_, reader) = self.running.as_ref().expect("the hub runs except during a restart");
        let with = reader.with(&mut |snapshot| {
            found = Some(read(snapshot)?);
            Ok(())
        });
        with.unwrap();
        found.unwrap()
    }

    /// The copy of a message in the agent's own mailbox.
    pub fn copy(&self, of: &str, message: &MessageId) -> Option<Delivery> {
        self.read(|store| store.delivery(&Mailbox::of(agent(of)), message))
    }

    /// Decisions about an agent, oldest first.
    pub fn decisions(&self, of: &str) -> Vec<NewTurnDecision> {
        let page = TurnPage { limit: 1000, before: None, session: None };
        let found = self.read(|store| store.turn_decisions(&[agent(of)], &page));
        found.into_iter().rev().map(|turn| turn.decision).collect()
    }

    pub fn kinds(&self, of: &str) -> Vec<&'static str> {
        self.decisions(of).iter().map(|decision| decision.kind.as_str()).collect()
    }

    pub fn dead_letters(&self) -> Vec<DeadLetter> {
        self.read(|store| store.dead_letters(MailPage { limit: 1000, offset: 0, from: None, to: None }))
    }

    pub fn run(&self, run: &RunId) -> Option<Run> {
        self.read(|store| store.run(run))
    }

    /// Number of runs that the gateway has started.
    pub fn started(&self) -> usize {
        self.programs.0.borrow().len()
    }

    /// Waits until the gateway has to start the run with this number, counted from 0.
    pub async fn starts(&self, number: usize) -> Arc<Run> {
        let mut runs = self.programs.0.subscribe();
        let found = runs.wait_for(|runs| runs.len() > number);
        let found = tokio::time::timeout(TIMEOUT, found).await.expect("the run starts before the timeout");
        found.unwrap()[number].clone()
    }

    /// Waits until this is decided about an agent as often.
    pub async fn decided(&self, of: &str, kind: TurnDecisionKind, times: usize) {
        let count = || self.decisions(of).iter().filter(|decision| decision.kind == kind).count();
        until(async || count() >= times).await;
        assert_eq!(count(), times, "{:?}", self.kinds(of));
    }
}

/// Waits until a condition holds.
pub async fn until<F: Future<Output = bool>>(reached: impl Fn() -> F) {
    let reached = async {
        while !reached().await {
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    };
    tokio::time::timeout(TIMEOUT, reached).await.expect("the condition holds before the timeout");
}

fn registration(gateway: &str, id: &str) -> AgentRegistration {
    AgentRegistration {
        gateway: GatewayId::stored(gateway),
        id: agent(id),
        name: id.into(),
        kind: "command".into(),
        working_directory: None,
        capabilities: Vec::new(),
        model: None,
        slash_commands: None,
        mcp_servers: None,
        has_lasting_id: true,
    }
}

pub fn go() -> BatchVerdict {
    BatchVerdict::Start { reason: "go".into() }
}

pub fn agent(id: &str) -> AgentId {
    AgentId::stored(id)
}

pub fn owner(caller: &Caller) -> UserId {
    caller.user().expect("the caller is a user").clone()
}

pub fn route(from: &str, path: &str) -> Route {
    Route {
        from: from.into(),
        path: Path::parse(path).unwrap(),
        command: "say".into(),
        payload: Payload("{}".into()),
        text: None,
        source: "internal".into(),
        external_id: None,
    }
}

/// Whether the caller gets the refusal of an agent that does not exist.
pub fn is_missing<T>(result: Result<T, Refusal>) -> bool {
    matches!(result, Err(Refusal::NotFound(parlor_model::EntityKind::Agent)))
}
