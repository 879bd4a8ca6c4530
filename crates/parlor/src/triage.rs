//! Has a model decide which agents answer what was said to nobody by name: one question for each message.

use crate::models::ModelClients;
use parking_lot::Mutex;
use parlor_agents::kinds::model::Endpoint;
use parlor_agents::pick::{Candidate, PickRequest, pick};
use parlor_engine::ports::{Triage, TriageCase, TriageFuture};
use parlor_engine::runs::RuleBasedTriage;
use parlor_engine::{Fault, Severity};
use parlor_model::{AgentId, MessageId};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::OnceCell;

/// Messages whose decision is known; the agents of one are asked about at nearly the same time.
const REMEMBERED: usize = 256;

/// The room's own model, else the hub's, else plain rules.
pub struct ModelTriage {
    models: Arc<ModelClients>,
    known: Mutex<VecDeque<(MessageId, Decision)>>,
}

/// Who was picked, or nothing if nobody could be asked.
type Decision = Arc<OnceCell<Option<Vec<AgentId>>>>;

impl ModelTriage {
    pub fn new(models: Arc<ModelClients>) -> Self {
        Self { models, known: Mutex::default() }
    }

    fn decision(&self, message: &MessageId) -> Decision {
        let mut known = self.known.lock();
        if let Some((_, decision)) = known.iter().find(|(id, _)| id == message) {
            return decision.clone();
        }
        if known.len() == REMEMBERED {
            known.pop_front();
        }
        let decision = Decision::default();
        known.push_back((message.clone(), decision.clone()));
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
        let (decision, patience) = (self.decision(&case.message.id), self.models.patience);
        Box::pin(async move {
            match decision.get_or_init(|| picked(endpoint, &case, patience)).await {
                Some(picked) => Ok(picked.contains(&case.agent.id)),
                None => {
                    Err(Fault::new("cannot pick agents", Severity::Transient, "the model gave no answer"))
                }
            }
        })
    }
}

async fn picked(
    endpoint: Result<Arc<Endpoint>, &'static str>,
    case: &TriageCase,
    patience: Duration,
) -> Option<Vec<AgentId>> {
    let candidates = case.candidates.iter().map(|agent| Candidate {
        name: &agent.name,
        description: &agent.description,
        capabilities: agent.host.capabilities.iter().map(AsRef::as_ref).collect(),
    });
    let question = PickRequest {
        room: &case.room.name,
        agents: &candidates.collect::<Vec<_>>(),
        sender: &case.message.sender_name,
        text: &case.message.text,
    };
    let picked = match endpoint {
        Ok(endpoint) => {
            pick(&endpoint, &question, patience).await.map_err(|endpoint_error| endpoint_error.to_string())
        }
        Err(reason) => Err(reason.to_owned()),
    };
    match picked {
        Ok(places) => Some(places.into_iter().map(|place| case.candidates[place].id.clone()).collect()),
        Err(reason) => {
            let room = &case.room.id;
            tracing::warn!(%room, reason, "nobody picks which agents answer: all may, within their budgets");
            None
        }
    }
}
