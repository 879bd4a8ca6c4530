//! Publications over REST: to one channel, and batches to several channels.
//!
//! The hub stores all messages of a publication on a path or none. Messages in a project channel are posts, which it
//! stores one after the other.

use super::super::credentials::{AblyCaller, connection_secret};
use super::super::http::{self, AblyRequest};
use super::super::jaibber::{self, ConnectionFacts};
use super::super::{channel_error, principal};
use super::{ChannelName, authenticated, channel};
use crate::App;
use crate::auth::secrets::random_bytes;
use ::http::StatusCode;
use axum::body::Body;
use axum::extract::State;
use axum::response::Response;
use parlor_model::command::{PostAuthor, Publish};
use parlor_model::{Path, Position, Post, RoomId, UserId};
use parlor_wire::ably::channel::{Channel, QualifiedChannel};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::data::Data;
use parlor_wire::ably::egress;
use parlor_wire::ably::frames::Message;
use parlor_wire::ably::jaibber::{ChatMessage, HUB, MESSAGE, MessageType};
use parlor_wire::ably::rest::{self, BatchItem, BatchResult, BatchSpec, Published};
use parlor_wire::ably::serial::{ConnectionId, MessageSerial};
use std::sync::Arc;

/// Maximum number of channels and messages of one batch request, counted once for each channel.
const MAX_BATCH: usize = 1000;
/// Maximum size of all stored copies of a batch, in maximum message sizes.
const MAX_BATCH_SIZE: usize = 16;
/// Maximum bytes of a body in addition to the data of its messages.
const BODY_OVERHEAD: usize = 64 * 1024;

pub async fn publish(
    State(app): State<Arc<App>>,
    name: ChannelName,
    request: AblyRequest,
    body: Body,
) -> Response {
    let result = publish_one(&app, name, &request, body).await;
    request.finish(result)
}

async fn publish_one(
    app: &App,
    name: ChannelName,
    request: &AblyRequest,
    body: Body,
) -> Result<Response, ErrorInfo> {
    let caller = authenticated(app, request).await?;
    let channel = channel(name)?;
    let body = http::read(body, body_limit(app)).await?;
    let messages = rest::publish(&body, request.body_format()?)?;
    let published = to_channel(app, &caller, &channel, messages).await?;
    Ok(request.success(StatusCode::CREATED, &published))
}

/// Data in JSON can be twice as long as the data itself.
fn body_limit(app: &App) -> usize {
    2 * app.config.ably.message_bytes + BODY_OVERHEAD
}

/// `POST /messages`: publications on several channels.
pub async fn batch(State(app): State<Arc<App>>, request: AblyRequest, body: Body) -> Response {
    let result = publish_batch(&app, &request, body).await;
    request.finish(result)
}

async fn publish_batch(app: &App, request: &AblyRequest, body: Body) -> Result<Response, ErrorInfo> {
    let caller = authenticated(app, request).await?;
    let format = request.body_format()?;
    let body = http::read(body, body_limit(app)).await?;
    let is_list = rest::is_list(&body, format);
    let specs: Vec<BatchSpec> = if is_list { format.decode(&body)? } else { vec![format.decode(&body)?] };
    let publications: usize = specs.iter().map(|spec| spec.channels.len() * spec.messages.len()).sum();
    if publications == 0 || publications > MAX_BATCH {
        let words = "A batch needs 1 to 1000 messages, counted once for each channel";
        return Err(ErrorInfo::new(codes::BAD_REQUEST, words));
    }
    // Each channel stores a copy of each message.
    let copies = specs.iter().map(|spec| {
        let size: usize = spec.messages.iter().map(Message::size).sum();
        spec.channels.len().saturating_mul(size)
    });
    if copies.sum::<usize>() > MAX_BATCH_SIZE * app.config.ably.message_bytes {
        return Err(ErrorInfo::new(codes::TOO_LARGE, "The batch exceeds the maximum size"));
    }
    let mut results = Vec::with_capacity(specs.len());
    for BatchSpec { channels, messages } in specs {
        let mut items = Vec::with_capacity(channels.len());
        for name in channels {
            let published = async {
                let channel = QualifiedChannel::parse(&name)?.channel;
                to_channel(app, &caller, &channel, messages.clone()).await
            };
            items.push(match published.await {
                Ok(published) => BatchItem::Published(published),
                Err(error) => BatchItem::Failed { channel: name.into(), error },
            });
        }
        results.push(items);
    }
    if has_flat_batches(request) {
        let items: Vec<_> = results.into_iter().flatten().collect();
        return Ok(request.success(StatusCode::CREATED, &items));
    }
    let mut results = results.into_iter().map(BatchResult::of);
    Ok(match is_list {
        true => request.success(StatusCode::CREATED, &results.collect::<Vec<_>>()),
        false => request.success(StatusCode::CREATED, &results.next()),
    })
}

/// Whether the protocol version of the client returns the results of a batch as a flat list.
fn has_flat_batches(request: &AblyRequest) -> bool {
    let header = request.headers.get("x-ably-version").and_then(|version| version.to_str().ok());
    let major =
        header.and_then(|version| version.split('.').next()).and_then(|major| major.parse::<u32>().ok());
    major.is_some_and(|major| major < 3)
}

async fn to_channel(
    app: &App,
    caller: &AblyCaller,
    channel: &Channel,
    messages: Vec<Message<'static>>,
) -> Result<Published<'static>, ErrorInfo> {
    let size: usize = messages.iter().map(Message::size).sum();
    let limit = app.config.ably.message_bytes;
    if size > limit {
        let words = format!("Message of {size} bytes exceeds the maximum size of {limit}");
        return Err(ErrorInfo::new(codes::TOO_LARGE, words));
    }
    // A message without an id gets a new random id.
    let base = ConnectionId::from_random(random_bytes());
    let messages: Vec<Stamped> = messages
        .into_iter()
        .enumerate()
        .map(|(index, message)| stamped(app, caller, message, format!("{}:{index}", base.as_str())))
        .collect::<Result<_, _>>()?;
    let first = messages.first().and_then(|stamped| stamped.message.id.as_deref()).unwrap_or_default();
    let message_id = first.strip_suffix(":0").unwrap_or(first).to_owned();
    let user = caller.caller.user().ok_or_else(|| ErrorInfo::new(codes::NO_CREDENTIALS, "No credentials"))?;
    let name = channel.name();
    let positions = match channel {
        Channel::Project(room) => post(app, caller, user, room, &messages).await?,
        Channel::GlobalPresence | Channel::Other(_) => {
            publish_on_path(app, caller, user, channel.destination().path(), &name, &messages).await?
        }
    };
    let epoch = app.hub.epoch();
    let serials = positions.into_iter().map(|at| MessageSerial::new(epoch, at.seq, 0).to_string());
    Ok(Published { channel: name.into(), message_id: message_id.into(), serials: serials.collect() })
}

/// A message with the fields that the hub determines.
struct Stamped {
    message: Message<'static>,
    /// Whether the client chose the id, so that a message with the same id is a repetition.
    is_chosen: bool,
}

fn stamped(
    app: &App,
    caller: &AblyCaller,
    message: Message<'static>,
    id: String,
) -> Result<Stamped, ErrorInfo> {
    if message.action.is_some_and(|action| action != 0) {
        return Err(ErrorInfo::new(codes::BAD_REQUEST, "Messages cannot be changed or deleted"));
    }
    let client_id = caller.identity.of_message(message.client_id.as_deref())?.map(str::to_owned);
    let connection = match message.connection_key.as_deref() {
        Some(key) => Some(connection_secret(app).verify(key, &principal(&caller.caller))?.connection),
        None => None,
    };
    let is_chosen = message.id.as_deref().is_some_and(|id| !id.is_empty());
    let id = if is_chosen { message.id } else { Some(id.into()) };
    let connection_id = connection.map(|connection| connection.as_str().to_owned().into());
    let client_id = client_id.map(Into::into);
    Ok(Stamped { message: Message { id, client_id, connection_id, ..message }, is_chosen })
}

async fn publish_on_path(
    app: &App,
    caller: &AblyCaller,
    user: &UserId,
    path: Path,
    channel: &str,
    messages: &[Stamped],
) -> Result<Vec<Position>, ErrorInfo> {
    let client = messages.first().and_then(|stamped| stamped.message.client_id.as_deref());
    let publish = Publish {
        path,
        sender_name: client.unwrap_or(user.as_str()).into(),
        source: egress::SOURCE.into(),
        messages: messages
            .iter()
            .map(|Stamped { message, is_chosen }| egress::path_message(message, channel, *is_chosen))
            .collect(),
    };
    let published = app.hub.execute(&caller.caller, publish).await;
    let published = published.map_err(|refusal| channel_error(&refusal))?;
    Ok(published.messages.into_iter().map(|(_, position)| position).collect())
}

/// Posts messages in a project channel, by the user or by one of the user's agents.
async fn post(
    app: &App,
    caller: &AblyCaller,
    user: &UserId,
    room: &RoomId,
    messages: &[Stamped],
) -> Result<Vec<Position>, ErrorInfo> {
    let mut positions = Vec::with_capacity(messages.len());
    for Stamped { message, .. } in messages {
        let chat = checked(message, user, room)?;
        let author = match chat.is_agent_message || chat.agent_name.is_some() {
            true => Some(author(app, user, &chat).await?),
            false => None,
        };
        let connection = message.connection_id.as_deref().unwrap_or(HUB);
        let facts = ConnectionFacts { id: connection, caller: &caller.caller, user, username: "" };
        let origin = jaibber::origin(&facts, message, &chat);
        let post = Post {
            id: Some(jaibber::message_id(&chat.message_id)?),
            room: room.clone(),
            text: Arc::from(&*chat.text),
            mentions: chat.mentions.iter().map(|name| (&**name).into()).collect(),
            reply_to: chat.parent_message_id.as_deref().map(jaibber::message_id).transpose()?,
            attachments: chat.attachments.iter().map(|file| file.id.as_str().into()).collect(),
            client_message_id: None,
            origin: Some(origin),
            author,
        };
        let posted = app.hub.execute(&caller.caller, post).await;
        positions.push(posted.map_err(|refusal| channel_error(&refusal))?.position);
    }
    Ok(positions)
}

/// Parses a message of a project channel, and checks which user and project it names. The hub replaces its username.
fn checked(message: &Message<'_>, user: &UserId, room: &RoomId) -> Result<ChatMessage<'static>, ErrorInfo> {
    let invalid = |words: &'static str| ErrorInfo::new(codes::INVALID_DATA, words);
    if message.name.as_deref() != Some(MESSAGE) {
        return Err(invalid("Clients publish only messages with the name message in a project channel"));
    }
    let Some(Data::Text(text)) = &message.data else { return Err(invalid("data must be a JSON object")) };
    let chat = ChatMessage::parse(text)?;
    if chat.kind != MessageType::Message {
        return Err(invalid("Only the type message is published over REST; replies need a connection"));
    }
    if *chat.from != *user.as_str() {
        let words = "from must be the user of the credential";
        return Err(ErrorInfo::new(codes::INVALID_CLIENT_ID, words));
    }
    if *chat.project_id != *room.as_str() {
        let words = "projectId must be the project of the channel";
        return Err(ErrorInfo::new(codes::NOT_PERMITTED, words));
    }
    Ok(chat)
}

/// The agent in whose name a message is posted, with the claims about its chain.
async fn author(app: &App, user: &UserId, chat: &ChatMessage<'_>) -> Result<Box<PostAuthor>, ErrorInfo> {
    let name = chat.agent_name.as_deref().unwrap_or(&chat.from_username);
    let found = app.hub.hosting().agent_named(user, name).await.map_err(|refusal| channel_error(&refusal))?;
    let not_found = || ErrorInfo::new(codes::INVALID_CLIENT_ID, "agentName must name an agent of the user");
    let (claimed_depth, claimed_chain) = jaibber::claims(chat);
    Ok(Box::new(PostAuthor { agent: found.ok_or_else(not_found)?.id, claimed_depth, claimed_chain }))
}
