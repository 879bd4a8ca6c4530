//! Bodies for mailboxes of agents and their sessions, and for dead letters.

use crate::frames::given;
use crate::time::iso;
use parlor_model::query::{AgentMailboxes, MailboxCard};
use parlor_model::{
    AutoRun, DeliveryState, Destination, Mailbox, Message, Session, SessionRef, Subscription, Time,
};
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;
use std::borrow::Cow;
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

/// Mailboxes of an agent.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct AgentSessions<'a> {
    /// Automatic turns of sessions without a setting of their own.
    #[schema(required)]
    pub auto_run: Option<AutoRunSetting<'a>>,
    /// The agent's own mailbox.
    pub mailbox: MailboxSummary<'a>,
    /// Sessions in order of creation.
    pub sessions: Vec<AgentSession<'a>>,
}

impl<'a> From<&'a AgentMailboxes> for AgentSessions<'a> {
    fn from(found: &'a AgentMailboxes) -> Self {
        let own = found.mailboxes.iter().find(|card| card.session.is_none());
        let sessions = found
            .mailboxes
            .iter()
            .filter_map(|card| Some(AgentSession::new(card.session.as_ref()?, MailboxSummary::from(card))));
        Self {
            auto_run: found.auto_run.as_ref().map(AutoRunSetting::from),
            mailbox: own.map(MailboxSummary::from).unwrap_or_default(),
            sessions: sessions.collect(),
        }
    }
}

/// Subscriptions of a mailbox and the numbers of its messages that are not settled.
#[derive(Serialize, ToSchema, Default)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct MailboxSummary<'a> {
    /// Path patterns in the order in which they were added.
    pub subscriptions: Vec<&'a str>,
    /// Messages that a consumer can receive now.
    pub pending: usize,
    /// Messages that a consumer received with a lease and has not acknowledged yet.
    pub leased: usize,
}

impl<'a> From<&'a MailboxCard> for MailboxSummary<'a> {
    fn from(card: &'a MailboxCard) -> Self {
        Self::new(&card.subscriptions, card.counts.pending, card.counts.leased)
    }
}

impl<'a> MailboxSummary<'a> {
    fn new(subscriptions: &'a [Subscription], pending: usize, leased: usize) -> Self {
        let subscriptions = subscriptions.iter().map(|subscription| subscription.pattern.as_str()).collect();
        Self { subscriptions, pending, leased }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct AgentSession<'a> {
    pub id: &'a str,
    pub title: &'a str,
    pub is_default: bool,
    #[schema(format = DateTime)]
    pub created_at: String,
    /// Start of the latest turn; `null` if no turn has started.
    #[schema(required, format = DateTime)]
    pub last_used_at: Option<String>,
    /// Automatic turns of the session; `null` to use the setting of the agent.
    #[schema(required)]
    pub auto_run: Option<AutoRunSetting<'a>>,
    /// Room in which replies and tool calls of the session are posted.
    #[schema(required)]
    pub room_id: Option<&'a str>,
    pub mailbox: MailboxSummary<'a>,
}

impl<'a> AgentSession<'a> {
    fn new(session: &'a Session, mailbox: MailboxSummary<'a>) -> Self {
        Self {
            id: session.id.as_str(),
            title: &session.title,
            is_default: session.is_default,
            created_at: iso(session.created_at),
            last_used_at: session.last_used_at.map(iso),
            auto_run: session.auto_run.as_ref().map(AutoRunSetting::from),
            room_id: session.room.as_ref().map(|room| room.as_str()),
            mailbox,
        }
    }
}

/// Settings of a session, without its mailbox.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct ChangedSession<'a> {
    pub id: &'a str,
    pub title: &'a str,
    #[schema(required)]
    pub auto_run: Option<AutoRunSetting<'a>>,
    #[schema(required)]
    pub room_id: Option<&'a str>,
}

impl<'a> From<&'a Session> for ChangedSession<'a> {
    fn from(session: &'a Session) -> Self {
        Self {
            id: session.id.as_str(),
            title: &session.title,
            auto_run: session.auto_run.as_ref().map(AutoRunSetting::from),
            room_id: session.room.as_ref().map(|room| room.as_str()),
        }
    }
}

/// Automatic turns of a session.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AutoRunSetting<'a> {
    pub enabled: bool,
    /// Model that decides whether messages start a turn. Default: the model of the hub.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub triage_model: Option<&'a str>,
    /// Milliseconds without a further message after which the messages start a turn.
    pub debounce_ms: u64,
    /// Number of messages that start a turn at once.
    pub max_batch_size: u32,
}

impl<'a> From<&'a AutoRun> for AutoRunSetting<'a> {
    fn from(auto_run: &'a AutoRun) -> Self {
        Self {
            enabled: auto_run.enabled,
            triage_model: auto_run.triage_model.as_deref(),
            debounce_ms: auto_run.debounce.as_millis() as u64,
            max_batch_size: auto_run.max_batch,
        }
    }
}

#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct SessionChanges {
    pub title: Option<Box<str>>,
    /// `null` uses the setting of the agent; absent leaves the setting unchanged.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<AutoRunChanges>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<AutoRunChanges>"))]
    pub auto_run: Option<Option<AutoRunChanges>>,
    /// A room that the agent is a member of. `null` posts replies in no room; absent leaves the room unchanged.
    #[serde(default, deserialize_with = "given")]
    #[schema(value_type = Option<String>)]
    #[cfg_attr(test, ts(optional = nullable, as = "Option<String>"))]
    pub room_id: Option<Option<Box<str>>>,
}

/// Automatic turns of a session. Absent fields have their default.
#[derive(Serialize, Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct AutoRunChanges {
    pub enabled: bool,
    /// Model that decides whether messages start a turn. Default: the model of the hub.
    pub triage_model: Option<Box<str>>,
    /// Default 3,000, maximum 600,000.
    pub debounce_ms: Option<u64>,
    /// Default 20, maximum 100.
    pub max_batch_size: Option<u32>,
}

impl AutoRunChanges {
    /// Checks the limits; the error names the rule.
    pub fn parse(&self) -> Result<Option<AutoRun>, &'static str> {
        let json = serde_json::to_string(self).expect("numbers and texts always serialise to JSON");
        AutoRun::parse(&json).map_err(|invalid| invalid.0)
    }
}

/// A message as mailboxes contain it.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct RoutedMessage<'a> {
    pub id: &'a str,
    /// `room/{id}` for a message of a room.
    pub path: Cow<'a, str>,
    /// Id of the sender: an agent, a user or an external source.
    pub from: &'a str,
    pub from_name: &'a str,
    /// `agent`, `user` or `source`.
    pub from_type: &'a str,
    pub command: &'a str,
    /// JSON object that the sender routed. Absent for a message that was posted in a room.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, value_type = serde_json::Value, required = false)]
    #[cfg_attr(test, ts(type = "unknown", optional))]
    pub payload: Option<&'a RawValue>,
    /// Text of a message that was posted in a room.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub text: Option<&'a str>,
    pub source: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub external_id: Option<&'a str>,
    #[schema(format = DateTime)]
    pub at: String,
}

impl<'a> From<&'a Message> for RoutedMessage<'a> {
    fn from(message: &'a Message) -> Self {
        let payload = message.payload.as_ref().and_then(|payload| serde_json::from_str(&payload.0).ok());
        Self {
            id: message.id.as_str(),
            path: match &message.destination {
                Destination::Path(path) => path.as_str().into(),
                Destination::Room(_) => message.destination.path().as_str().to_owned().into(),
            },
            from: message.sender.id(),
            from_name: &message.sender_name,
            from_type: message.sender.kind(),
            command: message.command.as_deref().unwrap_or("message"),
            text: payload.is_none().then_some(&*message.text),
            payload,
            source: &message.source,
            external_id: message.external_id.as_deref(),
            at: iso(message.at),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct MailPage<'a> {
    /// Copies of messages, newest first.
    pub items: Vec<MailCopy<'a>>,
    pub has_more: bool,
}

/// The copy of a message in a mailbox.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MailCopy<'a> {
    pub message: RoutedMessage<'a>,
    /// `pending`, `leased`, `delivered` or `dead`.
    pub state: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false, format = DateTime)]
    pub leased_until: Option<String>,
    /// Number of leases so far.
    pub attempts: u32,
    /// Sessions that have the message too. Only for a copy in the agent's own mailbox.
    pub handled_by: Vec<SessionKey<'a>>,
}

impl<'a> MailCopy<'a> {
    /// `now` separates leases that have expired from others.
    pub fn new(message: &'a Message, delivery: &'a parlor_model::Delivery, now: Time) -> Self {
        let state = match delivery.state {
            DeliveryState::Leased { until } if until <= now => DeliveryState::Pending,
            state => state,
        };
        let leased_until = match state {
            // Mail that a run holds has no end.
            DeliveryState::Leased { until } if state != DeliveryState::HELD => Some(iso(until)),
            DeliveryState::Leased { .. }
            | DeliveryState::Pending
            | DeliveryState::Delivered
            | DeliveryState::Dead => None,
        };
        Self {
            message: message.into(),
            state: state.as_str(),
            leased_until,
            attempts: delivery.attempts,
            handled_by: delivery.handled_by.iter().map(SessionKey::from).collect(),
        }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct SessionKey<'a> {
    pub agent_id: &'a str,
    pub session_id: &'a str,
}

impl<'a> From<&'a SessionRef> for SessionKey<'a> {
    fn from(session: &'a SessionRef) -> Self {
        Self { agent_id: session.agent.as_str(), session_id: session.session.as_str() }
    }
}

/// A mailbox of an agent or of one of its sessions.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct MailboxKey<'a> {
    pub agent_id: &'a str,
    /// Absent for the agent's own mailbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session_id: Option<&'a str>,
}

impl<'a> From<&'a Mailbox> for MailboxKey<'a> {
    fn from(mailbox: &'a Mailbox) -> Self {
        let session_id = mailbox.session.as_ref().map(|session| session.as_str());
        Self { agent_id: mailbox.agent.as_str(), session_id }
    }
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetterPage<'a> {
    /// Dead letters, newest message first.
    pub items: Vec<DeadLetter<'a>>,
    pub has_more: bool,
}

#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct DeadLetter<'a> {
    pub message: RoutedMessage<'a>,
    /// `no_subscribers`, `not_acknowledged` or another reason.
    pub reason: &'a str,
    /// Mailbox that did not acknowledge the message. Absent if the message reached no mailbox.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub mailbox: Option<MailboxKey<'a>>,
}

impl<'a> From<&'a parlor_model::DeadLetter> for DeadLetter<'a> {
    fn from(letter: &'a parlor_model::DeadLetter) -> Self {
        Self {
            message: (&*letter.message).into(),
            reason: &letter.reason,
            mailbox: letter.mailbox.as_ref().map(MailboxKey::from),
        }
    }
}

/// The mailbox of a dead letter. Without it, the dead letter that reached no mailbox.
#[derive(Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
#[serde(rename_all = "camelCase")]
pub struct Resend {
    pub agent_id: Option<Box<str>>,
    /// Absent for the agent's own mailbox.
    pub session_id: Option<Box<str>>,
}

/// The mailboxes in which a resent message is pending.
#[derive(Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
#[serde(rename_all = "camelCase")]
pub struct Resent<'a> {
    pub mailboxes: Vec<MailboxKey<'a>>,
}
