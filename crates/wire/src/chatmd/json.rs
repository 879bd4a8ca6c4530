//! The JSON object that `parlor watch` prints for a message.

use super::LineMessage;
use jiff::Timestamp;
use parlor_model::Time;
use serde::Serialize;

#[derive(Serialize)]
struct MessageObject<'a> {
    timestamp: &'a str,
    sender: &'a str,
    recipient: &'a str,
    broadcast: &'a [String],
    message: &'a str,
    line_number: u64,
    #[serde(skip_serializing_if = "Option::is_none")]
    body: Option<&'a str>,
}

/// Appends the compact JSON object and a line feed to `out`. `timestamp` is a result of [`iso_millis`].
pub fn write_line(out: &mut Vec<u8>, timestamp: &str, message: &LineMessage, line_number: u64) {
    let LineMessage { sender, recipient, broadcast, message, body } = message;
    let object = MessageObject {
        timestamp,
        sender,
        recipient,
        broadcast,
        message,
        line_number,
        body: body.as_deref(),
    };
    serde_json::to_writer(&mut *out, &object)
        .expect("texts and numbers are serialisable, and memory accepts writes");
    out.push(b'\n');
}

/// Formats a time as ISO 8601 in UTC with milliseconds. A time out of range becomes 1970-01-01T00:00:00.000Z.
pub fn iso_millis(time: Time) -> String {
    let timestamp = Timestamp::from_microsecond(time.0).unwrap_or(Timestamp::UNIX_EPOCH);
    format!("{timestamp:.3}")
}

/// Formats the date of a time in UTC as `YYYY-MM-DD`.
pub fn iso_date(time: Time) -> String {
    iso_millis(time).chars().take_while(|c| *c != 'T').collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_object_is_compact_and_has_its_keys_in_the_documented_order() {
        let mut message = LineMessage {
            sender: "coder".into(),
            recipient: "reviewer".into(),
            broadcast: vec!["dev".into(), "ünï".into()],
            message: "nul\0 \"quoted\"".into(),
            body: None,
        };
        let time = Time(1_763_236_800_123_999);
        let mut out = Vec::new();
        write_line(&mut out, &iso_millis(time), &message, 6);
        let expected = r#"{"timestamp":"2025-11-15T20:00:00.123Z","sender":"coder","recipient":"reviewer","broadcast":["dev","ünï"],"message":"nul\u0000 \"quoted\"","line_number":6}"#;
        assert_eq!(String::from_utf8(out).unwrap(), format!("{expected}\n"));

        message.body = Some("one\ntwo".into());
        let mut out = Vec::new();
        write_line(&mut out, &iso_millis(time), &message, 6);
        assert!(out.ends_with(b",\"line_number\":6,\"body\":\"one\\ntwo\"}\n"));
    }

    #[test]
    fn times_have_milliseconds_and_dates_are_in_utc() {
        assert_eq!(iso_millis(Time(0)), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_millis(Time(i64::MAX)), "1970-01-01T00:00:00.000Z");
        assert_eq!(iso_date(Time(1_763_251_199_999_999)), "2025-11-15");
        assert_eq!(iso_date(Time(1_763_251_200_000_000)), "2025-11-16");
    }
}
