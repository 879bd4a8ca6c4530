//! Budget of a session for turns that triage did not decide: a token bucket with `triage_fallback_burst` tokens, refilled
//! by one every `triage_fallback_interval`.

use crate::Limits;
use std::time::Instant;

/// Token bucket. It starts full, also after a restart of the hub.
#[derive(Debug, Default)]
pub struct Budget {
    /// Tokens that were taken and not refilled yet.
    taken: u32,
    /// Time of the last refill; `None` while the bucket is full.
    since: Option<Instant>,
}

impl Budget {
    /// Takes a token. Returns the time of the next refill if none is left.
    pub fn take(&mut self, limits: &Limits, now: Instant) -> Result<(), Instant> {
        let (burst, interval) = (limits.triage_fallback_burst, limits.triage_fallback_interval);
        let since = *self.since.get_or_insert(now);
        let refilled = now.saturating_duration_since(since).as_nanos() / interval.as_nanos().max(1);
        let refilled = u32::try_from(refilled).unwrap_or(u32::MAX).min(self.taken);
        self.taken -= refilled;
        // A full bucket refills from the next token on.
        let since = if self.taken == 0 { now } else { since + interval.saturating_mul(refilled) };
        self.since = Some(since);
        if self.taken >= burst {
            return Err(since + interval);
        }
        self.taken += 1;
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;

    const MINUTE: Duration = Duration::from_secs(60);

    fn limits() -> Limits {
        Limits { triage_fallback_burst: 2, triage_fallback_interval: MINUTE, ..Limits::default() }
    }

    #[test]
    fn a_burst_is_allowed_and_then_one_token_per_interval() {
        let (mut budget, limits, start) = (Budget::default(), limits(), Instant::now());
        assert_eq!(budget.take(&limits, start), Ok(()));
        assert_eq!(budget.take(&limits, start + MINUTE / 2), Ok(()));
        assert_eq!(budget.take(&limits, start + MINUTE / 2), Err(start + MINUTE));
        assert_eq!(budget.take(&limits, start + MINUTE), Ok(()));
        assert_eq!(budget.take(&limits, start + MINUTE), Err(start + 2 * MINUTE));
    }

    #[test]
    fn an_unused_bucket_has_no_more_tokens_than_the_burst() {
        let (mut budget, limits, start) = (Budget::default(), limits(), Instant::now());
        assert_eq!(budget.take(&limits, start), Ok(()));
        let later = start + 100 * MINUTE;
        for _ in 0..2 {
            assert_eq!(budget.take(&limits, later), Ok(()));
        }
        assert_eq!(budget.take(&limits, later), Err(later + MINUTE));
    }
}
