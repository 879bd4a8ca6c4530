//! Handles the frames of a gateway connection: decodes them to calls of the scheduler.

use crate::App;
use parlor_engine::runs::{
    ApprovalRequest, GatewayAbilities, GatewayAnswer, GatewayConnectionId, Host, ReplyRef, RunCompletion,
};
use parlor_model::command::{
    AgentRegistration, ConnectGateway, DisconnectGateway, HostAgent, RegisterAgent, Registered,
};
use parlor_model::{
    ApprovalSubject, Caller, ConversationId, Device, EntityKind, Field, GatewayId, Refusal, RunEvent,
    TaskStatus,
};
use parlor_wire::agentim::gateway::ingress::{self, AgentForm, Auth, GatewayMessage, ReplyTarget, Status};
use parlor_wire::canonical;
use parlor_wire::events::answers;
use std::sync::Arc;
use std::time::Duration;

/// The agents of one gateway connection, over a WebSocket or in this process.
pub struct GatewayAgents {
    pub caller: Caller,
    pub gateway: GatewayId,
    pub connection: GatewayConnectionId,
    /// Whether the gateway registers its agents under the same ids after a restart. Gateways of AgentIM do not.
    pub has_lasting_ids: bool,
}

impl GatewayAgents {
    pub async fn begin(app: &App, caller: Caller, auth: Auth, host: Arc<dyn Host>) -> Result<Self, Refusal> {
        let gateway = auth.gateway.ok_or(Refusal::NotFound(EntityKind::Gateway))?;
        let ingress::Device { hostname, platform, arch, node_version } = auth.device;
        let connect = ConnectGateway {
            id: gateway.clone(),
            device: Device { hostname, platform, arch, runtime: node_version },
            ephemeral: auth.ephemeral,
        };
        app.hub.execute(&caller, connect).await?;
        let owner = caller.user().cloned().ok_or(Refusal::NotSignedIn)?;
        let abilities = GatewayAbilities { by_room: auth.by_room, in_sessions: auth.by_room };
        match app.hub.hosting().gateway_connected(&owner, gateway.clone(), abilities, host) {
            Ok(connection) => Ok(Self { caller, gateway, connection, has_lasting_ids: auth.by_room }),
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
    pub async fn end(self, app: &App) {
        app.hub.hosting().gateway_disconnected(self.connection).await;
        if !app.hub.hosting().is_connected(&self.gateway) {
            let disconnect = DisconnectGateway { gateway: self.gateway };
            // May fail if the store is unavailable: the scheduler tracks live connections without the store.
            let _ = app.hub.execute(&self.caller, disconnect).await;
        }
    }

    pub async fn handle(&self, app: &App, message: GatewayMessage) -> Result<(), Refusal> {
        let (hub, connection) = (app.hub.hosting(), self.connection);
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
                    claimed_chain: Vec::new(),
                    origin: None,
                    conversation: conversation.and_then(|id| ConversationId::parse(&id).ok()),
                    outcome,
                };
                hub.complete_reply(reply_ref(connection, &reply)?, finished).await
            }
            GatewayMessage::Resume { agent, context, run } => {
                hub.resume(connection, &agent, &context, &run).await
            }
            GatewayMessage::Added { agent, context, run, added } => {
                hub.injection_accepted(connection, &agent, &context, &run, &added).await
            }
            GatewayMessage::Status { agent, status, queue_depth } => {
                hub.report_status(connection, &agent, status_of(status), queue_depth).await;
                Ok(())
            }
            GatewayMessage::Terminal { agent, context, data } => {
                hub.terminal(connection, &agent, context.as_ref(), &data);
                Ok(())
            }
            GatewayMessage::Auth(_) | GatewayMessage::Ping { .. } => Ok(()),
            GatewayMessage::RunEvent { agent, context, event: RunEvent::Plan(plan), .. } => {
                hub.update_plan(connection, &agent, context.as_ref(), plan).await
            }
            GatewayMessage::RunEvent { agent, context, event: RunEvent::Questions(questions), .. } => {
                let context = context.or_else(|| hub.context_of(&agent));
                let context = context.ok_or(Refusal::NotFound(EntityKind::Room))?;
                let request = ApprovalRequest {
                    connection,
                    agent: &agent,
                    context: &context,
                    request: &questions.id,
                    tool: "ask_user",
                    is_own_tool: false,
                    digest: answers::digest(&questions.questions).ok_or(Refusal::Invalid(Vec::new()))?,
                    subject: ApprovalSubject::Questions(questions.questions),
                    timeout: Duration::MAX,
                };
                hub.request_approval(request).await
            }
            GatewayMessage::RunEvent { agent, context, event, .. } => {
                hub.run_event(&self.caller, connection, &agent, context.as_ref(), event).await
            }
            GatewayMessage::TaskUpdate { task, status, result } => {
                let task = task.ok_or(Refusal::NotFound(EntityKind::Task))?;
                let status = TaskStatus::parse(&status);
                let status = status.ok_or(Refusal::invalid(Field::Status, "is not a task status"))?;
                hub.report_task(&self.caller, connection, task, status, result).await
            }
            GatewayMessage::Permission(form) => {
                let context = form.context.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
                let digest = canonical::digest(&form.input).ok_or(Refusal::Invalid(Vec::new()))?;
                let timeout = form.timeout_ms.map_or(Duration::MAX, Duration::from_millis);
                let request = ApprovalRequest {
                    connection,
                    agent: &form.agent,
                    context,
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
                let agent = app.hub.hosting().hosted_agent(&form.id, &self.gateway).await?;
                let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
                if agent.host.slash_commands == form.slash_commands {
                    return app.hub.hosting().agent_online(self.connection, &agent).await;
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
            has_lasting_id: self.has_lasting_ids,
        };
        let registered = match owner {
            Some(owner) => {
                let hosted = app.hub.execute(&self.caller, HostAgent { owner, registration }).await?;
                Registered::Agent(hosted)
            }
            None => app.hub.execute(&self.caller, RegisterAgent { registration }).await?,
        };
        match registered {
            Registered::Agent(agent) => app.hub.hosting().agent_online(self.connection, &agent).await,
            Registered::Dismissed(agent) => {
                app.hub.hosting().dismiss(self.connection, &agent);
                Ok(())
            }
        }
    }
}

/// Resolves the target of a reply frame; an invalid room, session or message id yields a not-found refusal.
fn reply_ref(connection: GatewayConnectionId, from: &ReplyTarget) -> Result<ReplyRef<'_>, Refusal> {
    let context = from.context.as_ref().ok_or(Refusal::NotFound(EntityKind::Room))?;
    let reply = from.message.as_ref().ok_or(Refusal::NotFound(EntityKind::Message))?;
    Ok(ReplyRef { connection, agent: &from.agent, context, reply, run: from.run.as_ref() })
}

fn status_of(status: Status) -> parlor_model::AgentStatus {
    match status {
        Status::Online => parlor_model::AgentStatus::Online,
        Status::Offline => parlor_model::AgentStatus::Offline,
        Status::Busy => parlor_model::AgentStatus::Busy,
        Status::Error => parlor_model::AgentStatus::Error,
    }
}
