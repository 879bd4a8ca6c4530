//! Triage: decides whether an agent answers an unaddressed message.

use super::hosting::Hosting;
use crate::ports::{Triage, TriageCase, TriageFuture};
use parlor_model::{AddressedBy, MemberId, Refusal, Run};
use std::time::Instant;

/// Whether a run starts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum TriageDecision {
    Yes,
    No,
    /// Triage failed and the fallback limit is reached: the run stays queued.
    Later,
}

impl Hosting {
    pub(super) async fn triage(&self, run: &Run) -> Result<TriageDecision, Refusal> {
        let (triaged_run, run) = (run, run.clone());
        let case = self.hub.read_snapshot(move |_, store| {
            let (Some(trigger), Some(room)) = (run.message(), run.room()) else { return Ok(None) };
            let found = (store.agent(&run.agent)?, store.message(trigger)?, store.room(room)?);
            let (Some(agent), Some(message), Some(room)) = found else { return Ok(None) };
            let mut candidates = Vec::new();
            for run in
                store.runs_of(trigger)?.into_iter().filter(|run| run.addressed == AddressedBy::ByPolicy)
            {
                candidates.extend(store.agent(&run.agent)?);
            }
            candidates.sort_by(|agent, other| agent.id.cmp(&other.id));
            let mut router = match &room.router {
                Some(router) => store.router(router)?,
                None => None,
            };
            // A private router no longer reads the room once its creator is not a member.
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
        let limits = self.hub.limits();
        match tokio::time::timeout(limits.triage_timeout, self.hub.triage_port().should_answer(case)).await {
            Ok(Ok(true)) => return Ok(TriageDecision::Yes),
            Ok(Ok(false)) => return Ok(TriageDecision::No),
            Ok(Err(fault)) => tracing::warn!(%fault, "triage failed"),
            Err(_) => tracing::warn!("triage timed out"),
        }
        // If triage fails, the agent answers, because silence would look like a fault. The fallback limit
        // bounds such runs.
        let may = self.hub.scheduler().lock().allow_triage_fallback(triaged_run, limits, Instant::now());
        Ok(if may { TriageDecision::Yes } else { TriageDecision::Later })
    }
}

/// Triage by fixed rules, for a hub without a model: an agent answers questions, and messages that share a
/// word with its name, description or capabilities.
pub struct RuleBasedTriage;

impl Triage for RuleBasedTriage {
    fn should_answer(&self, case: TriageCase) -> TriageFuture {
        Box::pin(std::future::ready(Ok(is_relevant(&case))))
    }
}

fn is_relevant(case: &TriageCase) -> bool {
    let text = case.message.text.to_lowercase();
    let agent = &case.agent;
    let topics: Vec<String> = [&agent.name, &agent.description]
        .into_iter()
        .chain(&agent.host.capabilities)
        .flat_map(|text| text.split(|c: char| !c.is_alphanumeric()))
        // Short words occur in too many messages.
        .filter(|word| word.chars().count() > 3)
        .map(str::to_lowercase)
        .collect();
    let mut words = text.split(|c: char| !c.is_alphanumeric());
    text.contains('?') || words.any(|word| topics.iter().any(|topic| topic == word))
}
