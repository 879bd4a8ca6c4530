//! One line of a file of messages: a copy of a message in a mailbox.

use parlor_model::command::ImportedMessage;
use parlor_model::{Delivery, DeliveryState, Destination, Mailbox, Message, MessageId, Path, Payload, Time};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// State of a message in a file. A leased message is still pending.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Status {
    Pending,
    Delivered,
    Dead,
}

impl Status {
    pub fn of(state: DeliveryState) -> Self {
        match state {
            DeliveryState::Pending | DeliveryState::Leased { .. } => Self::Pending,
            DeliveryState::Delivered => Self::Delivered,
            DeliveryState::Dead => Self::Dead,
        }
    }

    fn as_str(self) -> &'static str {
        match self {
            Self::Pending => "pending",
            Self::Delivered => "delivered",
            Self::Dead => "dead",
        }
    }

    fn parse(text: &str) -> Self {
        match text {
            "delivered" | "processed" => Self::Delivered,
            "dead" => Self::Dead,
            _ => Self::Pending,
        }
    }
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Line<'a> {
    id: &'a str,
    from: &'a str,
    path: Cow<'a, str>,
    command: &'a str,
    payload: Cow<'a, RawValue>,
    status: &'a str,
    timestamp: i64,
    source: &'a str,
    external_id: Option<&'a str>,
    #[serde(rename = "_deliveredTo")]
    delivered_to: Cow<'a, str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    handled: Option<bool>,
    /// Position in the log of the hub.
    seq: u64,
}

/// A message that no mailbox received.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct UnmatchedLine<'a> {
    id: &'a str,
    from: &'a str,
    path: Cow<'a, str>,
    command: &'a str,
    payload: Cow<'a, RawValue>,
    source: &'a str,
    external_id: Option<&'a str>,
    reason: &'a str,
    timestamp: i64,
    /// Position in the log of the hub.
    seq: u64,
}

/// The payload of a message on one line.
fn payload(message: &Message) -> Box<RawValue> {
    let payload = match &message.payload {
        Some(payload) => payload.0.to_string(),
        None => serde_json::json!({ "text": &*message.text }).to_string(),
    };
    // Line feeds in a payload are white space between tokens.
    let payload = crate::document::compact(&payload);
    RawValue::from_string(payload).unwrap_or_else(|_| RawValue::NULL.to_owned())
}

fn path(message: &Message) -> Cow<'_, str> {
    match &message.destination {
        Destination::Path(path) => path.as_str().into(),
        Destination::Room(_) => message.destination.path().as_str().to_owned().into(),
    }
}

/// The line of a message that no mailbox received, with its line feed.
pub fn render_unmatched(message: &Message, reason: &str) -> String {
    let line = UnmatchedLine {
        id: message.id.as_str(),
        from: message.sender.id(),
        path: path(message),
        command: message.command.as_deref().unwrap_or("message"),
        payload: Cow::Owned(payload(message)),
        source: &message.source,
        external_id: message.external_id.as_deref(),
        reason,
        timestamp: message.at.millis(),
        seq: message.seq.0,
    };
    let mut text = serde_json::to_string(&line).expect("texts and numbers always serialise to JSON");
    text.push('\n');
    text
}

/// The line of a message, with its line feed.
pub fn render(message: &Message, delivery: &Delivery) -> String {
    let line = Line {
        id: message.id.as_str(),
        from: message.sender.id(),
        path: path(message),
        command: message.command.as_deref().unwrap_or("message"),
        payload: Cow::Owned(payload(message)),
        status: Status::of(delivery.state).as_str(),
        timestamp: message.at.millis(),
        source: &message.source,
        external_id: message.external_id.as_deref(),
        delivered_to: mailbox_text(&delivery.mailbox),
        handled: delivery.mailbox.session.is_none().then_some(!delivery.handled_by.is_empty()),
        seq: message.seq.0,
    };
    let mut text = serde_json::to_string(&line).expect("texts and numbers always serialise to JSON");
    text.push('\n');
    text
}

fn mailbox_text(mailbox: &Mailbox) -> Cow<'_, str> {
    match &mailbox.session {
        Some(session) => format!("{}:{session}", mailbox.agent).into(),
        None => mailbox.agent.as_str().into(),
    }
}

/// The fields that the hub reads from a line that it wrote itself.
#[derive(Debug, PartialEq, Eq)]
pub struct Written {
    pub id: MessageId,
    pub status: Status,
    /// 0 in a line of another program.
    pub seq: u64,
}

pub fn written(line: &str) -> Option<Written> {
    #[derive(Deserialize)]
    struct Fields<'a> {
        #[serde(borrow)]
        id: Cow<'a, str>,
        #[serde(borrow, default)]
        status: Cow<'a, str>,
        #[serde(default)]
        seq: u64,
    }
    let fields: Fields<'_> = serde_json::from_str(line).ok()?;
    let id = MessageId::parse(&fields.id).ok()?;
    Some(Written { id, status: Status::parse(&fields.status), seq: fields.seq })
}

/// A message of another program; an error if the line cannot be imported.
pub fn imported(line: &str) -> Result<ImportedMessage, &'static str> {
    #[derive(Deserialize)]
    #[serde(rename_all = "camelCase")]
    struct Fields {
        id: String,
        from: String,
        path: String,
        command: Option<String>,
        payload: Option<Box<RawValue>>,
        status: Option<String>,
        timestamp: f64,
        source: Option<String>,
        external_id: Option<String>,
    }
    let fields: Fields = serde_json::from_str(line).map_err(|_| "it is no message")?;
    let payload = fields.payload.map_or_else(|| "{}".into(), |payload| payload.get().to_owned());
    if !payload.starts_with('{') {
        return Err("its payload is not an object");
    }
    Ok(ImportedMessage {
        id: MessageId::parse(&fields.id).map_err(|_| "its id is not valid")?,
        at: Time((fields.timestamp.clamp(0.0, 1e15) as i64).saturating_mul(1000)),
        from: fields.from.into(),
        path: Path::parse(&fields.path).map_err(|_| "its path is not valid")?,
        command: fields.command.unwrap_or_else(|| "message".into()).into(),
        payload: Payload(payload.into()),
        source: fields.source.unwrap_or_else(|| "internal".into()).into(),
        external_id: fields.external_id.map(Into::into),
        is_delivered: Status::parse(fields.status.as_deref().unwrap_or_default()) != Status::Pending,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    const LINE: &str = r#"{"id":"0b7e-1","from":"slack","path":"slack/acme/ann","command":"slack.message",
        "payload":{"text":"hi"},"status":"delivered","timestamp":1708900000000,"source":"slack","externalId":null}"#;

    #[test]
    fn a_line_of_another_program_becomes_a_message() {
        let message = imported(LINE).unwrap();
        assert_eq!((message.id.as_str(), message.at), ("0b7e-1", Time(1_708_900_000_000_000)));
        assert!(message.is_delivered);
        assert_eq!(&*message.payload.0, r#"{"text":"hi"}"#);
        let written = written(LINE).unwrap();
        assert_eq!((written.status, written.seq), (Status::Delivered, 0));
    }

    #[test]
    fn invalid_lines_are_named() {
        for (line, reason) in [
            ("{\"id\":", "no message"),
            (r#"{"id":"../x","from":"a","path":"b","timestamp":1}"#, "id"),
            (r#"{"id":"x","from":"a","path":"","timestamp":1}"#, "path"),
            (r#"{"id":"x","from":"a","path":"b","timestamp":1,"payload":[1]}"#, "object"),
        ] {
            let error = imported(line).unwrap_err();
            assert!(error.contains(reason), "{error}");
        }
    }
}
