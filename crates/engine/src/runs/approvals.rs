//! Questions of agents on their way to people, and the answers on their way back.

use super::host::HostCommand;
use super::scheduler::{GatewayConnectionId, RunForApproval};
use crate::Hub;
use crate::hub::CommandResult;
use parlor_model::command::{ApprovalDecision, NewApproval};
use parlor_model::{
    AgentId, Approval, ApprovalId, ApprovalKind, Caller, Command, Decision, EntityKind, InputDigest, Payload,
    Refusal, RoomId,
};
use std::time::{Duration, Instant};

/// The tools that talk to the hub itself: what they do is decided here anyway.
const OWN_TOOLS: &str = "mcp__agentim__";

/// What an agent asks through its gateway.
pub struct ApprovalRequest<'a> {
    pub link: GatewayConnectionId,
    pub agent: &'a AgentId,
    pub room: &'a RoomId,
    /// What the gateway calls the question.
    pub request: &'a str,
    pub tool: &'a str,
    pub kind: ApprovalKind,
    pub input: Payload,
    pub digest: InputDigest,
    pub timeout: Duration,
}

impl Hub {
    /// An agent asks whether it may use a tool, or what people want. What cannot be asked is denied, so that nobody
    /// waits in vain.
    pub async fn request_approval(&self, asking: ApprovalRequest<'_>) -> Result<(), Refusal> {
        let ApprovalRequest { link, agent, room, request, tool, kind: approval_kind, .. } = asking;
        let (host, gateway, asks) = {
            let mut scheduler = self.turns().desk();
            scheduler.agent_on_connection(agent, link).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            let (host, gateway) = (scheduler.host(link), scheduler.gateway(link).cloned());
            let asks = scheduler.asks(agent, room);
            (host, gateway, asks)
        };
        let (Some(host), Some(gateway)) = (host, gateway) else {
            return Err(Refusal::NotFound(EntityKind::Gateway));
        };
        let answer = |decision: &Decision| {
            host.send(&HostCommand::Decided { agent, request, kind: approval_kind, decision });
            Ok(())
        };
        if approval_kind == ApprovalKind::Tool && tool.starts_with(OWN_TOOLS) {
            return answer(&Decision::AllowedByRule);
        }
        let run = match asks {
            RunForApproval::In(run) => Ok(run),
            RunForApproval::Stopped => return answer(&Decision::Withdrawn),
            RunForApproval::NoRun => self.open_turn(agent, room).await,
        };
        let asked = match run {
            Ok(run) => {
                let new = NewApproval {
                    run,
                    gateway,
                    request: request.into(),
                    tool: tool.into(),
                    kind: approval_kind,
                    input: asking.input,
                    digest: asking.digest,
                    timeout: asking.timeout,
                };
                self.execute(&Caller::OPERATOR, Command::AskApproval(new)).await
            }
            Err(refusal) => Err(refusal),
        };
        match asked {
            Ok(_) => Ok(()),
            // An answer would be taken for that to the first question of this name.
            Err(refusal @ Refusal::AlreadyExists(_)) => Err(refusal),
            Err(refusal) => {
                tracing::debug!(%agent, ?refusal, "a question could not be asked and was denied");
                answer(&Decision::Withdrawn)
            }
        }
    }

    /// Somebody answers a question. Whether its time is over is looked at first, by a clock that nobody sets.
    pub async fn decide_approval(
        &self,
        caller: &Caller,
        approval_decision: ApprovalDecision,
    ) -> CommandResult {
        if self.turns().desk().is_overdue(&approval_decision.approval, Instant::now()) {
            self.expire(&approval_decision.approval).await?;
        }
        self.execute(caller, Command::DecideApproval(approval_decision)).await
    }

    /// Somebody says what an agent asked people.
    pub async fn answer_questions(
        &self,
        caller: &Caller,
        approval: ApprovalId,
        answers: Payload,
    ) -> CommandResult {
        if self.turns().desk().is_overdue(&approval, Instant::now()) {
            self.expire(&approval).await?;
        }
        self.execute(caller, Command::AnswerQuestions { approval, answers }).await
    }

    pub(super) async fn expire(&self, approval: &ApprovalId) -> Result<(), Refusal> {
        let expire = Command::ExpireApproval { approval: approval.clone() };
        match self.execute(&Caller::OPERATOR, expire).await {
            Err(Refusal::NotFound(_)) => {
                self.turns().desk().forget_question(approval);
                Ok(())
            }
            outcome => outcome.map(drop),
        }
    }
}

pub(super) fn tell(host: &dyn super::Host, approval: &Approval) {
    if let Some(decision) = &approval.decision {
        let Approval { agent, request, kind: approval_kind, .. } = approval;
        host.send(&HostCommand::Decided { agent, request, kind: *approval_kind, decision });
    }
}
