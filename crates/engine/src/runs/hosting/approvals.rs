//! Approvals: submits the approval requests of agents, and their expiry.

use super::super::host::HostCommand;
use super::super::scheduler::{GatewayConnectionId, RunForApproval};
use super::Hosting;
use parlor_model::command::{AskApproval, ExpireApproval};
use parlor_model::{
    AgentId, ApprovalId, ApprovalKind, ApprovalSubject, Caller, Decision, EntityKind, InputDigest, Refusal,
    RunContext,
};
use std::time::Duration;

/// An approval request of an agent, as received from its gateway.
pub struct ApprovalRequest<'a> {
    pub connection: GatewayConnectionId,
    pub agent: &'a AgentId,
    pub context: &'a RunContext,
    /// Request id chosen by the gateway.
    pub request: &'a str,
    pub tool: &'a str,
    /// Whether the tool calls the hub itself.
    pub is_own_tool: bool,
    pub subject: ApprovalSubject,
    pub digest: InputDigest,
    pub timeout: Duration,
}

impl Hosting {
    /// Submits an approval request: permission to use a tool, or a set of questions for users. A request that
    /// cannot be submitted is denied immediately, so that the agent does not wait for a decision.
    pub async fn request_approval(&self, approval_request: ApprovalRequest<'_>) -> Result<(), Refusal> {
        let ApprovalRequest { connection, agent, context, request, tool, .. } = approval_request;
        let approval_kind = approval_request.subject.kind();
        let (host, gateway, run_for_approval) = {
            let mut scheduler = self.hub.scheduler().lock();
            scheduler.agent_on_connection(agent, connection).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            let (host, gateway) = (scheduler.host(connection), scheduler.gateway(connection).cloned());
            let run_for_approval = scheduler.run_for_approval(agent, context);
            (host, gateway, run_for_approval)
        };
        let (Some(host), Some(gateway)) = (host, gateway) else {
            return Err(Refusal::NotFound(EntityKind::Gateway));
        };
        let answer = |decision: Decision| {
            let (agent, request) = (agent.clone(), request.into());
            host.send(HostCommand::Decided { agent, request, kind: approval_kind, decision });
            Ok(())
        };
        // The hub authorises each call of such a tool, so no user has to allow it.
        if approval_kind == ApprovalKind::Tool && approval_request.is_own_tool {
            return answer(Decision::AllowedByRule);
        }
        let run = match run_for_approval {
            RunForApproval::In(run) => Ok(run),
            RunForApproval::Stopped => return answer(Decision::Withdrawn),
            RunForApproval::NoRun => self.open_run(agent, context).await,
        };
        let result = match run {
            Ok(run) => {
                let new = AskApproval {
                    run,
                    gateway,
                    request: request.into(),
                    tool: tool.into(),
                    subject: approval_request.subject,
                    digest: approval_request.digest,
                    timeout: approval_request.timeout,
                };
                self.hub.execute(&Caller::OPERATOR, new).await
            }
            Err(refusal) => Err(refusal),
        };
        match result {
            Ok(_) => Ok(()),
            // A decision would be taken for that on the earlier approval with the same request id.
            Err(refusal @ Refusal::AlreadyExists(_)) => Err(refusal),
            Err(refusal) => {
                tracing::debug!(%agent, ?refusal, "approval request denied: it could not be submitted");
                answer(Decision::Withdrawn)
            }
        }
    }

    pub(in crate::runs) async fn expire(&self, approval: &ApprovalId) -> Result<(), Refusal> {
        let expire = ExpireApproval { approval: approval.clone() };
        match self.hub.execute(&Caller::OPERATOR, expire).await {
            Err(Refusal::NotFound(_)) => {
                self.hub.scheduler().lock().forget_approval(approval);
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }
}
