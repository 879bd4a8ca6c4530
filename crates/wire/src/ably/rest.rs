//! Bodies, queries and headers of Ably's REST API.

use super::capability::Capability;
use super::codes::{self, ErrorInfo};
use super::frames::{Format, Message, PresenceMessage};
use super::serial;
use parlor_model::{Position, Time};
use serde::{Deserialize, Serialize};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum number of messages in one request, and of results in one page.
pub const MAX_MESSAGES: usize = 1000;
const DEFAULT_LIMIT: usize = 100;

/// Body of an error response.
#[derive(Debug, Serialize, Deserialize)]
pub struct ErrorBody {
    pub error: ErrorInfo,
}

/// Decodes the body of `POST /channels/{channel}/messages`: one message or a list.
pub fn publish(body: &[u8], format: Format) -> Result<Vec<Message<'static>>, ErrorInfo> {
    let messages = if is_list(body, format) { format.decode(body)? } else { vec![format.decode(body)?] };
    match messages.len() {
        0 => Err(ErrorInfo::new(codes::BAD_REQUEST, "No messages were given")),
        n if n > MAX_MESSAGES => Err(ErrorInfo::new(codes::BAD_REQUEST, "Too many messages in one request")),
        _ => Ok(messages),
    }
}

/// Whether a body is a list. A body that is neither a list nor an object is rejected when it is decoded.
pub fn is_list(body: &[u8], format: Format) -> bool {
    match format {
        Format::Json => body.iter().find(|byte| !byte.is_ascii_whitespace()) == Some(&b'['),
        // Markers of msgpack arrays: fixarray, array 16, array 32.
        Format::Msgpack => matches!(body.first(), Some(0x90..=0x9f | 0xdc | 0xdd)),
    }
}

/// Answer to `POST /channels/{channel}/messages`.
#[derive(Debug, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Published<'a> {
    pub channel: Cow<'a, str>,
    pub message_id: Cow<'a, str>,
    pub serials: Vec<String>,
}

/// One element of the body of `POST /messages`.
#[derive(Debug, Deserialize)]
pub struct BatchSpec {
    #[serde(deserialize_with = "one_or_many")]
    pub channels: Vec<String>,
    #[serde(deserialize_with = "one_or_many")]
    pub messages: Vec<Message<'static>>,
}

fn one_or_many<'de, T: Deserialize<'de>, D: serde::Deserializer<'de>>(
    deserializer: D,
) -> Result<Vec<T>, D::Error> {
    struct OneOrMany<T>(std::marker::PhantomData<T>);

    impl<'de, T: Deserialize<'de>> serde::de::Visitor<'de> for OneOrMany<T> {
        type Value = Vec<T>;

        fn expecting(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
            f.write_str("a value or a list")
        }

        fn visit_seq<A: serde::de::SeqAccess<'de>>(self, list: A) -> Result<Vec<T>, A::Error> {
            Vec::deserialize(serde::de::value::SeqAccessDeserializer::new(list))
        }

        fn visit_map<A: serde::de::MapAccess<'de>>(self, map: A) -> Result<Vec<T>, A::Error> {
            T::deserialize(serde::de::value::MapAccessDeserializer::new(map)).map(|one| vec![one])
        }

        fn visit_str<E: serde::de::Error>(self, text: &str) -> Result<Vec<T>, E> {
            T::deserialize(serde::de::value::StrDeserializer::new(text)).map(|one| vec![one])
        }
    }
    deserializer.deserialize_any(OneOrMany(std::marker::PhantomData))
}

/// Result of one channel of a batch.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum BatchItem<'a> {
    Published(Published<'a>),
    Failed { channel: Cow<'a, str>, error: ErrorInfo },
}

/// Result of one element of a batch, from version 3 on; version 2 has a flat list of [`BatchItem`].
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchResult<'a> {
    pub success_count: usize,
    pub failure_count: usize,
    pub results: Vec<BatchItem<'a>>,
}

impl<'a> BatchResult<'a> {
    pub fn of(results: Vec<BatchItem<'a>>) -> Self {
        let failure_count = results.iter().filter(|item| matches!(item, BatchItem::Failed { .. })).count();
        Self { success_count: results.len() - failure_count, failure_count, results }
    }
}

/// Result of one channel of `GET /presence`.
#[derive(Debug, Serialize)]
#[serde(untagged)]
pub enum BatchPresenceItem<'a> {
    Members { channel: Cow<'a, str>, presence: Vec<PresenceMessage<'a>> },
    Failed { channel: Cow<'a, str>, error: ErrorInfo },
}

/// Answer to `GET /presence`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct BatchPresence<'a> {
    pub success_count: usize,
    pub failure_count: usize,
    pub results: Vec<BatchPresenceItem<'a>>,
}

impl<'a> BatchPresence<'a> {
    pub fn of(results: Vec<BatchPresenceItem<'a>>) -> Self {
        let is_failed = |item: &&BatchPresenceItem<'_>| matches!(item, BatchPresenceItem::Failed { .. });
        let failure_count = results.iter().filter(is_failed).count();
        Self { success_count: results.len() - failure_count, failure_count, results }
    }
}

/// Answer to `GET /channels/{channel}`.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ChannelStatus<'a> {
    pub channel_id: &'a str,
    pub status: Status,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Status {
    pub is_active: bool,
    pub occupancy: Occupancy,
}

#[derive(Debug, Serialize)]
pub struct Occupancy {
    pub metrics: Metrics,
}

#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Metrics {
    pub connections: u64,
    pub publishers: u64,
    pub subscribers: u64,
    pub presence_connections: u64,
    pub presence_members: u64,
    pub presence_subscribers: u64,
}

/// Body of `POST /keys/{key}/revokeTokens`. A target is `clientId:<id>`, `revocationKey:<key>` or `channel:<name>`.
#[derive(Debug, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct RevokeTokens {
    pub targets: Vec<String>,
    pub issued_before: Option<i64>,
    #[serde(default)]
    pub allow_reauth_margin: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Direction {
    Backwards,
    Forwards,
}

/// Query of a history request.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct HistoryQuery {
    pub limit: usize,
    /// Earliest and latest time, inclusive.
    pub start: Option<Time>,
    pub end: Option<Time>,
    pub direction: Direction,
    /// Position up to which messages are returned: `channelSerial` of an attachment.
    pub until: Option<Position>,
    /// Position after which the page begins, in the direction of the request.
    pub cursor: Option<Position>,
}

/// Name of the parameter that the hub adds to links to further pages.
const CURSOR: &str = "_cursor";

impl HistoryQuery {
    pub fn parse<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Result<Self, ErrorInfo> {
        let error = |message: &'static str| ErrorInfo::new(codes::INVALID_PARAMETER, message);
        let mut query = Self {
            limit: DEFAULT_LIMIT,
            start: None,
            end: None,
            direction: Direction::Backwards,
            until: None,
            cursor: None,
        };
        let time = |value: &str| {
            let millis = value.parse::<i64>().ok().filter(|millis| (0..=i64::MAX / 1000).contains(millis));
            millis
                .map(|millis| Time(millis * 1000))
                .ok_or_else(|| error("start and end must be times in milliseconds"))
        };
        for (name, value) in pairs {
            match name {
                "limit" => {
                    let limit = value.parse().ok().filter(|limit| (1..=MAX_MESSAGES).contains(limit));
                    query.limit = limit.ok_or_else(|| error("limit must be between 1 and 1000"))?;
                }
                "start" => query.start = Some(time(value)?),
                // The time has milliseconds, but messages have microseconds.
                "end" => query.end = Some(Time(time(value)?.0.saturating_add(999))),
                "direction" => {
                    query.direction = match value {
                        "backwards" => Direction::Backwards,
                        "forwards" => Direction::Forwards,
                        _ => return Err(error("direction must be backwards or forwards")),
                    }
                }
                "from_serial" | "fromSerial" => query.until = Some(serial::parse_channel_serial(value)?),
                CURSOR => query.cursor = Some(serial::parse_channel_serial(value)?),
                _ => {}
            }
        }
        if query.start.is_some_and(|start| query.end.is_some_and(|end| start > end)) {
            return Err(error("start must not be after end"));
        }
        Ok(query)
    }
}

/// Returns the value of `Link` for one page. `resource` is the last segment of the URL, which the client matches
/// with `^\./(\w+)\?(.*)$`. `query` are the decoded parameters of the request; `next` is the last position of
/// the page, if more results follow.
pub fn link(resource: &str, query: &[(&str, &str)], next: Option<Position>) -> String {
    let page = |cursor: Option<&str>, relation: &str| {
        let mut pairs: Vec<(&str, &str)> =
            query.iter().copied().filter(|(name, _)| *name != CURSOR).collect();
        pairs.extend(cursor.map(|cursor| (CURSOR, cursor)));
        let limit = DEFAULT_LIMIT.to_string();
        if !pairs.iter().any(|(name, _)| *name == "limit") {
            pairs.push(("limit", &limit));
        }
        let pairs: Vec<String> =
            pairs.iter().map(|(name, value)| format!("{}={}", escape(name), escape(value))).collect();
        format!("<./{resource}?{}>; rel=\"{relation}\"", pairs.join("&"))
    };
    let current = query.iter().find(|(name, _)| *name == CURSOR).map(|(_, value)| *value);
    let mut links = vec![page(None, "first"), page(current, "current")];
    if let Some(next) = next {
        links.push(page(Some(&serial::channel_serial(next)), "next"));
    }
    links.join(",")
}

/// Percent-encodes a query parameter, so that it can end neither the link nor the header.
fn escape(text: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || matches!(byte, b'-' | b'_' | b'.' | b'~');
    text.bytes()
        .map(|byte| if plain(byte) { char::from(byte).to_string() } else { format!("%{byte:02X}") })
        .collect()
}

/// Answer to a request with `envelope=json`: browsers cannot read the `Link` header.
#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Envelope<'a, T> {
    pub status_code: u16,
    pub headers: BTreeMap<&'a str, String>,
    pub response: T,
}

/// Answer of the hub to a stats request: the hub keeps no statistics.
pub const NO_STATS: [(); 0] = [];

/// Capability of an account's token for its rooms, as `/api/ably/token` grants it.
pub fn account_capability<'a>(rooms: impl IntoIterator<Item = &'a parlor_model::RoomId>) -> Capability {
    use super::capability::Operation::{History, Presence, Publish, Subscribe};
    let rooms: Vec<String> = rooms.into_iter().map(|room| format!("jaibber:project:{room}")).collect();
    let presence: (&str, &[_]) = (super::channel::GLOBAL_PRESENCE, &[Presence, Publish, Subscribe]);
    let of_room = |room| -> (&str, &[_]) { (room, &[History, Presence, Publish, Subscribe]) };
    Capability::of(rooms.iter().map(|room| of_room(room)).chain([presence]))
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{Epoch, Seq};

    #[test]
    fn one_message_and_a_list_are_published() {
        let one = br#"{"name":"a","data":"x"}"#;
        let list = br#" [{"name":"a","data":"x"},{"data":"AQL6","encoding":"base64"}]"#;
        assert_eq!(publish(one, Format::Json).unwrap().len(), 1);
        let messages = publish(list, Format::Json).unwrap();
        assert_eq!(publish(&Format::Msgpack.encode(&messages), Format::Msgpack).unwrap(), messages);
        assert_eq!(publish(&Format::Msgpack.encode(&messages[0]), Format::Msgpack).unwrap(), messages[..1]);
        assert_eq!(publish(b"[]", Format::Json).unwrap_err().code, 40000);
        assert_eq!(publish(br#"{"data":1}"#, Format::Json).unwrap_err().code, 40000);
        assert_eq!(publish(br#"{"data":"?","encoding":"base64"}"#, Format::Json).unwrap_err().code, 40013);
    }

    #[test]
    fn a_batch_names_one_or_many_channels() {
        for body in [
            r#"[{"channels":"a","messages":{"data":"x"}}]"#,
            r#"[{"channels":["a"],"messages":[{"data":"x"}]}]"#,
        ] {
            let batch: Vec<BatchSpec> = Format::Json.decode(body.as_bytes()).unwrap();
            assert_eq!((&*batch[0].channels, batch[0].messages.len()), (&["a".to_owned()][..], 1));
        }
    }

    #[test]
    fn links_have_the_form_that_clients_parse() {
        let next = Position { epoch: Epoch(31), seq: Seq(7) };
        let query = [("limit", "2"), ("x", "a>\r\n&b")];
        assert_eq!(
            link("messages", &query, Some(next)),
            "<./messages?limit=2&x=a%3E%0D%0A%26b>; rel=\"first\",<./messages?limit=2&x=a%3E%0D%0A%26b>; \
             rel=\"current\",<./messages?limit=2&x=a%3E%0D%0A%26b&_cursor=0000001f-0000000000000007>; rel=\"next\""
        );
        assert_eq!(link("presence", &[], None).matches("rel=").count(), 2);
    }

    #[test]
    fn history_queries_are_checked() {
        let parse = |pairs: &[(&'static str, &'static str)]| HistoryQuery::parse(pairs.iter().copied());
        let query =
            parse(&[("limit", "2"), ("direction", "forwards"), ("start", "1"), ("end", "2")]).unwrap();
        assert_eq!((query.limit, query.direction, query.end), (2, Direction::Forwards, Some(Time(2999))));
        for bad in
            [("limit", "0"), ("limit", "1001"), ("start", "x"), ("direction", "up"), ("from_serial", "1")]
        {
            assert_eq!(parse(&[bad]).unwrap_err().code, 40003, "{bad:?}");
        }
    }
}
