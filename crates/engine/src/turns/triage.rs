//! Whether an agent should answer what was said to nobody by name.

use crate::ports::{Triage, TriageCase, Verdict};
use crate::{Fault, Hub};
use parlor_model::{Addressed, Refusal, Run};
use std::time::Duration;

/// How long the decision may take; after that the agent answers.
const PATIENCE: Duration = Duration::from_secs(10);

impl Hub {
    pub(super) async fn triage(&self, run: &Run) -> Result<bool, Refusal> {
        let run = run.clone();
        let case = self.look(move |_, store| {
            let Some(trigger) = &run.trigger else { return Ok(None) };
            let found = (store.agent(&run.agent)?, store.message(trigger)?, store.room(&run.room)?);
            let (Some(agent), Some(message), Some(room)) = found else { return Ok(None) };
            let mut candidates = Vec::new();
            for run in store.runs_of(trigger)?.into_iter().filter(|run| run.addressed == Addressed::ByPolicy)
            {
                candidates.extend(store.agent(&run.agent)?);
            }
            candidates.sort_by(|one, other| one.id.cmp(&other.id));
            let router = match &room.router {
                Some(router) => store.router(router)?,
                None => None,
            };
            Ok(Some(TriageCase { agent, candidates, message, room, router }))
        });
        let Some(case) = case.await?.filter(|case| case.room.asks_first()) else { return Ok(true) };
        // What cannot be decided is answered: silence would look like a fault, and the budget bounds it.
        let verdict = tokio::time::timeout(PATIENCE, self.judge().wants(case)).await;
        Ok(verdict.ok().and_then(|verdict: Result<bool, Fault>| verdict.ok()).unwrap_or(true))
    }
}

/// Plain rules, for a hub without a model to ask: a question, or something that touches what the agent is for.
pub struct PlainRules;

impl Triage for PlainRules {
    fn wants(&self, case: TriageCase) -> Verdict {
        Box::pin(std::future::ready(Ok(concerns(&case))))
    }
}

fn concerns(case: &TriageCase) -> bool {
    let text = case.message.text.to_lowercase();
    let agent = &case.agent;
    let about: Vec<String> = [&agent.name, &agent.description]
        .into_iter()
        .chain(&agent.host.capabilities)
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()))
        // Short words are in everything.
        .filter(|word| word.chars().count() > 3)
        .map(str::to_lowercase)
        .collect();
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    text.contains('?') || words.any(|word| about.iter().any(|topic| topic == word))
}
