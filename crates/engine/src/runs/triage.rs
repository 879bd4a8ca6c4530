//! Whether an agent should answer what was said to nobody by name.

use crate::Hub;
use crate::ports::{Triage, TriageCase, TriageFuture};
use parlor_model::{AddressedBy, MemberId, Refusal, Run};
use std::time::Instant;

/// Whether a turn is to begin.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriageDecision {
    Yes,
    No,
    /// It stays as it is: nobody can say, and there were many of these lately.
    Later,
}

impl Hub {
    pub(super) async fn triage(&self, run: &Run) -> Result<TriageDecision, Refusal> {
        let (asked, run) = (run, run.clone());
        let case = self.read_snapshot(move |_, store| {
            let Some(trigger) = &run.trigger else { return Ok(None) };
            let found = (store.agent(&run.agent)?, store.message(trigger)?, store.room(&run.room)?);
            let (Some(agent), Some(message), Some(room)) = found else { return Ok(None) };
            let mut candidates = Vec::new();
            for run in
                store.runs_of(trigger)?.into_iter().filter(|run| run.addressed == AddressedBy::ByPolicy)
            {
                candidates.extend(store.agent(&run.agent)?);
            }
            candidates.sort_by(|one, other| one.id.cmp(&other.id));
            let mut router = match &room.router {
                Some(router) => store.router(router)?,
                None => None,
            };
            // Who is no longer in the room does not read on through a model of their own.
            if let Some(own) = router.as_ref().filter(|router| !router.shared) {
                let maker = MemberId::User(own.created_by.clone());
                if store.member(&room.id, &maker)?.is_none() {
                    router = None;
                }
            }
            Ok(Some(TriageCase { agent, candidates, message, room, router }))
        });
        let Some(case) = case.await?.filter(|case| case.room.uses_triage()) else {
            return Ok(TriageDecision::Yes);
        };
        let limits = self.limits();
        match tokio::time::timeout(limits.triage_timeout, self.triage_port().should_answer(case)).await {
            Ok(Ok(true)) => return Ok(TriageDecision::Yes),
            Ok(Ok(false)) => return Ok(TriageDecision::No),
            Ok(Err(fault)) => tracing::warn!(%fault, "nobody could say whether an agent should answer"),
            Err(_) => tracing::warn!("whether an agent should answer was not said in time"),
        }
        // What cannot be decided is answered: silence would look like a fault. Where that becomes the rule, it waits.
        let may = self.turns().desk().begin_undecided(asked, limits, Instant::now());
        Ok(if may { TriageDecision::Yes } else { TriageDecision::Later })
    }
}

/// Plain rules, for a hub without a model to ask: a question, or something that touches what the agent is for.
pub struct RuleBasedTriage;

impl Triage for RuleBasedTriage {
    fn should_answer(&self, case: TriageCase) -> TriageFuture {
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
