//! Project channels: publications of Jaibber clients as posts, signals and runs, and the agents of a connection.
//!
//! Owns: the check that a publication names its own user, agent and project. The engine decides about permissions.

mod agents;
mod conversation;
mod encode;
mod ids;
mod replies;

pub use encode::{event, signal};
pub use ids::DerivedIds;

use super::channel_error;
use crate::connection::peer::Peer;
use agents::{AgentFrame, Agents};
use futures_util::future::BoxFuture;
use parlor_engine::PendingReceipt;
use parlor_model::command::Posted;
use parlor_model::{
    AgentId, Caller, MessageId, Origin, Payload, Position, Post, PostAuthor, Refusal, RoomId, UserId,
};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::data::Data;
use parlor_wire::ably::frames::{Message, PresenceMessage};
use parlor_wire::ably::jaibber::{ChatMessage, GlobalMember, MESSAGE, MessageType, ProjectMember};
use parlor_wire::ably::presence::PresenceAction;
use std::sync::Arc;

/// Facts about a connection with which the fields of a publication must agree.
pub struct ConnectionFacts<'a> {
    pub id: &'a str,
    pub caller: &'a Caller,
    pub user: &'a UserId,
    pub username: &'a str,
}

/// Result of a checked publication, for its acknowledgement.
pub enum Outcome {
    /// The publication was a signal, which is not stored.
    Done,
    Posted(PendingReceipt<Posted>),
    /// The publication was output of an agent; the future resolves to the position of its stored message.
    Output(BoxFuture<'static, Result<Option<Position>, Refusal>>),
}

/// Project channels of one connection.
#[derive(Default)]
pub struct ProjectChannels {
    /// `None` until the connection has entered a channel with an agent.
    agents: Option<Agents>,
}

impl ProjectChannels {
    /// Handles a publication on a project channel. `message` has the id and the client id that the connection gave it.
    pub async fn publish(
        &mut self,
        peer: &Peer,
        facts: &ConnectionFacts<'_>,
        room: &RoomId,
        message: &Message<'_>,
    ) -> Result<Outcome, ErrorInfo> {
        let chat = checked(facts, room, message)?;
        let origin = origin(facts, message, &chat);
        match chat.kind {
            MessageType::Message => self.post(peer, facts, room, chat, origin).await,
            MessageType::Deregister => {
                let dismissed = peer.app.hub.hosting();
                let dismissed = dismissed.dismiss_agents(facts.caller, room, chat.agent_name.as_deref());
                dismissed.await.map_err(|refusal| channel_error(&refusal))?;
                Ok(Outcome::Done)
            }
            MessageType::Typing if self.hosted(&chat).is_none() => {
                if chat.agent_name.is_some() {
                    return Err(not_hosted());
                }
                let session = &peer.signed_in().map_err(|refusal| codes::error(&refusal))?.session;
                let published = session.typing(room, facts.username);
                published.map_err(|refusal| channel_error(&refusal))?;
                Ok(Outcome::Done)
            }
            MessageType::Typing
            | MessageType::Chunk
            | MessageType::Response
            | MessageType::Done
            | MessageType::Error => self.output(room, chat, origin),
        }
    }

    fn find(&self, name: &str) -> Option<AgentId> {
        self.agents.as_ref()?.find(name)
    }

    /// The agent of the connection that publishes the message.
    fn hosted(&self, chat: &ChatMessage<'_>) -> Option<AgentId> {
        self.find(chat.agent_name.as_deref().unwrap_or(&chat.from_username))
    }

    async fn post(
        &self,
        peer: &Peer,
        facts: &ConnectionFacts<'_>,
        room: &RoomId,
        chat: ChatMessage<'static>,
        origin: Box<Origin>,
    ) -> Result<Outcome, ErrorInfo> {
        let author = match chat.is_agent_message || chat.agent_name.is_some() {
            true => Some(self.author(peer, facts, &chat).await?),
            false => None,
        };
        let reply_to = chat.parent_message_id.as_deref().map(message_id).transpose()?;
        let post = Post {
            id: Some(message_id(&chat.message_id)?),
            room: room.clone(),
            text: Arc::from(&*chat.text),
            mentions: chat.mentions.iter().map(|name| (&**name).into()).collect(),
            reply_to,
            attachments: chat.attachments.iter().map(|file| file.id.as_str().into()).collect(),
            client_message_id: None,
            origin: Some(origin),
            author,
        };
        Ok(Outcome::Posted(peer.app.hub.submit(facts.caller, post).await))
    }

    /// The agent in whose name a message is posted, with the claims about its chain.
    async fn author(
        &self,
        peer: &Peer,
        facts: &ConnectionFacts<'_>,
        chat: &ChatMessage<'_>,
    ) -> Result<Box<PostAuthor>, ErrorInfo> {
        let agent = match self.hosted(chat) {
            Some(agent) => agent,
            None => {
                let name = chat.agent_name.as_deref().unwrap_or(&chat.from_username);
                let found = peer.app.hub.hosting().agent_named(facts.user, name).await;
                found.map_err(|refusal| channel_error(&refusal))?.ok_or_else(not_hosted)?.id
            }
        };
        let (claimed_depth, claimed_chain) = claims(chat);
        Ok(Box::new(PostAuthor { agent, claimed_depth, claimed_chain }))
    }

    fn output(
        &self,
        room: &RoomId,
        chat: ChatMessage<'static>,
        origin: Box<Origin>,
    ) -> Result<Outcome, ErrorInfo> {
        let agent = self.hosted(&chat).ok_or_else(not_hosted)?;
        let agents = self.agents.as_ref().ok_or_else(not_hosted)?;
        let reply = match chat.kind {
            // The id of a chunk or response is the id of the reply.
            MessageType::Typing => chat.response_id.as_deref().unwrap_or(&chat.message_id),
            _ => &chat.message_id,
        };
        let reply = message_id(reply)?;
        let (claimed_depth, claimed_chain) = claims(&chat);
        let text: Arc<str> = Arc::from(&*chat.text);
        let frame = match chat.kind {
            MessageType::Typing => AgentFrame::Typing,
            MessageType::Chunk => AgentFrame::Chunk(text),
            MessageType::Error => AgentFrame::Failed { reason: text, origin },
            _ => AgentFrame::Complete { text, claimed_depth, claimed_chain, origin },
        };
        Ok(Outcome::Output(agents.output(room.clone(), agent, reply, frame)))
    }

    /// Handles a change of a member of the connection. The connection hosts the agents of the member: it creates
    /// missing agents and adds them to the room. Returns the agents of the member and, if an agent has another name in the
    /// room than at the client, the data of the member with the names in the room.
    pub async fn presence(
        &mut self,
        peer: &Peer,
        facts: &ConnectionFacts<'_>,
        room: &RoomId,
        member: &PresenceMessage<'_>,
    ) -> Result<(Vec<AgentId>, Option<Data<'static>>), ErrorInfo> {
        if matches!(member.action, PresenceAction::Leave | PresenceAction::Absent) {
            if let Some(agents) = &self.agents {
                agents.leave(room.clone()).await;
            }
            return Ok((Vec::new(), None));
        }
        let Some(data) = &member.data else { return Ok((Vec::new(), None)) };
        let project_member = member_data(data, ProjectMember::parse)?;
        require_own(&project_member.user_id, facts.user)?;
        let entries = project_member.all_agents();
        if entries.is_empty() {
            if let Some(agents) = &self.agents {
                agents.leave(room.clone()).await;
            }
            return Ok((Vec::new(), None));
        }
        let agents = self.agents.get_or_insert_with(|| Agents::begin(peer, facts));
        let machine = project_member.machine_name.unwrap_or_default();
        let names: Vec<String> = entries.iter().map(|entry| entry.agent_name.clone()).collect();
        let entered = agents.enter(facts.caller.clone(), room.clone(), entries, machine).await;
        let entered = entered.map_err(|refusal| channel_error(&refusal))?;
        let in_room = peer.app.hub.hosting().names_in_room(room, &entered).await;
        let in_room = in_room.map_err(|refusal| channel_error(&refusal))?;
        let renamed: Vec<(&str, &str)> = names
            .iter()
            .zip(&in_room)
            .filter_map(|(name, in_room)| Some((&**name, in_room.as_deref()?)))
            .filter(|(name, in_room)| name != in_room)
            .collect();
        let data = match data {
            Data::Text(text) if !renamed.is_empty() => ProjectMember::with_agent_names(text, &renamed),
            _ => None,
        };
        Ok((entered, data.map(|data| Data::Text(data.into()))))
    }

    /// Takes the agents of the connection offline.
    pub async fn end(self) {
        if let Some(agents) = self.agents {
            agents.end().await;
        }
    }
}

/// Checks the data of a member of the global presence: other clients take its `userId` for the user.
pub fn check_global_member(member: &PresenceMessage<'_>, user: &UserId) -> Result<(), ErrorInfo> {
    match &member.data {
        Some(data) => require_own(&member_data(data, GlobalMember::parse)?.user_id, user),
        None => Ok(()),
    }
}

/// Parses the data of a member. Data that the hub cannot read is refused, because clients might read another user in it.
fn member_data<T>(data: &Data<'_>, parse: fn(&str) -> Option<T>) -> Result<T, ErrorInfo> {
    let parsed = match data {
        Data::Text(text) => parse(text),
        Data::Bytes(_) => None,
    };
    let words = "Presence data must be a JSON object with userId and username";
    parsed.ok_or_else(|| ErrorInfo::new(codes::INVALID_DATA, words))
}

fn require_own(user_id: &str, user: &UserId) -> Result<(), ErrorInfo> {
    if *user_id == *user.as_str() {
        return Ok(());
    }
    Err(ErrorInfo::new(codes::INVALID_CLIENT_ID, "userId must be the user of the connection"))
}

/// Parses a publication, and checks its `from` and `projectId`.
fn checked(
    facts: &ConnectionFacts<'_>,
    room: &RoomId,
    message: &Message<'_>,
) -> Result<ChatMessage<'static>, ErrorInfo> {
    let invalid = |words: &'static str| ErrorInfo::new(codes::INVALID_DATA, words);
    if message.name.as_deref() != Some(MESSAGE) {
        return Err(invalid("Clients publish only messages with the name message in a project channel"));
    }
    let Some(Data::Text(text)) = &message.data else { return Err(invalid("data must be a JSON object")) };
    let chat = ChatMessage::parse(text)?;
    if *chat.from != *facts.user.as_str() {
        let words = "from must be the user of the connection";
        return Err(ErrorInfo::new(codes::INVALID_CLIENT_ID, words));
    }
    if *chat.project_id != *room.as_str() {
        let words = "projectId must be the project of the channel";
        return Err(ErrorInfo::new(codes::NOT_PERMITTED, words));
    }
    Ok(chat)
}

fn not_hosted() -> ErrorInfo {
    let words = "The connection hosts no agent of this name in a project channel";
    ErrorInfo::new(codes::NOT_PERMITTED, words)
}

pub fn message_id(text: &str) -> Result<MessageId, ErrorInfo> {
    let words = "ids of messages have 1 to 64 letters, digits, - and _";
    MessageId::parse(text).map_err(|_| ErrorInfo::new(codes::INVALID_DATA, words))
}

/// Depth and chain that a client claims. The client counts the answers, the hub the agents before the answer.
pub fn claims(chat: &ChatMessage<'_>) -> (u32, Vec<Box<str>>) {
    let depth = chat.response_depth.unwrap_or_default().saturating_sub(1);
    let chain = chat.responding_chain.iter().take(50).map(|name| name.as_str().into()).collect();
    (depth, chain)
}

pub fn origin(facts: &ConnectionFacts<'_>, message: &Message<'_>, chat: &ChatMessage<'_>) -> Box<Origin> {
    let mut fields = chat.other.clone();
    if chat.is_task_notification {
        fields.put("isTaskNotification", true);
    }
    if let (Some(parent), false) = (&chat.parent_message_id, chat.kind == MessageType::Message) {
        fields.put("parentMessageId", &**parent);
    }
    Box::new(Origin {
        connection: facts.id.into(),
        client: message.client_id.as_deref().map(Into::into),
        id: message.id.as_deref().unwrap_or(&chat.message_id).into(),
        fields: (!fields.is_empty()).then(|| Payload(fields.text().into())),
    })
}
