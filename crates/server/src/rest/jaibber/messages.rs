//! Messages of a project: pages in both directions, posts, and deletion.

use super::names::{Names, own_agent};
use super::{invalid, page_limit, project_id};
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::{JaibberProblem, Problem};
use crate::http::response::{BareCreated, BareJson, Done, bare_created, bare_json};
use crate::rest::messages::{HistoryCursor, message_id, parse_cursor, position};
use axum::extract::State;
use parlor_model::command::{DeleteMessage, PostAuthor, Posted};
use parlor_model::query::{GetMessage, ListHistory, MessagePage, Page};
use parlor_model::{Caller, EntityKind, Message, MessageId, Position, Post, Refusal, RoomId};
use parlor_wire::ably::jaibber::rest::{self, Continuation};
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
pub struct Paging {
    /// Default 50, maximum 200.
    limit: Option<usize>,
    /// Returns older messages than this `cursor` of a page, newest first.
    before: Option<String>,
    /// Returns newer messages than this `createdAt` or `cursor`, oldest first.
    after: Option<String>,
}

type MessageList = rest::Page<'static, rest::ServerMessage<'static>>;

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Parameters(paging): Parameters<Paging>,
) -> Result<BareJson<MessageList>, JaibberProblem> {
    let (room, limit) = (project_id(&id)?, page_limit(paging.limit));
    let (page, continuation) = match (&paging.before, &paging.after) {
        (Some(_), Some(_)) => return Err(invalid("before", "must not be given with after")),
        (None, None) => (Page::Before(None), Continuation::Before),
        (Some(before), None) => (Page::Before(Some(position(&app, before)?)), Continuation::Before),
        (None, Some(after)) => match parse_cursor(&app, after, "after")? {
            HistoryCursor::Seq(seq) => (Page::After(seq), Continuation::After),
            HistoryCursor::Time(time) => (Page::AfterTime(time), Continuation::After),
        },
    };
    let query = ListHistory { room, page, limit };
    let MessagePage { messages, more } = app.hub.read(&caller, query).await?;
    let epoch = app.hub.epoch();
    let cursor = messages.last().map(|last| Position { epoch, seq: last.seq }.to_string().into());
    let items = messages.iter().filter_map(|message| rest::ServerMessage::of(message)).collect();
    let path = format!("/api/projects/{id}/messages");
    Ok(bare_json(rest::Page::of(items, &path, continuation, cursor, more)))
}

/// Stores a message once for each id. A body that repeats a message, including a message of the project's channel, has
/// no effect.
pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewMessage>,
) -> Result<BareCreated<rest::One<rest::ServerMessage<'static>>>, JaibberProblem> {
    let room = project_id(&id)?;
    let parse = |id: &Option<Box<str>>, field| match id {
        None => Ok(None),
        Some(id) => MessageId::parse(id).map(Some).map_err(|_| invalid(field, "is not an id")),
    };
    let chosen = parse(&body.id, "id")?;
    let reply_to = parse(&body.parent_message_id, "parentMessageId")?;
    let author = match body.sender_type.as_deref() {
        None | Some("user" | "api") => None,
        Some("agent") => {
            let name = body.sender_name.as_deref().unwrap_or_default();
            let names = Names::of(&app, &caller, &room).await?;
            let agent = own_agent(&app, &caller, name, &names).await?;
            let agent = agent.ok_or_else(|| invalid("senderName", "is not an agent of yours"))?;
            let author = PostAuthor { agent: agent.id, claimed_depth: 0, claimed_chain: Vec::new() };
            Some(Box::new(author))
        }
        Some(_) => return Err(invalid("senderType", "must be user, agent or api")),
    };
    let text: Arc<str> = body.text.into();
    let post = Post {
        id: chosen.clone(),
        room: room.clone(),
        text: text.clone(),
        mentions: Vec::new(),
        reply_to,
        attachments: Vec::new(),
        client_message_id: None,
        origin: None,
        author,
    };
    let message = match app.hub.execute(&caller, post).await {
        Ok(Posted { message: Some(message), .. }) => message,
        Ok(Posted { message: None, .. }) => return Err(Refusal::HasEnded(EntityKind::Message).into()),
        // The message of the channel may have attachments and a parent, which the body does not contain.
        Err(Refusal::Conflict { first }) if Some(&first) == chosen.as_ref() => {
            let stored = message_of(&app, &caller, &room, first.clone()).await?;
            if stored.text != text {
                return Err(Refusal::Conflict { first }.into());
            }
            stored
        }
        Err(refusal) => return Err(refusal.into()),
    };
    let data = rest::ServerMessage::of(&message).ok_or(Refusal::NotFound(EntityKind::Message))?;
    Ok(bare_created(rest::One { data }))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path((id, message)): Path<(String, String)>,
) -> Result<Done, JaibberProblem> {
    let room = project_id(&id)?;
    let message = message_of(&app, &caller, &room, message_id(&message)?).await?.id.clone();
    app.hub.execute(&caller, DeleteMessage { message }).await?;
    Ok(Done)
}

/// Reads a message of this room; messages of other rooms count as missing.
async fn message_of(
    app: &App,
    caller: &Caller,
    room: &RoomId,
    message: MessageId,
) -> Result<Arc<Message>, Problem> {
    let message = app.hub.read(caller, GetMessage { message }).await?;
    if message.destination.room() != Some(room) {
        return Err(Refusal::NotFound(EntityKind::Message).into());
    }
    Ok(message)
}
