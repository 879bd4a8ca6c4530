//! Converts times to and from ISO 8601 text in UTC, with six decimals so that the texts sort by time.

use jiff::Timestamp;
use parlor_model::Time;

/// Formats a time. A time out of range becomes 1970-01-01T00:00:00Z.
pub fn iso(time: Time) -> String {
    match Timestamp::from_microsecond(time.0) {
        Ok(timestamp) => format!("{timestamp:.6}"),
        Err(_) => format!("{:.6}", Timestamp::UNIX_EPOCH),
    }
}

pub fn parse(text: &str) -> Option<Time> {
    text.parse::<Timestamp>().ok().map(|timestamp| Time(timestamp.as_microsecond()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_formatted_time_parses_back_to_itself() {
        let time = Time(1_763_236_800_123_456);
        assert_eq!(iso(time), "2025-11-15T20:00:00.123456Z");
        assert_eq!(parse(&iso(time)), Some(time));
        assert_eq!(parse("2025-11-15T20:00:00.123Z"), Some(Time(1_763_236_800_123_000)));
        assert_eq!(parse("yesterday"), None);
        assert_eq!(iso(Time(i64::MAX)), "1970-01-01T00:00:00.000000Z");
    }
}
