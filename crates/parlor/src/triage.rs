//! Triage by a model: picks the agents that answer an unaddressed message, with one model request per message, and
//! decides whether a batch of mail starts a turn, with one model request per batch.

use crate::models::ModelClients;
use parking_lot::Mutex;
use parlor_agents::kinds::model::Endpoint;
use parlor_agents::pick::{Candidate, PickRequest, pick};
use parlor_agents::triage_batch::{Batch, BatchMessage, triage_batch};
use parlor_engine::ports::{BatchCase, BatchTriage, BatchTriageFuture, Triage, TriageCase, TriageFuture};
use parlor_engine::runs::RuleBasedTriage;
use parlor_engine::{Fault, Severity};
use parlor_model::{AgentId, MessageId};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Maximum number of cached decisions. The engine asks about each agent of a message at nearly the same time,
/// so a short cache is enough for one request per message.
const MAX_CACHED_DECISIONS: usize = 256;

/// Uses the router model of the room, else the triage model of the hub, else fixed rules.
pub struct ModelTriage {
    models: Arc<ModelClients>,
    cache: Mutex<VecDeque<(MessageId, Decision)>>,
}

/// Picked agents, or `None` if the model request failed.
type Decision = Arc<OnceCell<Option<Vec<AgentId>>>>;

impl ModelTriage {
    pub fn new(models: Arc<ModelClients>) -> Self {
        Self { models, cache: Mutex::default() }
    }

    fn decision(&self, message: &MessageId) -> Decision {
        let mut cache = self.cache.lock();
        if let Some((_, decision)) = cache.iter().find(|(id, _)| id == message) {
            return decision.clone();
        }
        if cache.len() == MAX_CACHED_DECISIONS {
            cache.pop_front();
        }
        let decision = Decision::default();
        cache.push_back((message.clone(), decision.clone()));
        decision
    }
}

impl Triage for ModelTriage {
    fn should_answer(&self, case: TriageCase) -> TriageFuture {
        let endpoint = match (&case.router, self.models.triage()) {
            (Some(router), _) => self.models.endpoint(&router.model).map(Arc::new),
            (None, Some(endpoint)) => Ok(endpoint.clone()),
            (None, None) => return RuleBasedTriage.should_answer(case),
        };
        let (decision, timeout) = (self.decision(&case.message.id), self.models.triage_timeout);
        Box::pin(async move {
            match decision.get_or_init(|| pick_agents(endpoint, &case, timeout)).await {
                Some(picked) => Ok(picked.contains(&case.agent.id)),
                None => {
                    Err(Fault::new("cannot pick agents", Severity::Transient, "the model gave no answer"))
                }
            }
        })
    }

    /// The triage model of the hub decides, or another model at the same address that the setting of the session names.
    fn should_start_turn(&self, case: BatchCase) -> BatchTriageFuture {
        let Some(endpoint) = self.models.triage() else {
            return Box::pin(std::future::ready(Ok(BatchTriage::NoModel)));
        };
        let endpoint = match &case.model {
            Some(model) => Arc::new(endpoint.with_model(model)),
            None => endpoint.clone(),
        };
        let timeout = self.models.triage_timeout;
        Box::pin(async move { decide_batch(&endpoint, &case, timeout).await })
    }
}

async fn decide_batch(
    endpoint: &Endpoint,
    case: &BatchCase,
    timeout: Duration,
) -> Result<BatchTriage, Fault> {
    let messages = case.messages.iter().map(|message| BatchMessage {
        from: &message.sender_name,
        path: message.destination.path().to_string(),
        command: message.command.as_deref().unwrap_or("message"),
        source: &message.source,
        content: message.payload.as_ref().map_or(&*message.text, |payload| &*payload.0),
    });
    let batch = Batch {
        agent: &case.agent.name,
        role: &case.agent.description,
        session: &case.session.title,
        room: case.room.as_ref().map(|room| &*room.name),
        context: case.session.settings.get("context").map(|context| &*context.0),
        messages: &messages.collect::<Vec<_>>(),
    };
    match triage_batch(endpoint, &batch, timeout).await {
        Ok((true, _)) => Ok(BatchTriage::Yes),
        Ok((false, reason)) => Ok(BatchTriage::No(reason)),
        Err(error) => Err(Fault::new("cannot triage a batch", Severity::Transient, error.to_string())),
    }
}

async fn pick_agents(
    endpoint: Result<Arc<Endpoint>, &'static str>,
    case: &TriageCase,
    timeout: Duration,
) -> Option<Vec<AgentId>> {
    let candidates = case.candidates.iter().map(|agent| Candidate {
        name: &agent.name,
        description: &agent.description,
        capabilities: agent.host.capabilities.iter().map(AsRef::as_ref).collect(),
    });
    let request = PickRequest {
        room: &case.room.name,
        agents: &candidates.collect::<Vec<_>>(),
        sender: &case.message.sender_name,
        text: &case.message.text,
    };
    let picked = match endpoint {
        Ok(endpoint) => {
            pick(&endpoint, &request, timeout).await.map_err(|endpoint_error| endpoint_error.to_string())
        }
        Err(reason) => Err(reason.to_owned()),
    };
    match picked {
        Ok(indices) => Some(indices.into_iter().map(|index| case.candidates[index].id.clone()).collect()),
        Err(reason) => {
            let room = &case.room.id;
            tracing::warn!(%room, reason, "triage failed: all agents may answer, within their budgets");
            None
        }
    }
}
