//! AgentIM protocol for gateways, which host agents: the WebSocket sessions of `/ws/gateway`, and agents in
//! this process.
//!
//! Decodes frames to calls of the scheduler, and encodes its commands for agents.

use crate::App;
use crate::auth;
use crate::connection::admission::admit;
use crate::connection::concurrency::ConcurrencyPermit;
use crate::connection::upgrade::{Upgraded, upgrade};
use crate::connection::{Socket, SocketInput, frame};
use crate::encoders::{ConnectionEncoder, Encoder, GATEWAY};
use crate::http::problem::Problem;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use parlor_engine::HUB;
use parlor_engine::feed::{DisconnectReason, NewSession, Outbox, Session};
use parlor_engine::runs::{
    ApprovalRequest, GatewayAnswer, GatewayConnectionId, Host, HostCommand, ReplyRef, RunCompletion,
};
use parlor_model::command::{
    AgentRegistration, ConnectGateway, DisconnectGateway, HostAgent, RegisterAgent, Registered,
};
use parlor_model::{
    ApprovalKind, ApprovalSubject, Caller, ConversationId, Device, EntityKind, Field, GatewayId, Refusal,
    RunEvent, TaskStatus, UserId,
};
use parlor_wire::agentim::egress as common;
use parlor_wire::agentim::gateway::egress::{self, ContextPeer};
use parlor_wire::agentim::gateway::ingress::{self, AgentForm, Auth, GatewayMessage, ReplyTarget, Status};
use parlor_wire::agentim::ingress::FrameError;
use parlor_wire::canonical;
use parlor_wire::events::answers;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Maximum bytes of a message. A larger one ends the connection; one above `gateway_frames` only is rejected.
const MAX_MESSAGE_BYTES: usize = 12 * 1024 * 1024;
const MAX_AUTH_ATTEMPTS: u32 = 5;

/// Encoder of gateways: they receive commands for their agents, and no items.
pub struct GatewayEncoder;

impl Encoder for GatewayEncoder {
    fn disconnect(&self, reason: DisconnectReason) -> Bytes {
        let (code, words, close) = match reason {
            DisconnectReason::TooSlow => ("RATE_LIMITED", "The client reads too slowly", 1013),
            DisconnectReason::Revoked => ("SESSION_REVOKED", "Your session was revoked", 1008),
            DisconnectReason::ShuttingDown => ("SERVER_SHUTDOWN", "The server is shutting down", 1001),
        };
        frame::concat(&[frame::text(&common::error(code, words)), frame::close(close, words)])
    }
}

pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let shared = app.clone();
    upgrade(&app, request, move |upgraded| run_session(shared, upgraded))
}

async fn run_session(app: Arc<App>, upgraded: Upgraded) {
    let Upgraded { stream, already_read, permit, mut socket_guard } = upgraded;
    let encoder = ConnectionEncoder::of(&app.encoders, GATEWAY);
    let close_timeout = app.config.close_timeout;
    let mut socket = Socket::open(stream, already_read, MAX_MESSAGE_BYTES, app.config.outbox, encoder).await;
    let deadline = tokio::time::sleep(app.config.auth_timeout);
    tokio::pin!(deadline);
    let outbox = socket.outbox.clone();
    let mut gateway_session = GatewaySession {
        app,
        unauthenticated_permit: Some(permit),
        authenticated: None,
        attempts: 0,
        outbox: outbox.clone(),
    };
    loop {
        tokio::select! {
            biased;
            () = outbox.closed() => break,
            () = socket_guard.stopped() => outbox.disconnect(DisconnectReason::ShuttingDown),
            () = &mut deadline, if gateway_session.authenticated.is_none() => {
                // Release the permit before the client learns that it timed out.
                gateway_session.unauthenticated_permit.take();
                socket.close(4001, "Authentication timeout");
            }
            incoming = socket.next() => match incoming {
                // Frames are handled in order: a frame about an agent must follow its registration.
                SocketInput::Text(text) => gateway_session.handle_frame(&text).await,
                SocketInput::Binary => gateway_session.reject_frame(FrameError::Unknown),
                SocketInput::TooLarge => {
                    gateway_session.reject_frame(FrameError::TooLarge);
                    socket.close(1009, "Message exceeds maximum size");
                }
                SocketInput::NotUtf8 => socket.close(1007, "Not UTF-8"),
                SocketInput::Malformed => socket.close(1002, "Malformed frame"),
                SocketInput::Gone => break,
            }
        }
    }
    if let Some(authenticated) = gateway_session.authenticated.take() {
        authenticated.session.end();
        authenticated.agents.end(&gateway_session.app).await;
    }
    drop(gateway_session);
    socket.finish(close_timeout).await;
}

/// Gateway behind a WebSocket: commands of the engine are sent as frames.
struct SocketHost {
    outbox: Arc<Outbox>,
}

impl Host for SocketHost {
    fn send(&self, command: &HostCommand<'_>) {
        self.outbox.push(frame::text(&encode(command)));
    }
}

/// Connects an agent of this process, which exchanges the same frames over channels. Returns when the agent
/// closes its channel or stops reading.
pub async fn host_locally(
    app: &App,
    owner: &UserId,
    mut incoming: mpsc::Receiver<String>,
    outgoing: mpsc::Sender<String>,
) -> Result<(), Refusal> {
    let host = Arc::new(ChannelHost { outgoing, receiver_stalled: Notify::new() });
    let gateway = GatewayId::stored(HUB);
    let connection = app.hub.gateway_connected(owner, gateway.clone(), true, host.clone())?;
    let agents = GatewayAgents { caller: Caller::OPERATOR, gateway, connection };
    loop {
        let text = tokio::select! {
            text = incoming.recv() => text,
            () = host.receiver_stalled.notified() => None,
        };
        let Some(text) = text else { break };
        match ingress::read(&text, &app.config.gateway_frames) {
            Ok(message) => {
                if let Err(refusal) = agents.handle(app, message).await {
                    tracing::debug!(?refusal, "the hub rejected a frame of a local agent");
                }
            }
            Err(frame_error) => tracing::warn!(?frame_error, "failed to decode a frame of a local agent"),
        }
    }
    app.hub.gateway_disconnected(connection).await;
    Ok(())
}

/// Gateway in this process: commands of the engine are sent through a channel.
struct ChannelHost {
    outgoing: mpsc::Sender<String>,
    receiver_stalled: Notify,
}

impl Host for ChannelHost {
    fn send(&self, command: &HostCommand<'_>) {
        if self.outgoing.try_send(encode(command)).is_err() {
            self.receiver_stalled.notify_one();
        }
    }
}

fn encode(command: &HostCommand<'_>) -> String {
    match command {
        HostCommand::Context { agent, room, members } => {
            let peers = members.iter().map(|peer| ContextPeer {
                member: &peer.member.member,
                name: &peer.member.name,
                role: peer.member.role.as_str(),
                role_description: peer.member.role_description.as_deref(),
                agent: peer.agent.as_ref().map(|(agent, status)| (agent, status.as_str())),
            });
            egress::room_context(agent, room, &peers.collect::<Vec<_>>())
        }
        HostCommand::StartRun { started, earlier } => egress::send_to_agent(started, earlier),
        HostCommand::Inject { agent, room, run, added, message } => {
            egress::add_to_run(agent, room, run, added, message)
        }
        HostCommand::Stop { agent, room } => egress::stop_agent(agent, Some(room)),
        HostCommand::Inquiry { agent, room, by, request, inquiry } => {
            egress::inquiry(agent, *room, by, request, inquiry)
        }
        HostCommand::GatewayRequest { request, gateway_request } => {
            egress::gateway_request(request, gateway_request)
        }
        HostCommand::Rewind { agent, room, message } => egress::rewind_agent(agent, room, message),
        HostCommand::Ended { agent, room, run, outcome } => egress::run_ended(agent, room, run, outcome),
        HostCommand::Resumed { agent, room, run, heard } => egress::run_resumed(agent, room, run, *heard),
        HostCommand::Remove { agent } => egress::remove_agent(agent),
        HostCommand::Decided { agent, request, kind: ApprovalKind::Tool, decision } => {
            egress::permission_response(agent, request, decision)
        }
        HostCommand::Decided { agent, request, kind: ApprovalKind::Questions, decision } => {
            egress::question_response(agent, request, decision)
        }
    }
}

/// Session of one gateway connection.
struct GatewaySession {
    app: Arc<App>,
    outbox: Arc<Outbox>,
    /// Counts the connection towards its address until the gateway authenticates.
    unauthenticated_permit: Option<ConcurrencyPermit>,
    authenticated: Option<AuthenticatedGateway>,
    attempts: u32,
}

struct AuthenticatedGateway {
    session: Session,
    agents: GatewayAgents,
    _permit: ConcurrencyPermit,
}

impl GatewaySession {
    fn send_text(&self, text: &str) {
        self.outbox.push(frame::text(text));
    }

    fn close(&self, code: u16, reason: &str) {
        self.outbox.close(frame::close(code, reason));
    }

    fn reject_frame(&self, frame_error: FrameError) {
        let (code, words) = frame_error.words();
        self.send_text(&common::error(code, words));
    }

    async fn handle_frame(&mut self, text: &str) {
        let message = match ingress::read(text, &self.app.config.gateway_frames) {
            Ok(message) => message,
            Err(frame_error) => return self.reject_frame(frame_error),
        };
        match (message, &self.authenticated) {
            (GatewayMessage::Ping { ts }, _) => self.send_text(&common::pong(&ts)),
            (GatewayMessage::Auth(auth), _) => self.authenticate(auth).await,
            (_, None) => self.close(1008, "Not authenticated"),
            (message, Some(authenticated)) => {
                if let Err(refusal) = authenticated.agents.handle(&self.app, message).await {
                    self.send_text(&egress::refusal(&refusal));
                }
            }
        }
    }

    async fn authenticate(&mut self, auth: Auth) {
        if let Some(version) = auth.version.as_deref().filter(|version| *version != "1") {
            let version: String = version.chars().take(20).collect();
            let words = format!(
                "Protocol version mismatch: gateway={version}, server=1. Please update your gateway."
            );
            self.send_text(&common::error("PROTOCOL_VERSION_MISMATCH", &words));
            return self.close(1008, "Protocol version mismatch");
        }
        let error = match self.sign_in(auth).await {
            Ok(()) => return,
            Err(Refusal::TooManyConnections) => "Too many gateway connections",
            Err(Refusal::AtCapacity | Refusal::Unavailable) => "Server at capacity",
            Err(Refusal::BelongsToAnother(EntityKind::Gateway)) => "Gateway ID belongs to another user",
            Err(_) => "Authentication failed",
        };
        self.attempts += 1;
        self.send_text(&egress::not_authenticated(error));
        let has_no_permit = self.unauthenticated_permit.is_none() && self.authenticated.is_none();
        if has_no_permit || self.attempts >= MAX_AUTH_ATTEMPTS {
            self.close(1008, "Too many authentication attempts");
        }
    }

    async fn sign_in(&mut self, auth: Auth) -> Result<(), Refusal> {
        let caller = auth::caller(&self.app, &auth.token).await?;
        if let Some(authenticated) = &self.authenticated {
            // Repeated authentication: the same user may present a newer token, which changes nothing.
            let auth_context = self.app.hub.auth_context(&caller).await?;
            if *authenticated.session.user() != auth_context.user.id {
                return Err(Refusal::NotSignedIn);
            }
            self.send_text(&egress::authenticated());
            return Ok(());
        }
        let host = Arc::new(SocketHost { outbox: self.outbox.clone() });
        let agents = GatewayAgents::begin(&self.app, caller.clone(), auth, host).await?;
        let greeting = frame::text(&egress::authenticated());
        let new = NewSession { outbox: self.outbox.clone(), encoding: GATEWAY, present: false, greeting };
        match admit(&self.app, &mut self.unauthenticated_permit, &caller, new).await {
            Ok((session, _, permit)) => {
                self.attempts = 0;
                self.authenticated = Some(AuthenticatedGateway { session, agents, _permit: permit });
                Ok(())
            }
            Err(refusal) => {
                agents.end(&self.app).await;
                Err(refusal)
            }
        }
    }
}

/// Handles the frames of one gateway connection, over a WebSocket or in this process.
pub struct GatewayAgents {
    caller: Caller,
    gateway: GatewayId,
    connection: GatewayConnectionId,
}

impl GatewayAgents {
    async fn begin(app: &App, caller: Caller, auth: Auth, host: Arc<dyn Host>) -> Result<Self, Refusal> {
        let gateway = auth.gateway.ok_or(Refusal::NotFound(EntityKind::Gateway))?;
        let ingress::Device { hostname, platform, arch, node_version } = auth.device;
        let connect = ConnectGateway {
            id: gateway.clone(),
            device: Device { hostname, platform, arch, runtime: node_version },
            ephemeral: auth.ephemeral,
        };
        app.hub.execute(&caller, connect).await?;
        let owner = caller.user().cloned().ok_or(Refusal::NotSignedIn)?;
        match app.hub.gateway_connected(&owner, gateway.clone(), auth.by_room, host) {
            Ok(connection) => Ok(Self { caller, gateway, connection }),
            Err(refusal) => {
                let disconnect = DisconnectGateway { gateway };
                // A gateway stored as connected is never cleaned up, so a client could create them without
                // limit.
                let _ = app.hub.execute(&caller, disconnect).await;
                Err(refusal)
            }
        }
    }

    /// Ends the connection, and marks the gateway as disconnected unless it has reconnected already.
    async fn end(self, app: &App) {
        app.hub.gateway_disconnected(self.connection).await;
        if !app.hub.is_connected(&self.gateway) {
            let disconnect = DisconnectGateway { gateway: self.gateway };
            // May fail if the store is unavailable: the scheduler tracks live connections without the store.
            let _ = app.hub.execute(&self.caller, disconnect).await;
        }
    }

    async fn handle(&self, app: &App, message: GatewayMessage) -> Result<(), Refusal> {
        let (hub, connection) = (&app.hub, self.connection);
        match message {
            GatewayMessage::Register(form) => self.register(app, form).await,
            GatewayMessage::Unregister { agent } => {
                hub.agent_offline(connection, &agent).await;
                Ok(())
            }
            GatewayMessage::Chunk { reply, chunk } => {
                hub.publish_chunk(reply_ref(connection, &reply)?, &chunk).await
            }
            GatewayMessage::Complete { reply, text, chunks, conversation, depth, outcome } => {
                let finished = RunCompletion {
                    text: text.map(Into::into),
                    chunks,
                    target: reply.target_agent.clone(),
                    claimed_depth: depth.unwrap_or(0),
                    conversation: conversation.and_then(|id| ConversationId::parse(&id).ok()),
                    outcome,
                };
                hub.complete_reply(reply_ref(connection, &reply)?, finished).await
            }
            GatewayMessage::Resume { agent, room, run } => hub.resume(connection, &agent, &room, &run).await,
            GatewayMessage::Added { agent, room, run, added } => {
                hub.injection_accepted(connection, &agent, &room, &run, &added).await
            }
            GatewayMessage::Status { agent, status, queue_depth } => {
                hub.report_status(connection, &agent, status_of(status), queue_depth).await;
                Ok(())
            }
            GatewayMessage::Terminal { agent, room, data } => {
                hub.terminal(connection, &agent, room.as_ref(), &data);
                Ok(())
            }
            GatewayMessage::Auth(_) | GatewayMessage::Ping { .. } => Ok(()),
            GatewayMessage::RunEvent { agent, room, event: RunEvent::Plan(plan), .. } => {
                hub.update_plan(connection, &agent, room.as_ref(), plan).await
            }
            GatewayMessage::RunEvent { agent, room, event: RunEvent::Questions(questions), .. } => {
                let room = room.or_else(|| hub.room_of(&agent)).ok_or(Refusal::NotFound(EntityKind::Room))?;
                let request = ApprovalRequest {
                    connection,
                    agent: &agent,
                    room: &room,
                    request: &questions.id,
                    tool: "ask_user",
                    is_own_tool: false,
                    digest: answers::digest(&questions.questions).ok_or(Refusal::Invalid(Vec::new()))?,
                    subject: ApprovalSubject::Questions(questions.questions),
                    timeout: Duration::MAX,
                };
                hub.request_approval(request).await
            }
            GatewayMessage::RunEvent { agent, room, event, .. } => {
                hub.run_event(&self.caller, connection, &agent, room.as_ref(), event).await
            }
            GatewayMessage::TaskUpdate { task, status, result } => {
                let task = task.ok_or(Refusal::NotFound(EntityKind::Task))?;
                let status = TaskStatus::parse(&status);
                let status = status.ok_or(Refusal::invalid(Field::Status, "is not a task status"))?;
                hub.report_task(&self.caller, connection, task, status, result).await
            }
            GatewayMessage::Permission(form) => {
                let room = form.room.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
                let digest = canonical::digest(&form.input).ok_or(Refusal::Invalid(Vec::new()))?;
                let timeout = form.timeout_ms.map_or(Duration::MAX, Duration::from_millis);
                let request = ApprovalRequest {
                    connection,
                    agent: &form.agent,
                    room,
                    request: &form.request,
                    tool: &form.tool,
                    is_own_tool: form.is_own_tool(),
                    subject: ApprovalSubject::Tool(form.input),
                    digest,
                    timeout,
                };
                hub.request_approval(request).await
            }
            GatewayMessage::Answer(ingress::RelayedAnswer { kind, agent, room, request, body }) => {
                hub.relay_answer(connection, GatewayAnswer { kind, agent, room, request, body }).await
            }
        }
    }

    async fn register(&self, app: &App, form: AgentForm) -> Result<(), Refusal> {
        // An agent of the hub itself is already stored; only its slash commands may differ from the stored
        // ones.
        let owner = match self.caller == Caller::OPERATOR {
            true => {
                let agent = app.hub.hosted_agent(&form.id, &self.gateway).await?;
                let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
                if agent.host.slash_commands == form.slash_commands {
                    return app.hub.agent_online(self.connection, &agent).await;
                }
                Some(agent.owner)
            }
            false => None,
        };
        let registration = AgentRegistration {
            gateway: self.gateway.clone(),
            id: form.id,
            name: form.name,
            kind: form.kind,
            working_directory: form.working_directory,
            capabilities: form.capabilities,
            model: form.model,
            slash_commands: form.slash_commands,
            mcp_servers: form.mcp_servers,
        };
        let registered = match owner {
            Some(owner) => {
                let hosted = app.hub.execute(&self.caller, HostAgent { owner, registration }).await?;
                Registered::Agent(hosted)
            }
            None => app.hub.execute(&self.caller, RegisterAgent { registration }).await?,
        };
        match registered {
            Registered::Agent(agent) => app.hub.agent_online(self.connection, &agent).await,
            Registered::Dismissed(agent) => {
                app.hub.dismiss(self.connection, &agent);
                Ok(())
            }
        }
    }
}

/// Resolves the target of a reply frame; an invalid room or message id yields a not-found refusal.
fn reply_ref(connection: GatewayConnectionId, from: &ReplyTarget) -> Result<ReplyRef<'_>, Refusal> {
    let room = from.room.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
    let reply = from.message.as_ref().ok_or(Refusal::NotFound(EntityKind::Message))?;
    Ok(ReplyRef { connection, agent: &from.agent, room, reply, run: from.run.as_ref() })
}

fn status_of(status: Status) -> parlor_model::AgentStatus {
    match status {
        Status::Online => parlor_model::AgentStatus::Online,
        Status::Offline => parlor_model::AgentStatus::Offline,
        Status::Busy => parlor_model::AgentStatus::Busy,
        Status::Error => parlor_model::AgentStatus::Error,
    }
}
