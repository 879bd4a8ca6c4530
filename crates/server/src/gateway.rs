//! The AgentIM door for the machines on which agents live: `/ws/gateway`.

use crate::App;
use crate::auth;
use crate::connection::admission::admit;
use crate::connection::concurrency::ConcurrencyPermit;
use crate::connection::upgrade::{Upgraded, upgrade};
use crate::connection::{AUTH_RECHECK_INTERVAL, Socket, SocketInput, frame};
use crate::http::problem::Problem;
use axum::extract::{Request, State};
use axum::response::Response;
use bytes::Bytes;
use parlor_engine::decide::HUB;
use parlor_engine::fanout::{DisconnectReason, Egress, Outbox, Subscriber};
use parlor_engine::runs::{
    ApprovalRequest, GatewayAnswer, GatewayConnectionId, Host, HostCommand, ReplyRef, RunCompletion,
};
use parlor_model::command::{AgentRegistration, NewGateway};
use parlor_model::{
    ApprovalKind, Caller, Command, ConversationId, Delivery, Device, EntityKind, Epoch, GatewayId,
    LoggedEvent, Message, Payload, Receipt, Refusal, RoomId, RunEvent, Signal, SignalStamp, TaskStatus,
    UserId,
};
use parlor_wire::agentim::egress as common;
use parlor_wire::agentim::gateway::egress::{self, ContextPeer};
use parlor_wire::agentim::gateway::ingress::{self, AgentForm, Auth, GatewayMessage, ReplyTarget, Status};
use parlor_wire::agentim::ingress::FrameError;
use parlor_wire::canonical;
use parlor_wire::events::answers;
use parlor_wire::events::egress::plan_data;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{Notify, mpsc};

/// Larger messages end the connection; smaller ones that are too large are refused and it goes on.
const HARD_LIMIT: usize = 12 * 1024 * 1024;
const AUTH_ATTEMPTS: u32 = 5;

/// A gateway is told what its agents are to do, and nothing else.
pub struct GatewayEgress;

impl Egress for GatewayEgress {
    fn event(&self, _: &LoggedEvent, _: Epoch) -> Option<Bytes> {
        None
    }

    fn room_lost(&self, _: &RoomId, _: &LoggedEvent) -> Option<Bytes> {
        None
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, _: &Signal, _: SignalStamp) -> Option<Bytes> {
        None
    }

    fn disconnect_frame(&self, reason: DisconnectReason) -> Bytes {
        let (code, words, close) = match reason {
            DisconnectReason::TooSlow => ("RATE_LIMITED", "You read too slowly", 1013),
            DisconnectReason::Revoked => ("SESSION_REVOKED", "Your session was revoked", 1008),
            DisconnectReason::ShuttingDown => ("SERVER_SHUTDOWN", "The server is shutting down", 1001),
        };
        frame::together(&[frame::text(&common::error(code, words)), frame::close(close, words)])
    }
}

pub async fn mount(State(app): State<Arc<App>>, request: Request) -> Result<Response, Problem> {
    let shared = app.clone();
    upgrade(&app, request, move |upgraded| converse(shared, upgraded))
}

async fn converse(app: Arc<App>, upgraded: Upgraded) {
    let Upgraded { stream, already_read, counted, mut ongoing } = upgraded;
    let egress = app.gateway_egress.clone();
    let too_slow = egress.disconnect_frame(DisconnectReason::TooSlow);
    let close_timeout = app.config.close_timeout;
    let mut socket = Socket::open(stream, already_read, HARD_LIMIT, app.config.outbox, too_slow).await;
    let deadline = tokio::time::sleep(app.config.auth_timeout);
    tokio::pin!(deadline);
    let outbox = socket.outbox.clone();
    let mut gateway_session =
        GatewaySession { app, guest: Some(counted), signed: None, attempts: 0, outbox: outbox.clone() };
    loop {
        tokio::select! {
            biased;
            () = outbox.closed() => break,
            () = ongoing.stopped() => outbox.close(egress.disconnect_frame(DisconnectReason::ShuttingDown)),
            () = &mut deadline => {
                // Its place is free before it can know that it has to go.
                if gateway_session.guest.take().is_some() {
                    socket.close(4001, "Authentication timeout");
                } else if gateway_session.is_over().await {
                    outbox.close(egress.disconnect_frame(DisconnectReason::Revoked));
                }
                deadline.as_mut().reset(tokio::time::Instant::now() + AUTH_RECHECK_INTERVAL);
            }
            incoming = socket.next() => match incoming {
                // One after the other: what is said of an agent comes after it was registered.
                SocketInput::Text(text) => gateway_session.hear(&text).await,
                SocketInput::Binary => gateway_session.misread(FrameError::Unknown),
                SocketInput::TooLarge => {
                    gateway_session.misread(FrameError::TooLarge);
                    socket.close(1009, "Message exceeds maximum size");
                }
                SocketInput::NotUtf8 => socket.close(1007, "Not UTF-8"),
                SocketInput::Malformed => socket.close(1002, "Malformed frame"),
                SocketInput::Gone => break,
            }
        }
    }
    if let Some(signed) = gateway_session.signed.take() {
        gateway_session.app.hub.disconnect(signed.subscriber.id);
        signed.agents.end(&gateway_session.app).await;
    }
    drop(gateway_session);
    socket.finish(close_timeout).await;
}

/// Whoever hosts agents, as the engine knows it: what it is told goes out as frames.
struct SocketHost {
    outbox: Arc<Outbox>,
}

impl Host for SocketHost {
    fn send(&self, order: &HostCommand<'_>) {
        self.outbox.push(frame::text(&encode(order)));
    }
}

/// Hosts an agent of this very process, which speaks the same frames; ends when it does, or when it does not listen.
pub async fn host_locally(
    app: &App,
    owner: &UserId,
    mut incoming: mpsc::Receiver<String>,
    outgoing: mpsc::Sender<String>,
) -> Result<(), Refusal> {
    let host = Arc::new(ChannelHost { outgoing, receiver_stalled: Notify::new() });
    let gateway = GatewayId::stored(HUB);
    let link = app.hub.gateway_connected(owner, gateway.clone(), true, host.clone())?;
    let agents = GatewayAgents { caller: Caller::OPERATOR, gateway, link };
    loop {
        let text = tokio::select! {
            text = incoming.recv() => text,
            () = host.receiver_stalled.notified() => None,
        };
        let Some(text) = text else { break };
        match ingress::read(&text, &app.config.gateway_frames) {
            Ok(told) => {
                if let Err(refusal) = agents.hear(app, told).await {
                    tracing::debug!(?refusal, "an agent of the hub was refused");
                }
            }
            Err(frame_error) => tracing::warn!(?frame_error, "an agent of the hub is not understood"),
        }
    }
    app.hub.gateway_disconnected(link).await;
    Ok(())
}

/// Within this process frames go through a channel.
struct ChannelHost {
    outgoing: mpsc::Sender<String>,
    receiver_stalled: Notify,
}

impl Host for ChannelHost {
    fn send(&self, order: &HostCommand<'_>) {
        if self.outgoing.try_send(encode(order)).is_err() {
            self.receiver_stalled.notify_one();
        }
    }
}

fn encode(order: &HostCommand<'_>) -> String {
    match order {
        HostCommand::Context { agent, room, members } => {
            let in_room = members.iter().map(|beside| ContextPeer {
                member: &beside.member.member,
                name: &beside.member.name,
                role: beside.member.role.as_str(),
                role_description: beside.member.role_description.as_deref(),
                agent: beside.agent.as_ref().map(|(agent, status)| (agent, status.as_str())),
            });
            egress::room_context(agent, room, &in_room.collect::<Vec<_>>())
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

/// One conversation with one gateway.
struct GatewaySession {
    app: Arc<App>,
    outbox: Arc<Outbox>,
    /// Counts the connection as a stranger's until it says who it is.
    guest: Option<ConcurrencyPermit>,
    signed: Option<AuthenticatedGateway>,
    attempts: u32,
}

struct AuthenticatedGateway {
    subscriber: Subscriber,
    agents: GatewayAgents,
    _counted: ConcurrencyPermit,
}

impl GatewaySession {
    /// Whether the sign-in behind the connection ran out while it was open; everything else is told at once.
    async fn is_over(&self) -> bool {
        let Some(signed) = &self.signed else { return false };
        matches!(self.app.hub.auth_context(&signed.agents.caller).await, Err(Refusal::NotSignedIn))
    }

    fn say(&self, text: &str) {
        self.outbox.push(frame::text(text));
    }

    fn close(&self, code: u16, reason: &str) {
        self.outbox.close(frame::close(code, reason));
    }

    fn misread(&self, frame_error: FrameError) {
        let (code, words) = frame_error.words();
        self.say(&common::error(code, words));
    }

    async fn hear(&mut self, text: &str) {
        let told = match ingress::read(text, &self.app.config.gateway_frames) {
            Ok(told) => told,
            Err(frame_error) => return self.misread(frame_error),
        };
        match (told, &self.signed) {
            (GatewayMessage::Ping { ts }, _) => self.say(&common::pong(&ts)),
            (GatewayMessage::Auth(auth), _) => self.authenticate(auth).await,
            (_, None) => self.close(1008, "Not authenticated"),
            (told, Some(signed)) => {
                if let Err(refusal) = signed.agents.hear(&self.app, told).await {
                    self.say(&egress::refusal(&refusal));
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
            self.say(&common::error("PROTOCOL_VERSION_MISMATCH", &words));
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
        self.say(&egress::not_authenticated(error));
        let nobody = self.guest.is_none() && self.signed.is_none();
        if nobody || self.attempts >= AUTH_ATTEMPTS {
            self.close(1008, "Too many authentication attempts");
        }
    }

    async fn sign_in(&mut self, auth: Auth) -> Result<(), Refusal> {
        let caller = auth::caller(&self.app, &auth.token).await?;
        if let Some(signed) = &self.signed {
            // Again on a live connection: the same person may show a newer proof, and nothing changes.
            let standing = self.app.hub.auth_context(&caller).await?;
            if signed.subscriber.user != standing.user.id {
                return Err(Refusal::NotSignedIn);
            }
            self.say(&egress::authenticated());
            return Ok(());
        }
        let user = caller.user().cloned().ok_or(Refusal::NotSignedIn)?;
        let subscriber = Subscriber {
            id: self.app.hub.viewer_id(),
            user,
            principal: caller.principal.clone(),
            egress: self.app.gateway_egress.clone(),
            outbox: self.outbox.clone(),
            present: false,
        };
        let host = Arc::new(SocketHost { outbox: self.outbox.clone() });
        let agents = GatewayAgents::begin(&self.app, caller.clone(), auth, host).await?;
        let greeting = frame::text(&egress::authenticated());
        match admit(&self.app, &mut self.guest, &caller, subscriber.clone(), greeting).await {
            Ok((_, counted)) => {
                self.attempts = 0;
                self.signed = Some(AuthenticatedGateway { subscriber, agents, _counted: counted });
                Ok(())
            }
            Err(refusal) => {
                agents.end(&self.app).await;
                Err(refusal)
            }
        }
    }
}

/// The agents of one gateway, however its frames come.
pub struct GatewayAgents {
    caller: Caller,
    gateway: GatewayId,
    link: GatewayConnectionId,
}

impl GatewayAgents {
    async fn begin(app: &App, caller: Caller, auth: Auth, host: Arc<dyn Host>) -> Result<Self, Refusal> {
        let gateway = auth.gateway.ok_or(Refusal::NotFound(EntityKind::Gateway))?;
        let ingress::Device { hostname, platform, arch, node_version } = auth.device;
        let new = NewGateway {
            id: gateway.clone(),
            device: Device { hostname, platform, arch, runtime: node_version },
            ephemeral: auth.ephemeral,
        };
        app.hub.execute(&caller, Command::ConnectGateway(new)).await?;
        let owner = caller.user().cloned().ok_or(Refusal::NotSignedIn)?;
        match app.hub.gateway_connected(&owner, gateway.clone(), auth.by_room, host) {
            Ok(link) => Ok(Self { caller, gateway, link }),
            Err(refusal) => {
                let gone = Command::DisconnectGateway { gateway };
                // One that seems connected is never forgotten, and anybody could make as many as they like.
                let _ = app.hub.execute(&caller, gone).await;
                Err(refusal)
            }
        }
    }

    /// The connection is over; the gateway may have come back by another one.
    async fn end(self, app: &App) {
        app.hub.gateway_disconnected(self.link).await;
        if !app.hub.is_connected(&self.gateway) {
            let gone = Command::DisconnectGateway { gateway: self.gateway };
            // The store may not take it now; who is connected is known without it.
            let _ = app.hub.execute(&self.caller, gone).await;
        }
    }

    async fn hear(&self, app: &App, told: GatewayMessage) -> Result<(), Refusal> {
        let (hub, link) = (&app.hub, self.link);
        match told {
            GatewayMessage::Register(form) => self.register(app, form).await,
            GatewayMessage::Unregister { agent } => {
                hub.agent_offline(link, &agent).await;
                Ok(())
            }
            GatewayMessage::Chunk { reply, chunk } => {
                hub.publish_chunk(reply_ref(link, &reply)?, &chunk).await
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
                hub.complete_reply(reply_ref(link, &reply)?, finished).await
            }
            GatewayMessage::Resume { agent, room, run } => hub.resume(link, &agent, &room, &run).await,
            GatewayMessage::Added { agent, room, run, added } => {
                hub.injection_accepted(link, &agent, &room, &run, &added).await
            }
            GatewayMessage::Status { agent, status, queue_depth } => {
                hub.report_status(link, &agent, status_of(status), queue_depth).await;
                Ok(())
            }
            GatewayMessage::Terminal { agent, room, data } => {
                hub.terminal(link, &agent, room.as_ref(), &data);
                Ok(())
            }
            GatewayMessage::Auth(_) | GatewayMessage::Ping { .. } => Ok(()),
            GatewayMessage::RunEvent { agent, room, event: RunEvent::Plan(plan), .. } => {
                let told = Payload(plan_data(&plan).to_string().into());
                hub.update_plan(link, &agent, room.as_ref(), told, plan.state).await
            }
            GatewayMessage::RunEvent { agent, room, event: RunEvent::Questions(asked), .. } => {
                let room = room.or_else(|| hub.room_of(&agent)).ok_or(Refusal::NotFound(EntityKind::Room))?;
                let input = answers::to_payload(&asked);
                let asking = ApprovalRequest {
                    link,
                    agent: &agent,
                    room: &room,
                    request: &asked.id,
                    tool: "ask_user",
                    kind: ApprovalKind::Questions,
                    digest: canonical::digest(&input).ok_or(Refusal::Invalid(Vec::new()))?,
                    input,
                    timeout: Duration::MAX,
                };
                hub.request_approval(asking).await
            }
            GatewayMessage::RunEvent { agent, room, event, .. } => {
                hub.run_event(&self.caller, link, &agent, room.as_ref(), event).await
            }
            GatewayMessage::TaskUpdate { task, status, result } => {
                let task = task.ok_or(Refusal::NotFound(EntityKind::Task))?;
                let status = TaskStatus::parse(&status);
                let status = status.ok_or(Refusal::invalid("status", "is not one of a task"))?;
                hub.report_task(&self.caller, link, task, status, result).await
            }
            GatewayMessage::Permission(form) => {
                let room = form.room.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
                let digest = canonical::digest(&form.input).ok_or(Refusal::Invalid(Vec::new()))?;
                let timeout = form.timeout_ms.map_or(Duration::MAX, Duration::from_millis);
                let asking = ApprovalRequest {
                    link,
                    agent: &form.agent,
                    room,
                    request: &form.request,
                    tool: &form.tool,
                    kind: ApprovalKind::Tool,
                    input: form.input,
                    digest,
                    timeout,
                };
                hub.request_approval(asking).await
            }
            GatewayMessage::Answer(ingress::RelayedAnswer { kind, agent, room, request, body }) => {
                hub.relay_answer(link, GatewayAnswer { kind, agent, room, request, body }).await
            }
        }
    }

    async fn register(&self, app: &App, form: AgentForm) -> Result<(), Refusal> {
        // What lives in the hub was made by it; only what it understands after a slash is known better by itself.
        let own = match self.caller == Caller::OPERATOR {
            true => {
                let agent = app.hub.hosted_agent(&form.id, &self.gateway).await?;
                let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
                if agent.host.slash_commands == form.slash_commands {
                    return app.hub.agent_online(self.link, &agent).await;
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
        let command = match own {
            Some(owner) => Command::HostAgent { owner, new: registration },
            None => Command::RegisterAgent(registration),
        };
        match app.hub.execute(&self.caller, command).await? {
            Receipt::Agent { agent, .. } => app.hub.agent_online(self.link, &agent).await,
            Receipt::Dismissed(agent) => {
                app.hub.dismiss(self.link, &agent);
                Ok(())
            }
            _ => Ok(()),
        }
    }
}

/// Where a piece of a reply belongs; an id that cannot be one is of nothing.
fn reply_ref(link: GatewayConnectionId, from: &ReplyTarget) -> Result<ReplyRef<'_>, Refusal> {
    let room = from.room.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
    let reply = from.message.as_ref().ok_or(Refusal::NotFound(EntityKind::Message))?;
    Ok(ReplyRef { link, agent: &from.agent, room, reply, run: from.run.as_ref() })
}

fn status_of(status: Status) -> parlor_model::AgentStatus {
    match status {
        Status::Online => parlor_model::AgentStatus::Online,
        Status::Offline => parlor_model::AgentStatus::Offline,
        Status::Busy => parlor_model::AgentStatus::Busy,
        Status::Error => parlor_model::AgentStatus::Error,
    }
}
