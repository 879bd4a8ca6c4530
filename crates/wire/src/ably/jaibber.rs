//! Payloads of Jaibber: the data of messages in project channels, of presence members and of task events.
//!
//! Clients add fields of their own, and other clients must receive them unchanged. [`Object`] therefore keeps every
//! field as JSON text in its order, and the types here read and write the fields that the hub knows.

mod frames;
pub mod rest;

pub use frames::{HUB, TaskChange, room_frame, signal_frame, task_frame};

use super::codes::{self, ErrorInfo};
use super::data::MAX_DEPTH;
use crate::files;
use crate::json::{self, JsonLimits};
use parlor_model::{Attachment, Destination, MemberId, MessageKind, Sender};
use serde::de::{DeserializeOwned, MapAccess, Visitor};
use serde::ser::SerializeMap;
use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::fmt;
use utoipa::ToSchema;

/// Event names of project channels and of `jaibber:presence`.
pub const MESSAGE: &str = "message";
pub const TASK: &str = "task";
pub const REFRESH_PROJECTS: &str = "refresh-projects";

/// A JSON object with its fields in order, each as JSON text.
#[derive(Debug, Clone, Default)]
pub struct Object(pub(super) Vec<(Box<str>, Box<RawValue>)>);

impl Object {
    /// Parses untrusted text. `None` if it is no JSON object or exceeds the limits.
    pub fn parse(text: &str) -> Option<Self> {
        json::check(text, JsonLimits { depth: MAX_DEPTH, items: 10_000 }).ok()?;
        serde_json::from_str(text).ok()
    }

    /// Removes a field and returns its value; `None` if it is absent, `null` or of another type.
    pub fn take<T: DeserializeOwned>(&mut self, name: &str) -> Option<T> {
        let index = self.0.iter().position(|(field, _)| **field == *name)?;
        let (_, value) = self.0.remove(index);
        serde_json::from_str(value.get()).ok()
    }

    /// Adds a field with this JSON value.
    pub fn put(&mut self, name: &str, value: impl Serialize) {
        let value = serde_json::value::to_raw_value(&value).expect("fields consist of strings and booleans");
        self.0.push((name.into(), value));
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("an object consists of JSON")
    }
}

impl PartialEq for Object {
    fn eq(&self, other: &Self) -> bool {
        self.text() == other.text()
    }
}

impl Serialize for Object {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_map(self.0.iter().map(|(name, value)| (name, value)))
    }
}

impl<'de> Deserialize<'de> for Object {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct ObjectVisitor;

        impl<'de> Visitor<'de> for ObjectVisitor {
            type Value = Object;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("an object")
            }

            fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Object, A::Error> {
                let mut fields = Vec::new();
                while let Some(field) = map.next_entry()? {
                    fields.push(field);
                }
                Ok(Object(fields))
            }
        }
        deserializer.deserialize_map(ObjectVisitor)
    }
}

macro_rules! types {
    ($($(#[$doc:meta])* $name:ident = $text:literal),+ $(,)?) => {
        /// Type of a message in a project channel.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum MessageType { $($(#[$doc])* $name),+ }

        impl MessageType {
            pub const ALL: &[Self] = &[$(Self::$name),+];

            pub fn as_str(self) -> &'static str {
                match self { $(Self::$name => $text),+ }
            }

            pub fn parse(text: &str) -> Option<Self> {
                Self::ALL.iter().copied().find(|kind| kind.as_str() == text)
            }
        }
    };
}

types! {
    Message = "message",
    Typing = "typing",
    Chunk = "chunk",
    Response = "response",
    /// Older name of `Response`.
    Done = "done",
    Error = "error",
    /// Asks an agent to end.
    Deregister = "deregister",
}

/// Data of a message in a project channel. Names of agents in `responding_chain` are in lower case.
#[derive(Debug, Clone, PartialEq)]
pub struct ChatMessage<'a> {
    pub from: Cow<'a, str>,
    pub from_username: Cow<'a, str>,
    pub project_id: Cow<'a, str>,
    pub text: Cow<'a, str>,
    pub message_id: Cow<'a, str>,
    pub kind: MessageType,
    pub response_id: Option<Cow<'a, str>>,
    pub agent_name: Option<Cow<'a, str>>,
    pub mentions: Vec<Cow<'a, str>>,
    pub is_agent_message: bool,
    pub response_depth: Option<u32>,
    pub responding_chain: Vec<String>,
    pub is_task_notification: bool,
    pub attachments: Vec<FileEntry>,
    pub parent_message_id: Option<Cow<'a, str>>,
    /// Fields that the hub does not know.
    pub other: Object,
}

/// An attached file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct FileEntry {
    pub id: String,
    pub filename: String,
    pub mime_type: String,
    pub file_size: u64,
    pub blob_url: String,
}

impl From<&Attachment> for FileEntry {
    fn from(attachment: &Attachment) -> Self {
        Self {
            id: attachment.id.as_str().into(),
            filename: attachment.file.name.as_ref().into(),
            mime_type: attachment.file.media.as_str().into(),
            file_size: attachment.file.size,
            blob_url: files::url(&attachment.id),
        }
    }
}

impl ChatMessage<'static> {
    /// Parses the data of a publication. The caller checks `from`, `fromUsername` and `projectId`.
    pub fn parse(text: &str) -> Result<Self, ErrorInfo> {
        let error = |message: &'static str| ErrorInfo::new(codes::INVALID_DATA, message);
        let mut object = Object::parse(text).ok_or_else(|| error("data must be a JSON object"))?;
        let kind: Option<String> = object.take("type");
        let kind = kind.as_deref().and_then(MessageType::parse).ok_or_else(|| error("type is unknown"))?;
        let required = |object: &mut Object, name: &str, message| {
            object.take::<String>(name).map(Cow::Owned).ok_or_else(|| error(message))
        };
        let optional = |object: &mut Object, name: &str| object.take::<String>(name).map(Cow::Owned);
        let chain: Vec<String> = object.take("respondingChain").unwrap_or_default();
        Ok(Self {
            from: required(&mut object, "from", "from is required")?,
            from_username: optional(&mut object, "fromUsername").unwrap_or_default(),
            project_id: required(&mut object, "projectId", "projectId is required")?,
            text: optional(&mut object, "text").unwrap_or_default(),
            message_id: required(&mut object, "messageId", "messageId is required")?,
            kind,
            response_id: optional(&mut object, "responseId"),
            agent_name: optional(&mut object, "agentName"),
            mentions: object
                .take::<Vec<String>>("mentions")
                .unwrap_or_default()
                .into_iter()
                .map(Cow::Owned)
                .collect(),
            is_agent_message: object.take("isAgentMessage").unwrap_or_default(),
            response_depth: object.take("responseDepth"),
            responding_chain: chain.iter().map(|name| name.to_lowercase()).collect(),
            is_task_notification: object.take("isTaskNotification").unwrap_or_default(),
            attachments: object.take("attachments").unwrap_or_default(),
            parent_message_id: optional(&mut object, "parentMessageId"),
            other: object,
        })
    }
}

impl<'a> ChatMessage<'a> {
    /// Message of a room in the form of a project channel. `None` if the message belongs to no room.
    pub fn of(message: &'a parlor_model::Message) -> Option<Self> {
        let Destination::Room(room) = &message.destination else { return None };
        let answer = message.answer.as_deref();
        let fields = message.origin.as_ref().and_then(|origin| origin.fields.as_ref());
        let agent = matches!(message.sender, Sender::Agent(_));
        let reply = message.kind == MessageKind::AgentResponse;
        let mentioned = |mention: &'a parlor_model::Mention| Cow::Borrowed(&*mention.name);
        Some(Self {
            from: answer.map_or(message.sender.id(), |answer| answer.owner.as_str()).into(),
            from_username: (&*message.sender_name).into(),
            project_id: room.as_str().into(),
            text: (&*message.text).into(),
            message_id: message.id.as_str().into(),
            kind: if reply { MessageType::Response } else { MessageType::Message },
            response_id: reply.then(|| message.id.as_str().into()),
            agent_name: agent.then(|| (&*message.sender_name).into()),
            mentions: message.mentions.iter().map(mentioned).collect(),
            is_agent_message: agent,
            response_depth: answer.map(|answer| answer.depth).filter(|depth| *depth > 0),
            responding_chain: answer
                .map(|answer| answer.chain.iter().map(|name| name.to_lowercase()).collect())
                .unwrap_or_default(),
            is_task_notification: false,
            attachments: message.attachments.iter().map(FileEntry::from).collect(),
            parent_message_id: message.reply_to.as_ref().map(|id| id.as_str().into()),
            other: fields.and_then(|fields| Object::parse(&fields.0)).unwrap_or_default(),
        })
    }

    pub fn text(&self) -> String {
        serde_json::to_string(self).expect("a message consists of strings, numbers and lists")
    }
}

impl Serialize for ChatMessage<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let mut map = serializer.serialize_map(None)?;
        map.serialize_entry("from", &self.from)?;
        map.serialize_entry("fromUsername", &self.from_username)?;
        map.serialize_entry("projectId", &self.project_id)?;
        map.serialize_entry("text", &self.text)?;
        map.serialize_entry("messageId", &self.message_id)?;
        if let Some(id) = &self.response_id {
            map.serialize_entry("responseId", id)?;
        }
        map.serialize_entry("type", self.kind.as_str())?;
        if let Some(name) = &self.agent_name {
            map.serialize_entry("agentName", name)?;
        }
        if !self.mentions.is_empty() {
            map.serialize_entry("mentions", &self.mentions)?;
        }
        if self.is_agent_message {
            map.serialize_entry("isAgentMessage", &true)?;
        }
        if let Some(depth) = self.response_depth {
            map.serialize_entry("responseDepth", &depth)?;
        }
        if !self.responding_chain.is_empty() {
            map.serialize_entry("respondingChain", &self.responding_chain)?;
        }
        if self.is_task_notification {
            map.serialize_entry("isTaskNotification", &true)?;
        }
        if !self.attachments.is_empty() {
            map.serialize_entry("attachments", &self.attachments)?;
        }
        if let Some(id) = &self.parent_message_id {
            map.serialize_entry("parentMessageId", id)?;
        }
        for (name, value) in &self.other.0 {
            map.serialize_entry(name, value)?;
        }
        map.end()
    }
}

/// Typing signal of an agent, and a chunk of its reply. Both have the id of the reply.
pub fn typing<'a>(
    room: &'a str,
    from: &'a str,
    agent: &'a str,
    trigger: &'a str,
    reply: &'a str,
) -> ChatMessage<'a> {
    ChatMessage {
        message_id: trigger.into(),
        response_id: Some(reply.into()),
        ..of_agent(MessageType::Typing, room, from, agent, "", reply)
    }
}

pub fn chunk<'a>(
    room: &'a str,
    from: &'a str,
    agent: &'a str,
    reply: &'a str,
    text: &'a str,
) -> ChatMessage<'a> {
    of_agent(MessageType::Chunk, room, from, agent, text, reply)
}

pub fn error<'a>(
    room: &'a str,
    from: &'a str,
    agent: &'a str,
    reply: &'a str,
    text: &'a str,
) -> ChatMessage<'a> {
    of_agent(MessageType::Error, room, from, agent, text, reply)
}

fn of_agent<'a>(
    kind: MessageType,
    room: &'a str,
    from: &'a str,
    agent: &'a str,
    text: &'a str,
    id: &'a str,
) -> ChatMessage<'a> {
    ChatMessage {
        from: from.into(),
        from_username: agent.into(),
        project_id: room.into(),
        text: text.into(),
        message_id: id.into(),
        kind,
        response_id: None,
        agent_name: Some(agent.into()),
        mentions: Vec::new(),
        is_agent_message: false,
        response_depth: None,
        responding_chain: Vec::new(),
        is_task_notification: false,
        attachments: Vec::new(),
        parent_message_id: None,
        other: Object::default(),
    }
}

/// Data of a member of a project channel.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct ProjectMember {
    pub user_id: String,
    pub username: String,
    #[serde(default)]
    pub is_agent: bool,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_name: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_instructions: Option<String>,
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub agents: Vec<AgentEntry>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub machine_name: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct AgentEntry {
    pub agent_name: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub agent_instructions: Option<String>,
}

impl ProjectMember {
    /// Parses presence data of a client; `None` if it has another form, which other clients receive all the same.
    pub fn parse(text: &str) -> Option<Self> {
        json::check(text, JsonLimits { depth: MAX_DEPTH, items: 10_000 }).ok()?;
        serde_json::from_str(text).ok()
    }

    /// Returns presence data with other names of its agents, given as pairs of the old and the new name. All other fields
    /// stay. `None` if the data is no object.
    pub fn with_agent_names(text: &str, names: &[(&str, &str)]) -> Option<String> {
        let mut data: serde_json::Map<String, serde_json::Value> = serde_json::from_str(text).ok()?;
        let rename = |fields: &mut serde_json::Map<String, serde_json::Value>| {
            let Some(serde_json::Value::String(name)) = fields.get_mut("agentName") else { return };
            if let Some((_, new)) = names.iter().find(|(old, _)| old.eq_ignore_ascii_case(name)) {
                *name = (*new).to_owned();
            }
        };
        rename(&mut data);
        let agents = data.get_mut("agents").and_then(serde_json::Value::as_array_mut);
        agents.into_iter().flatten().filter_map(serde_json::Value::as_object_mut).for_each(rename);
        serde_json::to_string(&data).ok()
    }

    /// Returns every agent of the member once: those of the list, or the single one of older clients.
    pub fn all_agents(&self) -> Vec<AgentEntry> {
        let single = self.agent_name.iter().map(|name| AgentEntry {
            agent_name: name.clone(),
            agent_instructions: self.agent_instructions.clone(),
        });
        let mut all: Vec<AgentEntry> = Vec::new();
        for agent in self.agents.iter().cloned().chain(single).filter(|_| self.is_agent) {
            if !all.iter().any(|known| known.agent_name.eq_ignore_ascii_case(&agent.agent_name)) {
                all.push(agent);
            }
        }
        all
    }
}

/// Data of a member of `jaibber:presence`.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct GlobalMember {
    pub user_id: String,
    pub username: String,
    #[serde(default)]
    pub project_ids: Vec<String>,
}

impl GlobalMember {
    pub fn parse(text: &str) -> Option<Self> {
        json::check(text, JsonLimits { depth: MAX_DEPTH, items: 10_000 }).ok()?;
        serde_json::from_str(text).ok()
    }
}

/// Name of the type of a member in REST bodies.
pub fn member_type(member: &MemberId) -> &'static str {
    match member {
        MemberId::User(_) => "user",
        MemberId::Agent(_) => "agent",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_names_of_agents_change_in_presence_data() {
        let data = r#"{"agentName":"Bot","agents":[{"agentName":"bot","x":1},{"agentName":"Other"}],"username":"bot","y":{}}"#;
        let renamed = ProjectMember::with_agent_names(data, &[("bot", "bot-grace")]).unwrap();
        let expected = r#"{"agentName":"bot-grace","agents":[{"agentName":"bot-grace","x":1},{"agentName":"Other"}],"username":"bot","y":{}}"#;
        assert_eq!(renamed, expected);
        assert_eq!(ProjectMember::with_agent_names("[]", &[]), None);
    }
}
