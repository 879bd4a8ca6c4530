//! Frames of the realtime connection (`ProtocolMessage`), in both directions, as JSON text or msgpack.
//!
//! Protocol versions 2 to 6 have the same frames in the subset that the hub implements. Encoded frames depend
//! only on the frame, so the hub encodes a delivered message once per [`Format`]. Unknown fields of a frame are
//! ignored, as the protocol demands; `extras` of a message pass to other clients unchanged.

use super::codes::{self, ErrorInfo};
use super::data::{Data, GivenData, Json, MAX_DEPTH, for_receiver, from_sender};
use super::presence::PresenceAction;
use crate::json::{self, JsonDefect, JsonLimits};
use serde::de::{DeserializeOwned, Error as _};
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum number of elements or keys of one list or object in a frame.
const MAX_ITEMS: usize = 10_000;

/// Protocol versions that the hub accepts in `v`.
pub const VERSIONS: std::ops::RangeInclusive<u32> = 2..=6;

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Format {
    Json,
    Msgpack,
}

impl Format {
    /// Parses the connection parameter `format`. Absent means JSON.
    pub fn parse(text: Option<&str>) -> Option<Self> {
        match text {
            None | Some("json") => Some(Self::Json),
            Some("msgpack") => Some(Self::Msgpack),
            Some(_) => None,
        }
    }

    /// Encodes a frame or a body.
    pub fn encode(self, value: &impl Serialize) -> Vec<u8> {
        match self {
            Self::Json => serde_json::to_vec(value).expect("frames consist of strings, numbers and lists"),
            Self::Msgpack => {
                rmp_serde::to_vec_named(value).expect("frames consist of strings, numbers and lists")
            }
        }
    }

    /// Decodes an untrusted frame or body. The caller has limited its size.
    pub fn decode<T: DeserializeOwned>(self, bytes: &[u8]) -> Result<T, ErrorInfo> {
        match self {
            Self::Json => {
                let text = std::str::from_utf8(bytes)
                    .map_err(|_| ErrorInfo::new(codes::BAD_REQUEST, "Frame is not UTF-8"))?;
                json::check(text, JsonLimits { depth: MAX_DEPTH, items: MAX_ITEMS }).map_err(defect)?;
                serde_json::from_str(text).map_err(|error| mismatch(&error.to_string()))
            }
            Self::Msgpack => {
                let mut deserializer = rmp_serde::Deserializer::new(bytes);
                deserializer.set_max_depth(MAX_DEPTH);
                let value =
                    T::deserialize(&mut deserializer).map_err(|error| mismatch(&error.to_string()))?;
                if !deserializer.get_ref().is_empty() {
                    return Err(ErrorInfo::new(codes::BAD_REQUEST, "Frame has trailing bytes"));
                }
                Ok(value)
            }
        }
    }
}

fn defect(defect: JsonDefect) -> ErrorInfo {
    let message = match defect {
        JsonDefect::Syntax => "Frame is not valid JSON",
        JsonDefect::TooDeep => "Frame is nested too deeply",
        JsonDefect::TooMany => "Frame has too many elements",
        JsonDefect::RepeatedKey => "Frame repeats a key",
    };
    ErrorInfo::new(codes::BAD_REQUEST, message)
}

/// Prefix of errors about `data` and `encoding`, which have a code of their own. Serde errors carry only text.
const DATA_ERROR: &str = "invalid data: ";

/// Returns the error of a typed decoder. Its text does not quote the input, which may contain a token.
fn mismatch(text: &str) -> ErrorInfo {
    match text.split_once(DATA_ERROR) {
        Some((_, reason)) => {
            let reason = reason.split(" at line ").next().unwrap_or(reason);
            ErrorInfo::new(codes::INVALID_DATA, reason.to_owned())
        }
        None => ErrorInfo::new(codes::BAD_REQUEST, "Frame does not have the expected form"),
    }
}

macro_rules! actions {
    ($($(#[$doc:meta])* $name:ident = $number:literal),+ $(,)?) => {
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Action { $($(#[$doc])* $name),+ }

        impl Action {
            pub const ALL: &[Self] = &[$(Self::$name),+];

            pub fn number(self) -> u8 {
                match self { $(Self::$name => $number),+ }
            }
        }
    };
}

actions! {
    Heartbeat = 0, Ack = 1, Nack = 2, Connect = 3, Connected = 4, Disconnect = 5, Disconnected = 6, Close = 7,
    Closed = 8, Error = 9, Attach = 10, Attached = 11, Detach = 12, Detached = 13, Presence = 14, Message = 15,
    Sync = 16, Auth = 17,
}

impl Serialize for Action {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(self.number())
    }
}

impl<'de> Deserialize<'de> for Action {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = u8::deserialize(deserializer)?;
        let action = Self::ALL.iter().find(|action| action.number() == number);
        action.copied().ok_or_else(|| D::Error::custom("unknown action"))
    }
}

/// Flags of ATTACH and ATTACHED, and the modes of a channel.
pub mod flags {
    pub const HAS_PRESENCE: u32 = 1;
    pub const HAS_BACKLOG: u32 = 1 << 1;
    pub const RESUMED: u32 = 1 << 2;
    pub const TRANSIENT: u32 = 1 << 4;
    /// The client attaches again after a lost connection; suppresses `rewind`.
    pub const ATTACH_RESUME: u32 = 1 << 5;
    pub const PRESENCE: u32 = 1 << 16;
    pub const PUBLISH: u32 = 1 << 17;
    pub const SUBSCRIBE: u32 = 1 << 18;
    pub const PRESENCE_SUBSCRIBE: u32 = 1 << 19;
    /// All modes that the hub implements.
    pub const MODES: u32 = PRESENCE | PUBLISH | SUBSCRIBE | PRESENCE_SUBSCRIBE;

    /// Returns the modes that a client requests. Without any mode bit it requests all of them.
    pub fn requested_modes(given: Option<u32>) -> u32 {
        match given.unwrap_or(0) & MODES {
            0 => MODES,
            modes => modes,
        }
    }
}

/// A frame. Fields that do not belong to the action are absent.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Frame<'a> {
    pub action: Action,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_id: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_details: Option<ConnectionDetails<'a>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub channel_serial: Option<Cow<'a, str>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub flags: Option<u32>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub params: Option<BTreeMap<String, String>>,
    /// Milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub msg_serial: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub count: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub res: Option<Vec<PublishResult>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub error: Option<ErrorInfo>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub messages: Option<Vec<Message<'a>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub presence: Option<Vec<PresenceMessage<'a>>>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub auth: Option<AuthDetails>,
}

impl<'a> Frame<'a> {
    pub fn new(action: Action) -> Self {
        Self {
            action,
            id: None,
            connection_id: None,
            connection_details: None,
            channel: None,
            channel_serial: None,
            flags: None,
            params: None,
            timestamp: None,
            msg_serial: None,
            count: None,
            res: None,
            error: None,
            messages: None,
            presence: None,
            auth: None,
        }
    }

    pub fn connected(connection_id: &'a str, details: ConnectionDetails<'a>) -> Self {
        Self {
            connection_id: Some(connection_id.into()),
            connection_details: Some(details),
            ..Self::new(Action::Connected)
        }
    }

    /// Acknowledges the frames `first`, `first + 1`, …; one result for each of them.
    pub fn ack(first: u64, results: Vec<PublishResult>) -> Self {
        Self {
            msg_serial: Some(first),
            count: Some(results.len() as u64),
            res: Some(results),
            ..Self::new(Action::Ack)
        }
    }

    pub fn nack(msg_serial: u64, error: ErrorInfo) -> Self {
        Self { msg_serial: Some(msg_serial), count: Some(1), error: Some(error), ..Self::new(Action::Nack) }
    }

    /// Reports an error of a channel, or a fatal error of the connection.
    pub fn error(channel: Option<&'a str>, error: ErrorInfo) -> Self {
        Self { channel: channel.map(Cow::Borrowed), error: Some(error), ..Self::new(Action::Error) }
    }

    pub fn of_channel(action: Action, channel: &'a str) -> Self {
        Self { channel: Some(channel.into()), ..Self::new(action) }
    }
}

impl Frame<'static> {
    pub fn decode(bytes: &[u8], format: Format) -> Result<Self, ErrorInfo> {
        format.decode(bytes)
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ConnectionDetails<'a> {
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Cow<'a, str>>,
    pub connection_key: Cow<'a, str>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_message_size: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_inbound_rate: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_outbound_rate: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_frame_size: Option<u64>,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub connection_state_ttl: Option<u64>,
    /// Milliseconds; 0 means that the client does not watch for silence.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub max_idle_interval: Option<u64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub server_id: Option<Cow<'a, str>>,
}

/// Result of one published frame: the serial of each of its messages.
#[derive(Debug, Clone, PartialEq, Eq, Default, Serialize, Deserialize)]
pub struct PublishResult {
    pub serials: Vec<String>,
}

#[derive(Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AuthDetails {
    pub access_token: String,
}

impl std::fmt::Debug for AuthDetails {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("AuthDetails")
    }
}

/// Version of a message. The hub does not store versions; the first one is the message itself.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Version {
    pub serial: String,
    pub timestamp: i64,
}

/// A message of a channel, in frames, REST bodies and payloads of the store.
#[derive(Debug, Clone, PartialEq, Default)]
pub struct Message<'a> {
    pub id: Option<Cow<'a, str>>,
    pub name: Option<Cow<'a, str>>,
    pub data: Option<Data<'a>>,
    /// Chain of encodings without the `base64` of the JSON transport.
    pub encoding: Option<Cow<'a, str>>,
    pub client_id: Option<Cow<'a, str>>,
    pub connection_id: Option<Cow<'a, str>>,
    /// Connection on whose behalf a REST request publishes. Never sent to clients.
    pub connection_key: Option<Cow<'a, str>>,
    pub timestamp: Option<i64>,
    pub extras: Option<Json>,
    /// 0 is `message.create`, the only action that the hub implements.
    pub action: Option<u8>,
    pub serial: Option<Cow<'a, str>>,
    pub version: Option<Version>,
}

impl Message<'_> {
    /// Size that counts against `maxMessageSize`: name, data, clientId and extras.
    pub fn size(&self) -> usize {
        self.name.as_ref().map_or(0, |name| name.len())
            + self.client_id.as_ref().map_or(0, |id| id.len())
            + self.data.as_ref().map_or(0, Data::length)
            + self.extras.as_ref().map_or(0, |extras| extras.text().len())
    }
}

impl Serialize for Message<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Out<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            name: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<Data<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            encoding: Option<Cow<'a, str>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            client_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            connection_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            timestamp: Option<i64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            extras: Option<&'a Json>,
            #[serde(skip_serializing_if = "Option::is_none")]
            action: Option<u8>,
            #[serde(skip_serializing_if = "Option::is_none")]
            serial: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            version: Option<&'a Version>,
        }
        let (data, encoding) =
            for_receiver(self.data.as_ref(), self.encoding.as_deref(), serializer.is_human_readable());
        let out = Out {
            id: self.id.as_deref(),
            name: self.name.as_deref(),
            data,
            encoding,
            client_id: self.client_id.as_deref(),
            connection_id: self.connection_id.as_deref(),
            timestamp: self.timestamp,
            extras: self.extras.as_ref(),
            action: self.action,
            serial: self.serial.as_deref(),
            version: self.version.as_ref(),
        };
        out.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for Message<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct In {
            id: Option<String>,
            name: Option<String>,
            data: Option<GivenData>,
            encoding: Option<String>,
            client_id: Option<String>,
            connection_id: Option<String>,
            connection_key: Option<String>,
            timestamp: Option<i64>,
            extras: Option<Json>,
            action: Option<u8>,
            serial: Option<String>,
            version: Option<Version>,
        }
        let given = In::deserialize(deserializer)?;
        let (data, encoding) = from_sender(given.data, given.encoding).map_err(data_error)?;
        Ok(Self {
            id: given.id.map(Cow::Owned),
            name: given.name.map(Cow::Owned),
            data,
            encoding,
            client_id: given.client_id.map(Cow::Owned),
            connection_id: given.connection_id.map(Cow::Owned),
            connection_key: given.connection_key.map(Cow::Owned),
            timestamp: given.timestamp,
            extras: checked_extras(given.extras)?,
            action: given.action,
            serial: given.serial.map(Cow::Owned),
            version: given.version,
        })
    }
}

fn data_error<E: serde::de::Error>(reason: &'static str) -> E {
    E::custom(format_args!("{DATA_ERROR}{reason}"))
}

fn checked_extras<E: serde::de::Error>(extras: Option<Json>) -> Result<Option<Json>, E> {
    match extras {
        Some(extras) if !extras.text().starts_with('{') => Err(data_error("extras must be an object")),
        extras => Ok(extras),
    }
}

/// A change of the presence set, or a member of it.
#[derive(Debug, Clone, PartialEq)]
pub struct PresenceMessage<'a> {
    pub id: Option<Cow<'a, str>>,
    pub client_id: Option<Cow<'a, str>>,
    pub connection_id: Option<Cow<'a, str>>,
    pub timestamp: Option<i64>,
    pub encoding: Option<Cow<'a, str>>,
    pub data: Option<Data<'a>>,
    pub extras: Option<Json>,
    pub action: PresenceAction,
}

impl Serialize for PresenceMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        #[derive(Serialize)]
        #[serde(rename_all = "camelCase")]
        struct Out<'a> {
            #[serde(skip_serializing_if = "Option::is_none")]
            id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            client_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            connection_id: Option<&'a str>,
            #[serde(skip_serializing_if = "Option::is_none")]
            timestamp: Option<i64>,
            #[serde(skip_serializing_if = "Option::is_none")]
            encoding: Option<Cow<'a, str>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            data: Option<Data<'a>>,
            #[serde(skip_serializing_if = "Option::is_none")]
            extras: Option<&'a Json>,
            action: PresenceAction,
        }
        let (data, encoding) =
            for_receiver(self.data.as_ref(), self.encoding.as_deref(), serializer.is_human_readable());
        let out = Out {
            id: self.id.as_deref(),
            client_id: self.client_id.as_deref(),
            connection_id: self.connection_id.as_deref(),
            timestamp: self.timestamp,
            encoding,
            data,
            extras: self.extras.as_ref(),
            action: self.action,
        };
        out.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for PresenceMessage<'_> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        #[derive(Deserialize)]
        #[serde(rename_all = "camelCase")]
        struct In {
            id: Option<String>,
            client_id: Option<String>,
            connection_id: Option<String>,
            timestamp: Option<i64>,
            encoding: Option<String>,
            data: Option<GivenData>,
            extras: Option<Json>,
            action: PresenceAction,
        }
        let given = In::deserialize(deserializer)?;
        let (data, encoding) = from_sender(given.data, given.encoding).map_err(data_error)?;
        Ok(Self {
            id: given.id.map(Cow::Owned),
            client_id: given.client_id.map(Cow::Owned),
            connection_id: given.connection_id.map(Cow::Owned),
            timestamp: given.timestamp,
            encoding,
            data,
            extras: checked_extras(given.extras)?,
            action: given.action,
        })
    }
}
