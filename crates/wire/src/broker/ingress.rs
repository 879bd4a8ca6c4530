//! Decodes broker frames into commands and queries. Never panics, whatever the input.

use crate::json::{self, JsonLimits};
use parlor_model::command::{
    AcknowledgeMail, AgentProfile, ChangeAgent, ClearDeadLetters, CreateAgent, ReceiveMail, Relay,
    RemoveAgent, Route, Subscribe, Unsubscribe,
};
use parlor_model::query::{GetAgent, ListAgents, ListDeadLetters, ListMail, ListSubscriptions, MailPage};
use parlor_model::{AgentId, Mailbox, MessageId, Path, Pattern, Payload, RoomId, SessionId, Time};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

#[derive(Debug)]
pub struct RequestFrame {
    /// Value of `type`; empty if the frame has none.
    pub kind: Box<str>,
    /// Raw JSON of `reqId`, echoed in the reply; `None` if absent or falsy.
    pub req_id: Option<Box<str>>,
    pub about: EchoedFields,
    pub asked: Result<BrokerRequest, Box<str>>,
}

/// Fields of the request that the reply echoes unchanged.
#[derive(Debug, Default, Clone)]
pub struct EchoedFields {
    pub agent: Option<Box<str>>,
    pub session: Option<Box<str>>,
    pub pattern: Option<Box<str>>,
}

#[derive(Debug)]
pub enum BrokerRequest {
    Auth { token: Box<str> },
    Ping,
    Command(BrokerCommand),
    Query(BrokerQuery),
    Listen { mailbox: Mailbox },
    Room(RoomId, RoomRequest),
    Unknown,
}

/// A command of any type that a frame can request.
#[derive(Debug)]
pub enum BrokerCommand {
    Route(Route),
    Relay(Relay),
    ReceiveMail(ReceiveMail),
    AcknowledgeMail(AcknowledgeMail),
    Subscribe(Subscribe),
    Unsubscribe(Unsubscribe),
    ClearDeadLetters(ClearDeadLetters),
    CreateAgent(CreateAgent),
    ChangeAgent(ChangeAgent),
    RemoveAgent(RemoveAgent),
}

/// A query of any type that a frame can request.
#[derive(Debug)]
pub enum BrokerQuery {
    ListSubscriptions(ListSubscriptions),
    ListMail(ListMail),
    ListDeadLetters(ListDeadLetters),
    ListAgents(ListAgents),
    GetAgent(GetAgent),
}

/// Request about a room that the caller follows.
#[derive(Debug)]
pub enum RoomRequest {
    Listen,
    Members,
    History {
        /// Text of a position; `None` starts with the first message.
        after: Option<Box<str>>,
        limit: usize,
    },
}

/// Maximum number of messages returned by one `msg.receive`.
pub const MAX_RECEIVE: usize = 100;
const DEFAULT_HISTORY: usize = 100;
const MAX_HISTORY: usize = 1000;
/// Maximum and default number of messages returned by one `msg.room.history`.
const ROOM_HISTORY: (usize, usize) = (200, 100);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NotJson;

pub fn read(text: &str, limits: JsonLimits) -> Result<RequestFrame, NotJson> {
    json::check(text, limits).map_err(|_| NotJson)?;
    let head: FrameFields = serde_json::from_str(text).map_err(|_| NotJson)?;
    let kind: Box<str> = head.kind.as_deref().unwrap_or("").into();
    let req_id = head.req_id.map(RawValue::get).filter(|raw| !is_falsy(raw)).map(Into::into);
    let mut about = EchoedFields::default();
    let asked = decode(&kind, text, &head, &mut about);
    Ok(RequestFrame { kind, req_id, about, asked })
}

/// Returns whether `reqId` is not echoed, as in the original broker: `0`, `""`, `false` and `null`.
fn is_falsy(raw: &str) -> bool {
    matches!(raw, "0" | "\"\"" | "false" | "null")
}

fn decode(
    kind: &str,
    text: &str,
    head: &FrameFields<'_>,
    about: &mut EchoedFields,
) -> Result<BrokerRequest, Box<str>> {
    Ok(match kind {
        "auth" => {
            let Auth { token } = parse(text)?;
            BrokerRequest::Auth { token }
        }
        "ping" => BrokerRequest::Ping,
        "agent.list" => BrokerRequest::Query(BrokerQuery::ListAgents(ListAgents)),
        "agent.get" => BrokerRequest::Query(BrokerQuery::GetAgent(GetAgent { id: named(text, about)? })),
        "agent.create" => BrokerRequest::Command(BrokerCommand::CreateAgent(create(text, about)?)),
        "agent.update" => {
            let (id, (profile, _)) = (named(text, about)?, profile(text)?);
            BrokerRequest::Command(BrokerCommand::ChangeAgent(ChangeAgent { id, profile }))
        }
        "agent.delete" => {
            let remove = RemoveAgent { id: named(text, about)? };
            BrokerRequest::Command(BrokerCommand::RemoveAgent(remove))
        }
        "msg.send" => BrokerRequest::Command(BrokerCommand::Route(send(head)?)),
        "msg.route" => BrokerRequest::Command(BrokerCommand::Route(route(head)?)),
        "msg.broadcast" => {
            let broadcast = routed(head, Path::stored("agent/**"), "internal")?;
            BrokerRequest::Command(BrokerCommand::Route(broadcast))
        }
        "msg.relay" => BrokerRequest::Command(BrokerCommand::Relay(relay(text)?)),
        "msg.room.listen" => BrokerRequest::Room(room(text)?, RoomRequest::Listen),
        "msg.room.members" => BrokerRequest::Room(room(text)?, RoomRequest::Members),
        "msg.room.history" => {
            let RoomHistory { after, limit } = parse(text)?;
            let (most, default) = ROOM_HISTORY;
            let limit = limit.unwrap_or(default).clamp(1, most);
            BrokerRequest::Room(room(text)?, RoomRequest::History { after, limit })
        }
        "msg.unmatched" => {
            BrokerRequest::Query(BrokerQuery::ListDeadLetters(ListDeadLetters { page: page(text)? }))
        }
        "msg.unmatched.clear" => BrokerRequest::Command(BrokerCommand::ClearDeadLetters(ClearDeadLetters)),
        "msg.ack" => {
            let Acknowledged { message_ids } = parse(text)?;
            let mailbox = mailbox(text, MailboxKind::Either, about)?;
            let messages = message_ids.iter().map(|id| MessageId::parse(id)).collect::<Result<_, _>>();
            let messages = messages.map_err(|_| Box::<str>::from("messageIds must be ids of messages"))?;
            let acknowledge = AcknowledgeMail { mailbox, messages };
            BrokerRequest::Command(BrokerCommand::AcknowledgeMail(acknowledge))
        }
        _ => {
            let (verb, addressed) = match kind.strip_prefix("msg.session.") {
                Some(verb) => (verb, MailboxKind::Session),
                None => (kind.strip_prefix("msg.").unwrap_or_default(), MailboxKind::Agent),
            };
            return mailbox_request(verb, addressed, text, about);
        }
    })
}

/// Decodes requests that exist for the mailboxes of agents (`msg.*`) and of sessions (`msg.session.*`).
fn mailbox_request(
    verb: &str,
    addressed: MailboxKind,
    text: &str,
    about: &mut EchoedFields,
) -> Result<BrokerRequest, Box<str>> {
    Ok(match verb {
        "listen" => BrokerRequest::Listen { mailbox: mailbox(text, addressed, about)? },
        "receive" => {
            let mailbox = mailbox(text, addressed, about)?;
            let Lease { lease } = parse(text)?;
            let lease = lease.map(Duration::from_millis);
            let receive = ReceiveMail { mailbox, limit: MAX_RECEIVE, lease };
            BrokerRequest::Command(BrokerCommand::ReceiveMail(receive))
        }
        "history" => {
            let (mailbox, page) = (mailbox(text, addressed, about)?, page(text)?);
            BrokerRequest::Query(BrokerQuery::ListMail(ListMail { mailbox, page }))
        }
        "sub.add" => {
            let (mailbox, pattern) = (mailbox(text, addressed, about)?, pattern(text, about)?);
            BrokerRequest::Command(BrokerCommand::Subscribe(Subscribe { mailbox, pattern }))
        }
        "sub.remove" => {
            let (mailbox, pattern) = (mailbox(text, addressed, about)?, pattern(text, about)?);
            BrokerRequest::Command(BrokerCommand::Unsubscribe(Unsubscribe { mailbox, pattern }))
        }
        "sub.list" => {
            let list = ListSubscriptions { mailbox: mailbox(text, addressed, about)? };
            BrokerRequest::Query(BrokerQuery::ListSubscriptions(list))
        }
        _ => BrokerRequest::Unknown,
    })
}

fn parse<'a, T: Deserialize<'a>>(text: &'a str) -> Result<T, Box<str>> {
    serde_json::from_str(text).map_err(|error| {
        let json::SchemaMismatch { field, rule } = json::schema_mismatch(&error);
        match field {
            Some(field) => format!("{field} is required").into(),
            None => format!("a field {rule}").into(),
        }
    })
}

fn agent(id: &str) -> Result<AgentId, Box<str>> {
    AgentId::parse(id).map_err(|_| format!("Invalid agent ID: {id:.200}").into())
}

fn named(text: &str, about: &mut EchoedFields) -> Result<AgentId, Box<str>> {
    let Named { id } = parse(text)?;
    about.agent = Some(id.clone());
    agent(&id)
}

#[derive(Clone, Copy, PartialEq)]
enum MailboxKind {
    Agent,
    Session,
    Either,
}

fn mailbox(text: &str, addressed: MailboxKind, about: &mut EchoedFields) -> Result<Mailbox, Box<str>> {
    let MailboxForm { agent_id, session_id } = parse(text)?;
    let session_id = session_id.filter(|_| addressed != MailboxKind::Agent);
    about.agent = Some(agent_id.clone());
    about.session = session_id.clone();
    let agent = agent(&agent_id)?;
    let session = match session_id {
        Some(id) => {
            let parsed = SessionId::parse(&id);
            Some(parsed.map_err(|_| Box::<str>::from(format!("Invalid session ID: {id:.200}")))?)
        }
        None if addressed == MailboxKind::Session => return Err("sessionId is required".into()),
        None => None,
    };
    Ok(Mailbox { agent, session })
}

fn pattern(text: &str, about: &mut EchoedFields) -> Result<Pattern, Box<str>> {
    let Patterned { pattern } = parse(text)?;
    let parsed =
        Pattern::parse(&pattern).map_err(|error| error.to_string().replace("path", "pattern").into());
    about.pattern = Some(pattern);
    parsed
}

fn page(text: &str) -> Result<MailPage, Box<str>> {
    let Paged { options } = parse(text)?;
    let options = options.unwrap_or_default();
    let time = |millis: i64| Time(millis.saturating_mul(1000));
    Ok(MailPage {
        limit: options.limit.unwrap_or(DEFAULT_HISTORY).clamp(1, MAX_HISTORY),
        from: options.from_time.map(time),
        // Includes the whole last millisecond.
        to: options.to_time.map(|millis| Time(time(millis).0.saturating_add(999))),
    })
}

fn create(text: &str, about: &mut EchoedFields) -> Result<CreateAgent, Box<str>> {
    let id = named(text, about)?;
    let (profile, subscriptions) = profile(text)?;
    Ok(CreateAgent { id, profile, subscriptions })
}

/// Decodes `config`: name, description, subscriptions, and other keys, which the hub stores as settings.
fn profile(text: &str) -> Result<(AgentProfile, Vec<Pattern>), Box<str>> {
    let Configured { config } = parse(text)?;
    let mut profile = AgentProfile::default();
    let mut subscriptions = Vec::new();
    for (key, value) in config.unwrap_or_default() {
        match &*key {
            "name" => profile.name = parse(value.get())?,
            "description" => profile.description = parse(value.get())?,
            "subscriptions" => {
                for subscribed in parse::<Vec<Subscribed>>(value.get())? {
                    let (Subscribed::Plain(pattern) | Subscribed::Dated { pattern }) = subscribed;
                    let parsed = Pattern::parse(&pattern);
                    subscriptions.push(parsed.map_err(|error| Box::<str>::from(error.to_string()))?);
                }
            }
            // The request and the caller determine id and owner; values in `config` are ignored.
            "id" | "owner" => {}
            _ => profile.settings.push((key.as_ref().into(), Payload(value.get().into()))),
        }
    }
    Ok((profile, subscriptions))
}

fn send(head: &FrameFields<'_>) -> Result<Route, Box<str>> {
    let to: Box<str> = required("to", head.to)?;
    routed(head, Path::of_agent(&agent(&to)?), "internal")
}

fn route(head: &FrameFields<'_>) -> Result<Route, Box<str>> {
    let path: Cow<'_, str> = required("path", head.path)?;
    let path = Path::parse(&path).map_err(|error| Box::<str>::from(error.to_string()))?;
    routed(head, path, "external")
}

fn routed(head: &FrameFields<'_>, path: Path, source: &str) -> Result<Route, Box<str>> {
    let from = required("from", head.from)?;
    let optional = |field: Option<&RawValue>| field.map(|json| parse::<Box<str>>(json.get())).transpose();
    let command = optional(head.command)?.unwrap_or_else(|| "message".into());
    let source = optional(head.source)?.unwrap_or_else(|| source.into());
    let external_id = optional(head.external_id)?;
    let payload = head.payload.map_or("{}", RawValue::get);
    if !payload.starts_with('{') {
        return Err("payload must be an object".into());
    }
    // Only a room displays the text of a payload.
    let text = match path.strip_domain("room") {
        Some(_) => serde_json::from_str::<Readable>(payload).ok().and_then(|readable| readable.text),
        None => None,
    };
    let (payload, text) = (Payload(payload.into()), text.map(Into::into));
    Ok(Route { from, path, command, payload, text, source, external_id })
}

fn relay(text: &str) -> Result<Relay, Box<str>> {
    let form: RelayForm = parse(text)?;
    let continues = form.continues.as_deref().map(MessageId::parse).transpose();
    Ok(Relay {
        room: room(text)?,
        author: form.author,
        recipient: form.recipient,
        observers: form.observers.unwrap_or_default(),
        text: form.text.into(),
        continues: continues.map_err(|_| Box::<str>::from("continues must be the id of a message"))?,
        source: form.source.unwrap_or_else(|| "external".into()),
        external_id: form.external_id,
    })
}

fn room(text: &str) -> Result<RoomId, Box<str>> {
    let InRoom { room_id } = parse(text)?;
    RoomId::parse(&room_id).map_err(|_| format!("Invalid room ID: {room_id:.200}").into())
}

fn required<'a, T: Deserialize<'a>>(name: &str, field: Option<&'a RawValue>) -> Result<T, Box<str>> {
    match field {
        Some(json) => parse(json.get()),
        None => Err(format!("{name} is required").into()),
    }
}

/// Common fields of all frames, and the fields of the most frequent frames. Parsed in one pass; the raw
/// values are decoded only for frame types that use them.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct FrameFields<'a> {
    #[serde(borrow, rename = "type", default)]
    kind: Option<Cow<'a, str>>,
    #[serde(borrow)]
    req_id: Option<&'a RawValue>,
    #[serde(borrow)]
    from: Option<&'a RawValue>,
    #[serde(borrow)]
    to: Option<&'a RawValue>,
    #[serde(borrow)]
    path: Option<&'a RawValue>,
    #[serde(borrow)]
    command: Option<&'a RawValue>,
    #[serde(borrow)]
    payload: Option<&'a RawValue>,
    #[serde(borrow)]
    source: Option<&'a RawValue>,
    #[serde(borrow)]
    external_id: Option<&'a RawValue>,
}

#[derive(Deserialize)]
struct Auth {
    token: Box<str>,
}

#[derive(Deserialize)]
struct Named {
    id: Box<str>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct MailboxForm {
    agent_id: Box<str>,
    session_id: Option<Box<str>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct InRoom {
    room_id: Box<str>,
}

#[derive(Deserialize)]
struct RoomHistory {
    after: Option<Box<str>>,
    limit: Option<usize>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct RelayForm {
    author: Box<str>,
    recipient: Option<Box<str>>,
    observers: Option<Vec<Box<str>>>,
    text: Box<str>,
    continues: Option<Box<str>>,
    source: Option<Box<str>>,
    external_id: Option<Box<str>>,
}

#[derive(Deserialize)]
struct Lease {
    lease: Option<u64>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Acknowledged {
    message_ids: Vec<Box<str>>,
}

#[derive(Deserialize)]
struct Patterned {
    pattern: Box<str>,
}

#[derive(Deserialize)]
struct Paged {
    options: Option<Options>,
}

#[derive(Deserialize, Default)]
#[serde(rename_all = "camelCase")]
struct Options {
    limit: Option<usize>,
    from_time: Option<i64>,
    to_time: Option<i64>,
}

#[derive(Deserialize)]
struct Configured<'a> {
    #[serde(borrow)]
    config: Option<BTreeMap<Cow<'a, str>, &'a RawValue>>,
}

/// A subscription pattern: plain text, or an object as the original broker stores it.
#[derive(Deserialize)]
#[serde(untagged)]
enum Subscribed {
    Plain(Box<str>),
    Dated { pattern: Box<str> },
}

#[derive(Deserialize)]
struct Readable {
    text: Option<Box<str>>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LIMITS: JsonLimits = JsonLimits { depth: 32, items: 1000 };

    #[test]
    fn an_invalid_request_has_an_error_message_and_keeps_its_req_id() {
        let request = read(r#"{"type":"msg.route","from":"a","reqId":"r1"}"#, LIMITS).unwrap();
        assert_eq!(request.req_id.as_deref(), Some("\"r1\""));
        assert_eq!(&*request.asked.unwrap_err(), "path is required");
        assert!(read("{not json", LIMITS).is_err());
    }

    #[test]
    fn an_id_with_path_traversal_or_separators_is_rejected() {
        for id in ["../x", "a/../b", "a:b", "a--b/", ""] {
            let text = format!(r#"{{"type":"msg.receive","agentId":"{id}"}}"#);
            let request = read(&text, LIMITS).unwrap();
            assert!(request.asked.unwrap_err().starts_with("Invalid agent ID"), "{id}");
        }
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn no_input_causes_a_panic(text in "\\PC{0,200}|\\{\"type\":\"(msg|agent).[a-z]{0,8}\",\"[a-zA-Z]{0,9}\":\\PC{0,40}\\}") {
            let _ = read(&text, LIMITS);
        }
    }
}
