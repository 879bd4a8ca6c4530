//! Translates the requests of programs into commands and queries. Never panics, whatever the input.

mod sessions;

pub use sessions::{SessionRequest, ToolRequest, UserAnswer, UserAnswers};

use super::frames::program::{
    self as form, Acknowledge, ConfiguredAgent, MailboxPage, OfAgent, OfMailbox, OfRoom, PageOptions,
    Receive, RoomPage, Routed,
};
use super::frames::sessions::{ActiveOf, ConversationsOf, SessionsOf};
use super::frames::tools::{RefreshTools, SetInstructions, ToolsOf};
use super::frames::{Plain, ProgramFrame, RequestType};
use crate::frames::peek_type;
use crate::json::{self, JsonLimits};
use crate::turn_input;
use crate::words;
use parlor_model::command::{
    AcknowledgeMail, AgentProfile, ChangeAgent, ClearDeadLetters, CreateAgent, ReceiveMail, Relay,
    RemoveAgent, Route, Subscribe, TriggerTurn, Unsubscribe,
};
use parlor_model::query::{GetAgent, ListAgents, ListDeadLetters, ListMail, ListSubscriptions, MailPage};
use parlor_model::{AgentId, Mailbox, MessageId, Path, Pattern, Payload, RoomId, SessionId, Time};
use serde::Deserialize;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::time::Duration;

/// A frame of a program.
#[derive(Debug)]
pub enum ReceivedFrame {
    Request(RequestFrame),
    Unknown {
        /// Value of `type`; empty if the frame has none.
        kind: Box<str>,
        req_id: Option<Box<RawValue>>,
    },
}

#[derive(Debug)]
pub struct RequestFrame {
    pub kind: RequestType,
    /// `reqId`, echoed in the reply; `None` if absent or falsy.
    pub req_id: Option<Box<RawValue>>,
    pub about: EchoedFields,
    pub asked: Result<BrokerRequest, Box<str>>,
}

/// Fields of the request that the reply echoes unchanged.
#[derive(Debug, Default, Clone)]
pub struct EchoedFields {
    pub agent: Option<Box<str>>,
    pub session: Option<Box<str>>,
    pub pattern: Option<Box<str>>,
    /// `questionId` or `toolName`.
    pub subject: Option<Box<str>>,
}

#[derive(Debug)]
pub enum BrokerRequest {
    Auth {
        token: Box<str>,
    },
    Ping,
    Command(BrokerCommand),
    Query(BrokerQuery),
    Listen {
        mailbox: Mailbox,
    },
    Room(RoomId, RoomRequest),
    Instructions(AgentId, InstructionsRequest),
    Session(SessionRequest),
    Tool(ToolRequest),
    Answer(UserAnswer),
    /// Reads the folders of agents again.
    Rebuild,
}

/// Request about the `CLAUDE.md` of an agent.
#[derive(Debug)]
pub enum InstructionsRequest {
    Get,
    Set { content: Box<str> },
}

/// A command of any type that a frame can request.
#[derive(Debug)]
pub enum BrokerCommand {
    Route(Route),
    Relay(Relay),
    ReceiveMail(ReceiveMail),
    AcknowledgeMail(AcknowledgeMail),
    TriggerTurn(TriggerTurn),
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

pub fn read(text: &str, limits: JsonLimits) -> Result<ReceivedFrame, NotJson> {
    json::check(text, limits).map_err(|_| NotJson)?;
    let name = match peek_type(text).ok_or(NotJson)?.unwrap_or_default() {
        // The name of the request in the document of the original broker.
        name if name == "agent.tools.execute" => "agent.tool.execute".into(),
        name => name,
    };
    let Some(kind) = RequestType::parse(&name) else {
        return Ok(ReceivedFrame::Unknown { kind: name.into(), req_id: req_id(text) });
    };
    let mut about = EchoedFields::default();
    let (req_id, asked) = match ProgramFrame::parse(&name, text) {
        Ok(Some(frame)) => (echoed(frame.req_id()), decode(frame, &mut about)),
        Ok(None) => return Ok(ReceivedFrame::Unknown { kind: name.into(), req_id: req_id(text) }),
        Err(error) => (req_id(text), Err(sentence(&error))),
    };
    Ok(ReceivedFrame::Request(RequestFrame { kind, req_id, about, asked }))
}

/// Reads `reqId` of a frame whose other fields are unknown or invalid.
fn req_id(text: &str) -> Option<Box<RawValue>> {
    echoed(serde_json::from_str::<Plain<'_>>(text).ok()?.req_id)
}

/// Returns the `reqId` of the answer. As in the original broker, `0`, `""`, `false` and `null` are not echoed.
fn echoed(req_id: Option<&RawValue>) -> Option<Box<RawValue>> {
    req_id.filter(|raw| !matches!(raw.get(), "0" | "\"\"" | "false" | "null")).map(ToOwned::to_owned)
}

fn decode(frame: ProgramFrame<'_>, about: &mut EchoedFields) -> Result<BrokerRequest, Box<str>> {
    use MailboxKind::{Agent, Either, Session};
    Ok(match frame {
        ProgramFrame::Auth(form::Auth { token, .. }) => BrokerRequest::Auth { token: token.into() },
        ProgramFrame::Ping(_) => BrokerRequest::Ping,
        ProgramFrame::AgentList(_) => BrokerRequest::Query(BrokerQuery::ListAgents(ListAgents)),
        ProgramFrame::AgentGet(OfAgent { id, .. }) => {
            BrokerRequest::Query(BrokerQuery::GetAgent(GetAgent { id: named(id, about)? }))
        }
        ProgramFrame::AgentCreate(ConfiguredAgent { id, config, .. }) => {
            let (id, (profile, subscriptions)) = (named(id, about)?, profile(config)?);
            BrokerRequest::Command(BrokerCommand::CreateAgent(CreateAgent { id, profile, subscriptions }))
        }
        ProgramFrame::AgentUpdate(ConfiguredAgent { id, config, .. }) => {
            let (id, (profile, _)) = (named(id, about)?, profile(config)?);
            BrokerRequest::Command(BrokerCommand::ChangeAgent(ChangeAgent { id, profile }))
        }
        ProgramFrame::AgentDelete(OfAgent { id, .. }) => {
            BrokerRequest::Command(BrokerCommand::RemoveAgent(RemoveAgent { id: named(id, about)? }))
        }
        ProgramFrame::InstructionsGet(OfAgent { id, .. }) => {
            BrokerRequest::Instructions(named(id, about)?, InstructionsRequest::Get)
        }
        ProgramFrame::InstructionsSet(SetInstructions { id, content, .. }) => {
            let set = InstructionsRequest::Set { content: content.into() };
            BrokerRequest::Instructions(named(id, about)?, set)
        }
        ProgramFrame::ToolsList(ToolsOf { agent_id, .. }) => {
            BrokerRequest::Tool(ToolRequest::List { agent: named(agent_id, about)? })
        }
        ProgramFrame::ToolsRefresh(RefreshTools { agent_id, .. }) => {
            let agent = agent_id.map(|id| named(id, about)).transpose()?;
            BrokerRequest::Tool(ToolRequest::Refresh { agent })
        }
        ProgramFrame::ToolExecute(form) => BrokerRequest::Tool(sessions::execute(form, about)?),
        ProgramFrame::SessionList(SessionsOf { agent, .. }) => {
            BrokerRequest::Session(SessionRequest::List { agent: named(agent, about)? })
        }
        ProgramFrame::SessionStart(form) => BrokerRequest::Session(sessions::start(form, about)?),
        ProgramFrame::SessionContinue(form) => BrokerRequest::Session(sessions::continued(form, about)?),
        ProgramFrame::SessionAbort(form) => BrokerRequest::Session(sessions::abort(form, about)?),
        ProgramFrame::StatusActive(ActiveOf { agent_id, .. }) => {
            let agent = agent_id.map(|id| named(id, about)).transpose()?;
            BrokerRequest::Session(SessionRequest::Active { agent })
        }
        ProgramFrame::ConversationHistory(form) => BrokerRequest::Session(sessions::history(form, about)?),
        ProgramFrame::LogsSearch(form) => BrokerRequest::Session(sessions::search(form)?),
        ProgramFrame::LogsConversations(ConversationsOf { agent_prefix, .. }) => {
            let prefix = agent_prefix.unwrap_or_default().into();
            BrokerRequest::Session(SessionRequest::Conversations { prefix })
        }
        ProgramFrame::AskUserResponse(form) => BrokerRequest::Answer(sessions::answer(form, about)?),
        ProgramFrame::Rebuild(_) => BrokerRequest::Rebuild,
        ProgramFrame::Send(message) => {
            let path = Path::of_agent(&agent(required("to", message.to.as_deref())?)?);
            BrokerRequest::Command(BrokerCommand::Route(routed(message, path, "internal")?))
        }
        ProgramFrame::Route(message) => {
            let path = Path::parse(required("path", message.path.as_deref())?);
            let path = path.map_err(|error| Box::<str>::from(error.to_string()))?;
            BrokerRequest::Command(BrokerCommand::Route(routed(message, path, "external")?))
        }
        ProgramFrame::Broadcast(message) => {
            let broadcast = routed(message, Path::stored("agent/**"), "internal")?;
            BrokerRequest::Command(BrokerCommand::Route(broadcast))
        }
        ProgramFrame::Relay(message) => BrokerRequest::Command(BrokerCommand::Relay(relay(message)?)),
        ProgramFrame::RoomListen(OfRoom { room_id, .. }) => {
            BrokerRequest::Room(room(&room_id)?, RoomRequest::Listen)
        }
        ProgramFrame::RoomMembers(OfRoom { room_id, .. }) => {
            BrokerRequest::Room(room(&room_id)?, RoomRequest::Members)
        }
        ProgramFrame::RoomHistory(RoomPage { room_id, after, limit, .. }) => {
            let (most, default) = ROOM_HISTORY;
            let limit = limit.unwrap_or(default).clamp(1, most);
            BrokerRequest::Room(room(&room_id)?, RoomRequest::History { after: after.map(Into::into), limit })
        }
        ProgramFrame::Unmatched(form::Page { options, .. }) => {
            let list = ListDeadLetters { page: page(options) };
            BrokerRequest::Query(BrokerQuery::ListDeadLetters(list))
        }
        ProgramFrame::UnmatchedClear(_) => {
            BrokerRequest::Command(BrokerCommand::ClearDeadLetters(ClearDeadLetters))
        }
        ProgramFrame::Ack(Acknowledge { message_ids, agent_id, session_id, .. }) => {
            let mailbox = mailbox(agent_id, session_id, Either, about)?;
            let messages = message_ids.iter().map(|id| MessageId::parse(id)).collect::<Result<_, _>>();
            let messages = messages.map_err(|_| Box::<str>::from("messageIds must be ids of messages"))?;
            let acknowledge = AcknowledgeMail { mailbox, messages };
            BrokerRequest::Command(BrokerCommand::AcknowledgeMail(acknowledge))
        }
        ProgramFrame::TurnTrigger(form::TurnTrigger { agent_id, session_id, messages, .. }) => {
            let Mailbox { agent, session } = mailbox(agent_id, Some(session_id), Session, about)?;
            let session = session.unwrap_or_else(SessionId::main);
            let input = turn_input::decode(&messages.unwrap_or_default()).map_err(Box::<str>::from)?;
            BrokerRequest::Command(BrokerCommand::TriggerTurn(TriggerTurn { agent, session, input }))
        }
        ProgramFrame::Listen(form) => listen(form, Agent, about)?,
        ProgramFrame::SessionListen(form) => listen(form, Session, about)?,
        ProgramFrame::Receive(form) => receive(form, Agent, about)?,
        ProgramFrame::SessionReceive(form) => receive(form, Session, about)?,
        ProgramFrame::History(form) => history(form, Agent, about)?,
        ProgramFrame::SessionHistory(form) => history(form, Session, about)?,
        ProgramFrame::SubAdd(form) => subscribe(form, Agent, about)?,
        ProgramFrame::SessionSubAdd(form) => subscribe(form, Session, about)?,
        ProgramFrame::SubRemove(form) => unsubscribe(form, Agent, about)?,
        ProgramFrame::SessionSubRemove(form) => unsubscribe(form, Session, about)?,
        ProgramFrame::SubList(form) => list_subscriptions(form, Agent, about)?,
        ProgramFrame::SessionSubList(form) => list_subscriptions(form, Session, about)?,
    })
}

type Decoded = Result<BrokerRequest, Box<str>>;

fn listen(form: OfMailbox<'_>, addressed: MailboxKind, about: &mut EchoedFields) -> Decoded {
    let mailbox = mailbox(form.agent_id, form.session_id, addressed, about)?;
    Ok(BrokerRequest::Listen { mailbox })
}

fn receive(form: Receive<'_>, addressed: MailboxKind, about: &mut EchoedFields) -> Decoded {
    let mailbox = mailbox(form.agent_id, form.session_id, addressed, about)?;
    let lease = form.lease.map(Duration::from_millis);
    let receive = ReceiveMail { mailbox, limit: MAX_RECEIVE, lease };
    Ok(BrokerRequest::Command(BrokerCommand::ReceiveMail(receive)))
}

fn history(form: MailboxPage<'_>, addressed: MailboxKind, about: &mut EchoedFields) -> Decoded {
    let mailbox = mailbox(form.agent_id, form.session_id, addressed, about)?;
    Ok(BrokerRequest::Query(BrokerQuery::ListMail(ListMail { mailbox, page: page(form.options) })))
}

fn subscribe(form: form::Subscribe<'_>, addressed: MailboxKind, about: &mut EchoedFields) -> Decoded {
    let mailbox = mailbox(form.agent_id, form.session_id, addressed, about)?;
    let pattern = pattern(form.pattern, about)?;
    Ok(BrokerRequest::Command(BrokerCommand::Subscribe(Subscribe { mailbox, pattern })))
}

fn unsubscribe(form: form::Subscribe<'_>, addressed: MailboxKind, about: &mut EchoedFields) -> Decoded {
    let mailbox = mailbox(form.agent_id, form.session_id, addressed, about)?;
    let pattern = pattern(form.pattern, about)?;
    Ok(BrokerRequest::Command(BrokerCommand::Unsubscribe(Unsubscribe { mailbox, pattern })))
}

fn list_subscriptions(form: OfMailbox<'_>, addressed: MailboxKind, about: &mut EchoedFields) -> Decoded {
    let mailbox = mailbox(form.agent_id, form.session_id, addressed, about)?;
    Ok(BrokerRequest::Query(BrokerQuery::ListSubscriptions(ListSubscriptions { mailbox })))
}

/// Describes why a frame has not the fields of its type, without quoting it.
fn sentence(error: &serde_json::Error) -> Box<str> {
    let json::SchemaMismatch { field, rule } = json::schema_mismatch(error);
    match field {
        Some(field) => format!("{field} is required").into(),
        None => format!("a field {rule}").into(),
    }
}

fn parse<'a, T: Deserialize<'a>>(raw: &'a RawValue) -> Result<T, Box<str>> {
    serde_json::from_str(raw.get()).map_err(|error| sentence(&error))
}

fn agent(id: &str) -> Result<AgentId, Box<str>> {
    AgentId::parse(id).map_err(|_| format!("Invalid agent ID: {id:.200}").into())
}

fn named(id: Cow<'_, str>, about: &mut EchoedFields) -> Result<AgentId, Box<str>> {
    let parsed = agent(&id);
    about.agent = Some(id.into());
    parsed
}

#[derive(Clone, Copy, PartialEq)]
enum MailboxKind {
    Agent,
    Session,
    Either,
}

fn mailbox(
    agent_id: Cow<'_, str>,
    session_id: Option<Cow<'_, str>>,
    addressed: MailboxKind,
    about: &mut EchoedFields,
) -> Result<Mailbox, Box<str>> {
    let agent = named(agent_id, about)?;
    let session = match session_id.filter(|_| addressed != MailboxKind::Agent) {
        Some(id) => {
            let parsed = SessionId::parse(&id);
            let parsed = parsed.map_err(|_| Box::<str>::from(format!("Invalid session ID: {id:.200}")))?;
            about.session = Some(id.into());
            Some(parsed)
        }
        None if addressed == MailboxKind::Session => return Err("sessionId is required".into()),
        None => None,
    };
    Ok(Mailbox { agent, session })
}

fn pattern(pattern: Cow<'_, str>, about: &mut EchoedFields) -> Result<Pattern, Box<str>> {
    let parsed =
        Pattern::parse(&pattern).map_err(|error| error.to_string().replace("path", "pattern").into());
    about.pattern = Some(pattern.into());
    parsed
}

fn page(options: Option<PageOptions>) -> MailPage {
    let options = options.unwrap_or_default();
    MailPage {
        offset: 0,
        limit: options.limit.unwrap_or(DEFAULT_HISTORY).clamp(1, MAX_HISTORY),
        from: options.from_time.map(time_from),
        to: options.to_time.map(time_to),
    }
}

/// Beginning of a period, in milliseconds.
fn time_from(millis: i64) -> Time {
    Time(millis.saturating_mul(1000))
}

/// End of a period, in milliseconds, including the whole last millisecond.
fn time_to(millis: i64) -> Time {
    Time(time_from(millis).0.saturating_add(999))
}

/// Decodes `config`: name, description, subscriptions, and other keys, which the hub stores as settings.
fn profile(
    config: Option<BTreeMap<Cow<'_, str>, &RawValue>>,
) -> Result<(AgentProfile, Vec<Pattern>), Box<str>> {
    let mut profile = AgentProfile::default();
    let mut subscriptions = Vec::new();
    for (key, value) in config.unwrap_or_default() {
        match &*key {
            "name" => profile.name = parse(value)?,
            "description" => profile.description = parse(value)?,
            "subscriptions" => {
                for subscribed in parse::<Vec<Subscribed>>(value)? {
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

fn routed(message: Routed<'_>, path: Path, source: &str) -> Result<Route, Box<str>> {
    let from = required("from", message.from)?.into();
    let command = message.command.map_or_else(|| "message".into(), Into::into);
    let source = given_source(message.source.as_deref(), source)?;
    let external_id = message.external_id.map(Into::into);
    let payload = message.payload.map_or("{}", RawValue::get);
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

fn relay(form: form::Relay<'_>) -> Result<Relay, Box<str>> {
    let room = room(&form.room_id)?;
    let continues = form.continues.as_deref().map(MessageId::parse).transpose();
    Ok(Relay {
        room,
        author: form.author.into(),
        recipient: form.recipient.map(Into::into),
        observers: form.observers.unwrap_or_default().into_iter().map(Into::into).collect(),
        text: (&*form.text).into(),
        continues: continues.map_err(|_| Box::<str>::from("continues must be the id of a message"))?,
        source: given_source(form.source.as_deref(), "external")?,
        external_id: form.external_id.map(Into::into),
    })
}

/// Returns the source that a program names. The Ably adapter decodes the payload of messages with the source of
/// channels, so no program may name that source.
fn given_source(given: Option<&str>, default: &str) -> Result<Box<str>, Box<str>> {
    match given {
        Some(words::CHANNEL_SOURCE) => Err("source \"ably\" is reserved".into()),
        Some(given) => Ok(given.into()),
        None => Ok(default.into()),
    }
}

fn room(room_id: &str) -> Result<RoomId, Box<str>> {
    RoomId::parse(room_id).map_err(|_| format!("Invalid room ID: {room_id:.200}").into())
}

fn required<T>(name: &str, field: Option<T>) -> Result<T, Box<str>> {
    field.ok_or_else(|| format!("{name} is required").into())
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

    fn request(text: &str) -> RequestFrame {
        match read(text, LIMITS) {
            Ok(ReceivedFrame::Request(request)) => request,
            other => panic!("{text} is no request: {other:?}"),
        }
    }

    #[test]
    fn an_invalid_request_has_an_error_message_and_keeps_its_req_id() {
        let request = request(r#"{"type":"msg.route","from":"a","reqId":"r1"}"#);
        assert_eq!(request.req_id.as_deref().map(RawValue::get), Some("\"r1\""));
        assert_eq!(&*request.asked.unwrap_err(), "path is required");
        assert!(read("{not json", LIMITS).is_err());
    }

    #[test]
    fn the_source_of_channels_is_reserved() {
        for text in [
            r#"{"type":"msg.route","from":"a","path":"ably/a","source":"ably"}"#,
            r#"{"type":"msg.relay","roomId":"r","author":"a","text":"t","source":"ably"}"#,
        ] {
            assert_eq!(&*request(text).asked.unwrap_err(), "source \"ably\" is reserved");
        }
    }

    #[test]
    fn an_id_with_path_traversal_or_separators_is_rejected() {
        for id in ["../x", "a/../b", "a:b", "a--b/", ""] {
            let text = format!(r#"{{"type":"msg.receive","agentId":"{id}"}}"#);
            assert!(request(&text).asked.unwrap_err().starts_with("Invalid agent ID"), "{id}");
        }
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]

        #[test]
        fn no_input_causes_a_panic(text in "\\PC{0,200}|\\{\"type\":\"(msg|agent|session).[a-z]{0,8}\",\"[a-zA-Z]{0,9}\":\\PC{0,40}\\}") {
            let _ = read(&text, LIMITS);
        }
    }
}
