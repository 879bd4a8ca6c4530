//! Points in time, in microseconds since 1970-01-01 UTC. The resolution gives each message of a room its own
//! time.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::time::Duration;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Default, Serialize, Deserialize)]
pub struct Time(pub i64);

impl Time {
    pub fn millis(self) -> i64 {
        self.0.div_euclid(1000)
    }

    pub fn seconds(self) -> i64 {
        self.0.div_euclid(1_000_000)
    }

    pub fn plus(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(duration.as_micros().min(i64::MAX as u128) as i64))
    }

    pub fn minus(self, duration: Duration) -> Self {
        Self(self.0.saturating_sub(duration.as_micros().min(i64::MAX as u128) as i64))
    }

    /// Returns the time for the next message. It is later than `self`, the time of the previous message,
    /// unless the clock was set back by more than 5 seconds. Then the new clock time is used, since order
    /// depends on `Seq`, not on time.
    pub fn next_after(self, now: Time) -> Time {
        const MAX_STEP_BACK_US: i64 = 5_000_000;
        if now > self || self.0 - now.0 > MAX_STEP_BACK_US { now } else { Time(self.0 + 1) }
    }
}

impl fmt::Display for Time {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}us", self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_increase_even_when_the_clock_stands_still() {
        assert_eq!(Time(10).next_after(Time(10)), Time(11));
        assert_eq!(Time(10).next_after(Time(9)), Time(11));
        assert_eq!(Time(10).next_after(Time(50)), Time(50));
    }

    #[test]
    fn a_clock_set_back_by_hours_is_followed() {
        let now = Time(7_200_000_000);
        assert_eq!(Time(2 * 7_200_000_000).next_after(now), now);
    }
}
