//! Cron expressions of heartbeats: five fields, in UTC, with a resolution of one minute.

use chrono::{DateTime, Utc};
use croner::Cron;
use croner::parser::{CronParser, Seconds, Year};
use parlor_model::Time;

/// Maximum bytes of an expression.
const MAX_BYTES: usize = 200;

/// A parsed cron expression.
#[derive(Debug, Clone)]
pub struct Schedule(Cron);

impl Schedule {
    /// Returns `None` if the text is no valid expression.
    pub fn parse(text: &str) -> Option<Self> {
        let parser = CronParser::builder().seconds(Seconds::Disallowed).year(Year::Disallowed).build();
        let cron = (text.len() <= MAX_BYTES).then(|| parser.parse(text).ok()).flatten()?;
        Some(Self(cron))
    }

    /// The first time of the schedule after `time`. `None` if there is none, such as for 30 February.
    pub fn next_after(&self, time: Time) -> Option<Time> {
        // The crate keeps fractions of a second in its results.
        let time: DateTime<Utc> = DateTime::from_timestamp(time.seconds(), 0)?;
        let next = self.0.find_next_occurrence(&time, false).ok()?;
        Some(Time(next.timestamp_micros()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn time(text: &str) -> Time {
        Time(text.parse::<DateTime<Utc>>().unwrap().timestamp_micros())
    }

    #[track_caller]
    fn check(cron: &str, after: &str, next: Option<&str>) {
        assert_eq!(Schedule::parse(cron).unwrap().next_after(time(after)), next.map(time), "{cron}");
    }

    #[test]
    fn the_next_time_of_a_schedule_is_after_the_given_one() {
        check("*/5 * * * *", "2026-03-01T10:02:30Z", Some("2026-03-01T10:05:00Z"));
        check("*/5 * * * *", "2026-03-01T10:05:00Z", Some("2026-03-01T10:10:00Z"));
        check("0 9 * * MON-FRI", "2026-02-28T12:00:00Z", Some("2026-03-02T09:00:00Z"));
        check("0 0 29 2 *", "2026-03-01T00:00:00Z", Some("2028-02-29T00:00:00Z"));
        check("0 0 30 2 *", "2026-03-01T00:00:00Z", None);
    }

    #[test]
    fn other_texts_are_no_schedules() {
        for text in ["", "* * * *", "* * * * * *", "60 * * * *", "every minute", &"1,".repeat(200)] {
            assert!(Schedule::parse(text).is_none(), "{text}");
        }
    }
}
