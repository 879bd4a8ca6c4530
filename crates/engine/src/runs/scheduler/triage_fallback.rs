//! Limits the runs that start although triage failed: a token bucket per agent and context. Runs beyond the
//! limit stay queued until a token is available.

use super::Scheduler;
use crate::Limits;
use parlor_model::{AgentId, Run, RunContext};
use std::time::Instant;

/// Token bucket of one agent in one context: `triage_fallback_burst` tokens, refilled by one every
/// `triage_fallback_interval`.
pub struct TriageFallbackBucket {
    left: u32,
    /// Time of the last refill.
    since: Instant,
}

impl Scheduler {
    /// Takes a token for a run without a triage decision. Returns `false` if none is left; the run is then
    /// held until the next refill.
    pub fn allow_triage_fallback(&mut self, run: &Run, limits: &Limits, now: Instant) -> bool {
        match self.take_triage_token(&run.agent, run.place.context(), limits, now) {
            Ok(()) => true,
            Err(next_refill) => {
                self.held_until.insert(run.id.clone(), next_refill);
                false
            }
        }
    }

    /// Takes a token of an agent in a context, for work without a triage decision. Returns the time of the next refill
    /// if none is left.
    pub fn take_triage_token(
        &mut self,
        agent: &AgentId,
        context: RunContext,
        limits: &Limits,
        now: Instant,
    ) -> Result<(), Instant> {
        let (burst, interval) = (limits.triage_fallback_burst, limits.triage_fallback_interval);
        for bucket in self.triage_fallback.values_mut() {
            let refilled = now.duration_since(bucket.since).as_nanos() / interval.as_nanos().max(1);
            let refilled = u32::try_from(refilled).unwrap_or(u32::MAX);
            bucket.left = bucket.left.saturating_add(refilled).min(burst);
            bucket.since += interval.saturating_mul(refilled);
        }
        // Drop full buckets: a missing bucket counts as full.
        self.triage_fallback.retain(|_, bucket| bucket.left < burst);
        let key = (agent.clone(), context);
        let bucket =
            self.triage_fallback.entry(key).or_insert(TriageFallbackBucket { left: burst, since: now });
        if bucket.left == 0 {
            return Err(bucket.since + interval);
        }
        bucket.left -= 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{a_run, scheduler_with};
    use super::*;
    use parlor_model::{RunId, RunState};
    use std::time::Duration;

    #[test]
    fn runs_without_a_triage_decision_are_limited_and_do_not_block_others() {
        let limits = Limits {
            triage_fallback_burst: 2,
            triage_fallback_interval: Duration::from_secs(60),
            ..Limits::default()
        };
        let (mut scheduler, _) =
            scheduler_with(Some(false), &[("4", "a", RunState::Queued), ("5", "a", RunState::Queued)]);
        let (start, undecided) = (Instant::now(), |id: &str| a_run(id, "a", RunState::Queued));
        assert!(scheduler.allow_triage_fallback(&undecided("1"), &limits, start));
        assert!(scheduler.allow_triage_fallback(&undecided("2"), &limits, start));
        assert!(!scheduler.allow_triage_fallback(&undecided("4"), &limits, start));
        assert!(
            scheduler.allow_triage_fallback(&a_run("6", "b", RunState::Queued), &limits, start),
            "another room has its own bucket"
        );
        assert_eq!(scheduler.take_ready(start), [RunId::stored("5")], "a held run is overtaken");
        scheduler.retry_start(&RunId::stored("5"));
        let later = start + Duration::from_secs(60);
        assert_eq!(scheduler.next_deadline(Duration::MAX, start), Some(later));
        assert_eq!(scheduler.take_ready(later), [RunId::stored("4")]);
        assert!(scheduler.allow_triage_fallback(&undecided("4"), &limits, later), "one token was refilled");
        assert!(!scheduler.allow_triage_fallback(&undecided("7"), &limits, later));
        let much_later = start + Duration::from_secs(600);
        for id in ["7", "8"] {
            assert!(
                scheduler.allow_triage_fallback(&undecided(id), &limits, much_later),
                "no more tokens than the burst"
            );
        }
        assert!(!scheduler.allow_triage_fallback(&undecided("9"), &limits, much_later));
    }
}
