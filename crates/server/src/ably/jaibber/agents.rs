//! The agents of a connection: registers them, brings them online, and passes their output to their runs.
//!
//! A separate task handles the agents, so that a connection does not wait for the store.

use super::ConnectionFacts;
use super::conversation::Conversations;
use super::ids::{self, KIND};
use crate::App;
use crate::connection::peer::Peer;
use futures_util::FutureExt;
use futures_util::future::BoxFuture;
use parking_lot::Mutex;
use parlor_engine::feed::{DisconnectReason, Outbox};
use parlor_engine::runs::{GatewayAbilities, GatewayConnectionId, Host, HostCommand};
use parlor_model::command::{
    AddMember, AgentProfile, AgentRegistration, ChangeAgent, ConnectGateway, DisconnectGateway,
    RegisterAgent, Registered,
};
use parlor_model::{
    Agent, AgentId, Caller, Device, EntityKind, GatewayId, MemberId, MessageId, Origin, Position, Refusal,
    RoomId, RoomRole, RunContext, UserId,
};
use parlor_wire::ably::jaibber::AgentEntry;
use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, oneshot};
use tokio::task::JoinHandle;

/// Maximum number of queued requests, and of queued commands of the engine. The hub refuses further requests, and
/// disconnects a connection with too many commands.
const MAX_WAITING: usize = 512;
/// Maximum number of agents of one member.
const MAX_AGENTS: usize = 50;
/// Interval at which the task checks output that waits for a queued run, because no command reports a cancelled run.
const RECHECK_INTERVAL: Duration = Duration::from_secs(1);
/// Maximum length of the description of an agent.
const MAX_DESCRIPTION_CHARS: usize = 2000;

/// Result of an agent's output: the position of its message, if it is stored.
pub type OutputResult = Result<Option<Position>, Refusal>;

/// Output of an agent for one of its replies.
pub enum AgentFrame {
    Typing,
    Chunk(Arc<str>),
    Complete {
        text: Arc<str>,
        claimed_depth: u32,
        claimed_chain: Vec<Box<str>>,
        origin: Box<Origin>,
    },
    Failed {
        reason: Arc<str>,
        origin: Box<Origin>,
    },
    /// The client did not begin a reply before the timeout.
    Unanswered,
}

impl AgentFrame {
    /// Size of the text, in bytes.
    pub fn length(&self) -> usize {
        match self {
            Self::Typing | Self::Unanswered => 0,
            Self::Chunk(text) | Self::Complete { text, .. } => text.len(),
            Self::Failed { reason, .. } => reason.len(),
        }
    }
}

/// Output of an agent, and the receiver of its result.
pub struct Output {
    pub room: RoomId,
    pub agent: AgentId,
    pub reply: MessageId,
    pub frame: AgentFrame,
    pub done: oneshot::Sender<OutputResult>,
}

enum Request {
    Enter {
        caller: Caller,
        room: RoomId,
        agents: Vec<AgentEntry>,
        machine: String,
        done: oneshot::Sender<Result<Vec<AgentId>, Refusal>>,
    },
    Leave {
        room: RoomId,
        done: oneshot::Sender<()>,
    },
    Output(Output),
}

/// Names of the agents that are online through the connection, in lower case.
type Hosted = Arc<Mutex<HashMap<String, AgentId>>>;

/// Handle of the task.
pub struct Agents {
    requests: mpsc::Sender<Request>,
    hosted: Hosted,
    task: JoinHandle<()>,
}

impl Agents {
    pub fn begin(peer: &Peer, facts: &ConnectionFacts<'_>) -> Self {
        let (requests, incoming) = mpsc::channel(MAX_WAITING);
        let (commands, from_hub) = mpsc::channel(MAX_WAITING);
        let hosted = Hosted::default();
        let state = AgentTask {
            app: peer.app.clone(),
            user: facts.user.clone(),
            connection_name: facts.id.into(),
            host: Arc::new(ConnectionHost { commands, outbox: peer.outbox.clone() }),
            hosted: hosted.clone(),
            gateway: None,
            rooms: HashMap::new(),
            conversations: Conversations::default(),
        };
        Self { requests, hosted, task: tokio::spawn(state.run(incoming, from_hub)) }
    }

    /// The agent of this name that is online through the connection.
    pub fn find(&self, name: &str) -> Option<AgentId> {
        self.hosted.lock().get(&name.to_lowercase()).cloned()
    }

    pub async fn enter(
        &self,
        caller: Caller,
        room: RoomId,
        agents: Vec<AgentEntry>,
        machine: String,
    ) -> Result<Vec<AgentId>, Refusal> {
        let (done, entered) = oneshot::channel();
        let request = Request::Enter { caller, room, agents, machine, done };
        self.requests.try_send(request).map_err(|_| Refusal::AtCapacity)?;
        entered.await.unwrap_or(Err(Refusal::Unavailable))
    }

    pub async fn leave(&self, room: RoomId) {
        let (done, left) = oneshot::channel();
        if self.requests.send(Request::Leave { room, done }).await.is_ok() {
            let _ = left.await;
        }
    }

    /// Passes output to the task. The result of a complete reply is known when it is stored.
    pub fn output(
        &self,
        room: RoomId,
        agent: AgentId,
        reply: MessageId,
        frame: AgentFrame,
    ) -> BoxFuture<'static, OutputResult> {
        let (done, result) = oneshot::channel();
        let output = Output { room, agent, reply, frame, done };
        match self.requests.try_send(Request::Output(output)) {
            Ok(()) => async move { result.await.unwrap_or(Err(Refusal::Unavailable)) }.boxed(),
            Err(_) => std::future::ready(Err(Refusal::AtCapacity)).boxed(),
        }
    }

    pub async fn end(self) {
        drop(self.requests);
        let _ = self.task.await;
    }
}

/// Passes the commands of the engine to the task.
struct ConnectionHost {
    commands: mpsc::Sender<HostCommand>,
    outbox: Arc<Outbox>,
}

impl Host for ConnectionHost {
    fn send(&self, command: HostCommand) {
        let is_used = matches!(
            command,
            HostCommand::StartRun { .. }
                | HostCommand::Stop { .. }
                | HostCommand::Ended { .. }
                | HostCommand::Remove { .. }
        );
        // Clients have no frame for the other commands.
        if is_used && self.commands.try_send(command).is_err() {
            self.outbox.disconnect(DisconnectReason::TooSlow);
        }
    }
}

/// The gateway that the connection acts as, once it has entered with an agent.
struct Gateway {
    id: GatewayId,
    connection: GatewayConnectionId,
    caller: Caller,
}

struct AgentTask {
    app: Arc<App>,
    user: UserId,
    connection_name: Box<str>,
    host: Arc<ConnectionHost>,
    hosted: Hosted,
    gateway: Option<Gateway>,
    /// Rooms that the connection has entered with each agent.
    rooms: HashMap<AgentId, HashSet<RoomId>>,
    conversations: Conversations,
}

impl AgentTask {
    async fn run(mut self, mut requests: mpsc::Receiver<Request>, mut commands: mpsc::Receiver<HostCommand>) {
        let mut recheck = tokio::time::interval(RECHECK_INTERVAL);
        loop {
            tokio::select! {
                biased;
                Some(command) = commands.recv() => self.obey(command).await,
                request = requests.recv() => match request {
                    Some(request) => self.handle(request).await,
                    None => break,
                },
                _ = recheck.tick(), if self.conversations.has_waiting() => {
                    if let Some(gateway) = &self.gateway {
                        self.conversations.recheck(&self.app.hub.hosting(), gateway.connection).await;
                    }
                }
            }
        }
        let Some(gateway) = self.gateway else { return };
        self.app.hub.hosting().gateway_disconnected(gateway.connection).await;
        if !self.app.hub.hosting().is_connected(&gateway.id) {
            let disconnect = DisconnectGateway { gateway: gateway.id };
            // May fail if the store is unavailable: the scheduler tracks live connections without the store.
            let _ = self.app.hub.execute(&gateway.caller, disconnect).await;
        }
    }

    async fn handle(&mut self, request: Request) {
        match request {
            Request::Enter { caller, room, agents, machine, done } => {
                let entered = self.enter(caller, &room, agents, &machine).await;
                let _ = done.send(entered);
            }
            Request::Leave { room, done } => {
                self.leave(&room).await;
                let _ = done.send(());
            }
            Request::Output(output) => {
                let Some(gateway) = &self.gateway else {
                    let _ = output.done.send(Err(Refusal::NotFound(EntityKind::Agent)));
                    return;
                };
                let hosting = self.app.hub.hosting();
                self.conversations.output(&hosting, gateway.connection, output).await;
            }
        }
    }

    async fn obey(&mut self, command: HostCommand) {
        let Some(gateway) = &self.gateway else { return };
        let (hosting, connection) = (self.app.hub.hosting(), gateway.connection);
        match command {
            HostCommand::StartRun { started, .. } => {
                self.conversations.started(&hosting, connection, &started.run).await;
            }
            HostCommand::Ended { agent, context: RunContext::Room(room), run, .. } => {
                self.conversations.ended(&hosting, connection, agent, room, &run).await;
            }
            HostCommand::Stop { agent, context } => {
                if let RunContext::Room(room) = &context {
                    self.conversations.stop(agent.clone(), room.clone());
                }
                hosting.confirm_stop(connection, &agent, &context);
            }
            HostCommand::Remove { agent } => {
                self.rooms.remove(&agent);
                self.hosted.lock().retain(|_, hosted| *hosted != agent);
            }
            _ => {}
        }
    }

    async fn enter(
        &mut self,
        caller: Caller,
        room: &RoomId,
        entries: Vec<AgentEntry>,
        machine: &str,
    ) -> Result<Vec<AgentId>, Refusal> {
        let mut entered = Vec::new();
        for entry in entries.iter().take(MAX_AGENTS) {
            let agent = self.registered(&caller, entry, machine).await?;
            self.add_to_room(&caller, room, &agent).await?;
            if let Some(gateway) = &self.gateway
                && !self.rooms.contains_key(&agent.id)
            {
                self.app.hub.hosting().agent_online(gateway.connection, &agent).await?;
            }
            self.rooms.entry(agent.id.clone()).or_default().insert(room.clone());
            self.hosted.lock().insert(entry.agent_name.to_lowercase(), agent.id.clone());
            entered.push(agent.id.clone());
        }
        // An update may name fewer agents than before.
        let others: Vec<AgentId> =
            self.rooms.keys().filter(|agent| !entered.contains(agent)).cloned().collect();
        for agent in others {
            self.leave_with(&agent, room).await;
        }
        Ok(entered)
    }

    /// Creates or updates the agent of this name.
    async fn registered(
        &mut self,
        caller: &Caller,
        entry: &AgentEntry,
        machine: &str,
    ) -> Result<Arc<Agent>, Refusal> {
        let gateway = self.gateway(caller, entry, machine).await?;
        let hub = &self.app.hub;
        let known = hub.hosting().agent_named(&self.user, &entry.agent_name).await?;
        let description: Option<Box<str>> = entry
            .agent_instructions
            .as_deref()
            .map(|text| text.chars().take(MAX_DESCRIPTION_CHARS).collect::<String>().into());
        let is_known = |agent: &Agent| {
            agent.host.gateway.as_ref() == Some(&gateway) && self.rooms.contains_key(&agent.id)
        };
        let agent = match known {
            Some(agent) if is_known(&agent) => Arc::new(agent),
            known => {
                let registration = |id| AgentRegistration {
                    gateway: gateway.clone(),
                    id,
                    name: entry.agent_name.as_str().into(),
                    kind: KIND.into(),
                    working_directory: None,
                    capabilities: Vec::new(),
                    model: None,
                    slash_commands: None,
                    mcp_servers: None,
                    has_lasting_id: true,
                };
                let is_new = known.is_none();
                let id = match known {
                    Some(agent) => agent.id,
                    None => self.app.ably.agent_ids.agent(&self.user, &entry.agent_name)?,
                };
                let first = hub.execute(caller, RegisterAgent { registration: registration(id) }).await;
                let registered = match first {
                    // The id belongs to another user, who may have registered it after the agent was removed.
                    Err(Refusal::BelongsToAnother(_) | Refusal::Forbidden) if is_new => {
                        let id = ids::another_agent(&entry.agent_name)?;
                        hub.execute(caller, RegisterAgent { registration: registration(id) }).await?
                    }
                    first => first?,
                };
                match registered {
                    Registered::Agent(agent) => agent,
                    Registered::Dismissed(_) => return Err(Refusal::HasEnded(EntityKind::Agent)),
                }
            }
        };
        match description.filter(|description| *description != agent.description) {
            Some(description) => {
                let profile = AgentProfile { description: Some(description), ..AgentProfile::default() };
                let change = ChangeAgent { id: agent.id.clone(), profile };
                Ok(hub.execute(caller, change).await?.agent)
            }
            None => Ok(agent),
        }
    }

    /// The gateway of the connection; connects it with the first agent.
    async fn gateway(
        &mut self,
        caller: &Caller,
        entry: &AgentEntry,
        machine: &str,
    ) -> Result<GatewayId, Refusal> {
        if let Some(gateway) = &self.gateway {
            return Ok(gateway.id.clone());
        }
        let hostname: Box<str> = machine.chars().take(255).collect::<String>().into();
        let device = Device { hostname, platform: "".into(), arch: "".into(), runtime: "".into() };
        let connect = |id| ConnectGateway { id, device: device.clone(), ephemeral: true };
        let (hub, own) =
            (&self.app.hub, self.app.ably.agent_ids.gateway(&self.user, &entry.agent_name, machine)?);
        let connected = match hub.execute(caller, connect(own)).await {
            Err(Refusal::BelongsToAnother(EntityKind::Gateway)) => {
                hub.execute(caller, connect(ids::another_gateway()?)).await?
            }
            connected => connected?,
        };
        let id = connected.id.clone();
        let hosting = self.app.hub.hosting();
        let abilities = GatewayAbilities { by_room: true, in_sessions: false };
        let connection = hosting.gateway_connected(&self.user, id.clone(), abilities, self.host.clone())?;
        self.conversations.connection_name = self.connection_name.clone();
        self.gateway = Some(Gateway { id: id.clone(), connection, caller: caller.clone() });
        Ok(id)
    }

    async fn add_to_room(&self, caller: &Caller, room: &RoomId, agent: &Agent) -> Result<(), Refusal> {
        if self.rooms.get(&agent.id).is_some_and(|rooms| rooms.contains(room)) {
            return Ok(());
        }
        let member = MemberId::Agent(agent.id.clone());
        if self.app.hub.hosting().is_member(room, &member).await? {
            return Ok(());
        }
        let add = AddMember { room: room.clone(), member, role: RoomRole::Member, description: None };
        match self.app.hub.execute(caller, add).await {
            Ok(_) | Err(Refusal::AlreadyExists(EntityKind::Member)) => Ok(()),
            Err(refusal) => Err(refusal),
        }
    }

    async fn leave(&mut self, room: &RoomId) {
        for agent in self.rooms.keys().cloned().collect::<Vec<_>>() {
            self.leave_with(&agent, room).await;
        }
    }

    /// Takes an agent offline when the connection has left its last room.
    async fn leave_with(&mut self, agent: &AgentId, room: &RoomId) {
        let Some(rooms) = self.rooms.get_mut(agent) else { return };
        if !rooms.remove(room) || !rooms.is_empty() {
            return;
        }
        self.rooms.remove(agent);
        self.hosted.lock().retain(|_, hosted| hosted != agent);
        if let Some(gateway) = &self.gateway {
            self.app.hub.hosting().agent_offline(gateway.connection, agent).await;
        }
    }
}
