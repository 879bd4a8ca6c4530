//! Questions that the hub itself asks users for an agent, such as those of the tool `ask-user`.
//!
//! Owns: the calls that wait for the answer. The question is an approval of the agent's active run, with the audience,
//! the time limit and the decision of every other one.

use crate::{HUB, Hub};
use parking_lot::Mutex;
use parlor_model::command::AskApproval;
use parlor_model::{
    AgentId, Approval, ApprovalSubject, Caller, EntityKind, GatewayId, InputDigest, Question, Refusal, RunId,
    SessionId,
};
use std::collections::HashMap;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::oneshot;

/// A question to the users who may decide for an agent.
#[derive(Debug)]
pub struct UserQuestion {
    pub agent: AgentId,
    /// Session of the call; its active run asks.
    pub session: Option<SessionId>,
    /// Run that asks, if the caller is known to belong to it.
    pub run: Option<RunId>,
    /// Tool that asks.
    pub tool: Box<str>,
    pub question: Question,
    pub digest: InputDigest,
    pub timeout: Duration,
}

/// Calls that wait for a decision, by the id of their request. Bounded by the limit on open approvals.
#[derive(Default)]
pub struct DecisionWaiters(Mutex<HashMap<Box<str>, oneshot::Sender<Arc<Approval>>>>);

impl DecisionWaiters {
    fn add(&self, request: &str) -> oneshot::Receiver<Arc<Approval>> {
        let (sender, receiver) = oneshot::channel();
        self.0.lock().insert(request.into(), sender);
        receiver
    }

    fn remove(&self, request: &str) {
        self.0.lock().remove(request);
    }

    /// Passes a decision to the call that waits for it. The id of a gateway's request is not one of the hub.
    pub fn decided(&self, approval: &Arc<Approval>) {
        if approval.gateway.as_str() == HUB
            && let Some(waiter) = self.0.lock().remove(&approval.request)
        {
            // A receiver that was dropped has stopped waiting.
            let _ = waiter.send(approval.clone());
        }
    }
}

/// Removes a waiter when its call ends or is dropped.
struct Waiting<'a> {
    hub: &'a Hub,
    request: Box<str>,
}

impl Drop for Waiting<'_> {
    fn drop(&mut self) {
        self.hub.scheduler().decisions.remove(&self.request);
    }
}

impl Hub {
    /// Asks a question in the active run of an agent and waits for the decision: an answer, the end of the run or the
    /// expiry. Refused as [`EntityKind::Run`] not found if the agent has no such run. The caller has checked the
    /// permission.
    pub async fn ask_user(&self, asked: UserQuestion) -> Result<Arc<Approval>, Refusal> {
        let UserQuestion { agent, session, run, tool, question, digest, timeout } = asked;
        let run = match run {
            Some(run) => Some(run),
            None => self.scheduler().lock().active_run(&agent, session.as_ref()),
        };
        let run = run.ok_or(Refusal::NotFound(EntityKind::Run))?;
        let request: Box<str> = format!("tool-{}", self.new_id()).into();
        // Before the question is published: it may be answered at once.
        let decision = self.scheduler().decisions.add(&request);
        let _waiting = Waiting { hub: self, request: request.clone() };
        let ask = AskApproval {
            run,
            gateway: GatewayId::stored(HUB),
            request,
            tool,
            subject: ApprovalSubject::Questions(vec![question]),
            digest,
            timeout,
        };
        self.execute(&Caller::OPERATOR, ask).await?;
        // The sender is dropped only with the hub.
        decision.await.map_err(|_| Refusal::Unavailable)
    }
}
