//! Turns of which nobody could say whether they should be: some begin, and where there are many of them, the rest waits.

use super::Scheduler;
use crate::Limits;
use parlor_model::Run;
use std::time::Instant;

/// How many more there may be of an agent in a room; it fills up in time.
pub struct TriageFallbackBucket {
    left: u32,
    /// Since when there are so many.
    since: Instant,
}

impl Scheduler {
    /// Whether one more may begin; if not, it is held until there is room for it.
    pub fn begin_undecided(&mut self, run: &Run, limits: &Limits, now: Instant) -> bool {
        let (most, every) = (limits.triage_fallback_burst, limits.triage_fallback_interval);
        for it in self.triage_fallback.values_mut() {
            let more = now.duration_since(it.since).as_nanos() / every.as_nanos().max(1);
            let more = u32::try_from(more).unwrap_or(u32::MAX);
            it.left = it.left.saturating_add(more).min(most);
            it.since += every.saturating_mul(more);
        }
        // Full ones are as good as none.
        self.triage_fallback.retain(|_, it| it.left < most);
        let place = (run.agent.clone(), run.room.clone());
        let it = self.triage_fallback.entry(place).or_insert(TriageFallbackBucket { left: most, since: now });
        if it.left == 0 {
            self.held_until.insert(run.id.clone(), it.since + every);
            return false;
        }
        it.left -= 1;
        true
    }
}

#[cfg(test)]
mod tests {
    use super::super::tests::{a_run, desk};
    use super::*;
    use parlor_model::{RunId, RunState};
    use std::time::Duration;

    #[test]
    fn what_nobody_can_decide_begins_a_few_times_and_then_waits_without_holding_up_others() {
        let limits = Limits {
            triage_fallback_burst: 2,
            triage_fallback_interval: Duration::from_secs(60),
            ..Limits::default()
        };
        let (mut scheduler, _) =
            desk(Some(false), &[("4", "a", RunState::Queued), ("5", "a", RunState::Queued)]);
        let (start, unsure) = (Instant::now(), |id: &str| a_run(id, "a", RunState::Queued));
        assert!(scheduler.begin_undecided(&unsure("1"), &limits, start));
        assert!(scheduler.begin_undecided(&unsure("2"), &limits, start));
        assert!(!scheduler.begin_undecided(&unsure("4"), &limits, start));
        assert!(scheduler.begin_undecided(&a_run("6", "b", RunState::Queued), &limits, start), "elsewhere");
        assert_eq!(scheduler.take_ready(start), [RunId::stored("5")], "it is overtaken");
        scheduler.not_started(&RunId::stored("5"));
        let later = start + Duration::from_secs(60);
        assert_eq!(scheduler.next_deadline(Duration::MAX, start), Some(later));
        assert_eq!(scheduler.take_ready(later), [RunId::stored("4")]);
        assert!(scheduler.begin_undecided(&unsure("4"), &limits, later), "there is room for one more");
        assert!(!scheduler.begin_undecided(&unsure("7"), &limits, later));
        let much_later = start + Duration::from_secs(600);
        for id in ["7", "8"] {
            assert!(
                scheduler.begin_undecided(&unsure(id), &limits, much_later),
                "and never for more than these"
            );
        }
        assert!(!scheduler.begin_undecided(&unsure("9"), &limits, much_later));
    }
}
