//! Messages: post, forward, edit, delete, read the history and threads, and mark rooms as read.

use super::annotations;
use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Created, Data, Done, Either, List, bare_json, created, data, list};
use axum::extract::State;
use parlor_model::command::{
    DeleteMessage, DeleteMessages, EditMessage, ForwardMessage, MarkAllRead, MarkRoomRead, Posted,
};
use parlor_model::query::{
    CountReplies, GetMessage, ListHistory, ListRecent, ListReplies, ListRevisions, MessagePage, Page,
};
use parlor_model::{MessageId, Position, Post, Refusal, RoomId, Seq};
use parlor_wire::agentim::frames::MessageFrame;
use parlor_wire::agentim::rest;
use parlor_wire::time;
use serde::Deserialize;
use std::collections::BTreeSet;
use std::sync::Arc;
use utoipa::IntoParams;

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewMessage>,
) -> Result<PostResponse, Problem> {
    let reply_to = match body.reply_to_id {
        None => None,
        Some(id) => Some(MessageId::parse(&id).map_err(|_| Problem::invalid("replyToId", "is not an id"))?),
    };
    let post = Post {
        id: None,
        origin: None,
        author: None,
        room: room_id(&id)?,
        text: body.content.into(),
        mentions: body.mentions.unwrap_or_default(),
        reply_to,
        attachments: body.attachment_ids.unwrap_or_default(),
        client_message_id: body.client_message_id,
    };
    Ok(post_response(app.hub.execute(&caller, post).await?))
}

type PostResponse = Either<Created<MessageFrame<'static>>, Data<rest::Repeated<'static>>>;

/// Returns 201 for a new message, and 200 for a retry with a `clientMessageId` that was used before.
fn post_response(posted: Posted) -> PostResponse {
    match &posted.message {
        Some(message) if !posted.repeated => Either::This(created(MessageFrame::from(&**message))),
        Some(message) => Either::That(data(rest::Repeated::Message(Box::new((&**message).into())))),
        None => {
            let deleted = rest::DeletedMessage::new(&posted.id, posted.position.seq);
            Either::That(data(rest::Repeated::Deleted(deleted)))
        }
    }
}

#[derive(Deserialize, IntoParams)]
pub struct Paging {
    /// Default 50, maximum 200.
    limit: Option<usize>,
    /// Returns messages before this position: the `nextCursor` of the previous page.
    cursor: Option<String>,
    /// Returns messages after this position, `seq` or time.
    after: Option<String>,
}

pub async fn history(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Parameters(paging): Parameters<Paging>,
) -> Result<Data<rest::History<'static>>, Problem> {
    let page = match (&paging.cursor, &paging.after) {
        (Some(_), Some(_)) => return Err(Problem::invalid("cursor", "must not be given with after")),
        (None, None) => Page::Before(None),
        (Some(cursor), None) => Page::Before(Some(position(&app, cursor)?)),
        (None, Some(after)) => match parse_cursor(&app, after, "after")? {
            HistoryCursor::Seq(seq) => Page::After(seq),
            HistoryCursor::Time(time) => Page::AfterTime(time),
        },
    };
    let limit = paging.limit.unwrap_or(50).clamp(1, 200);
    let query = ListHistory { room: room_id(&id)?, page, limit };
    let MessagePage { messages, more } = app.hub.read(&caller, query).await?;
    // Reading forward always returns a cursor, because new messages may follow; reading back only if there
    // are more.
    let forward = paging.after.is_some();
    let last = messages.last().filter(|_| more || forward).map(|message| &**message);
    let items = messages.iter().map(|message| &**message);
    Ok(data(rest::History::new(items, more, app.hub.epoch(), last)))
}

pub enum HistoryCursor {
    Seq(Seq),
    Time(parlor_model::Time),
}

pub fn parse_cursor(app: &App, text: &str, field: &'static str) -> Result<HistoryCursor, Problem> {
    let current = app.hub.epoch();
    if let Some(position) = Position::parse(text, current) {
        if position.epoch != current {
            return Err(Refusal::Resync { now: Position { epoch: current, seq: Seq(0) } }.into());
        }
        return Ok(HistoryCursor::Seq(position.seq));
    }
    // An unencoded `+` before the time zone offset arrives as a space in a query.
    time::parse(&text.replace(' ', "+"))
        .map(HistoryCursor::Time)
        .ok_or(Problem::invalid(field, "is neither a position nor a time"))
}

pub async fn recent(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Data<rest::RecentRooms<'static>>, Problem> {
    Ok(data(rest::RecentRooms::new(&app.hub.read(&caller, ListRecent).await?)))
}

pub async fn mark_read(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, MarkRoomRead { room: room_id(&id)? }).await?;
    Ok(Done)
}

pub async fn mark_all_read(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, MarkAllRead).await?;
    Ok(Done)
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<MessageFrame<'static>>, Problem> {
    let message = app.hub.read(&caller, GetMessage { message: message_id(&id)? }).await?;
    Ok(data(MessageFrame::from(&*message)))
}

pub async fn edit(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::MessageEdit>,
) -> Result<Data<MessageFrame<'static>>, Problem> {
    let command = EditMessage { message: message_id(&id)?, text: body.content.into() };
    let message = app.hub.execute(&caller, command).await?;
    Ok(data(MessageFrame::from(&*message)))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, DeleteMessage { message: message_id(&id)? }).await?;
    Ok(Done)
}

pub async fn revisions(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<List<rest::Revision<'static>>, Problem> {
    let revisions = app.hub.read(&caller, ListRevisions { message: message_id(&id)? }).await?;
    Ok(list(revisions.iter().map(rest::Revision::from)))
}

pub async fn thread(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Parameters(paging): Parameters<annotations::Paging>,
) -> Result<BareJson<rest::Thread<'static>>, Problem> {
    let after = paging.cursor(&app)?.unwrap_or_default();
    let query = ListReplies { message: message_id(&id)?, after, limit: paging.limit() };
    let MessagePage { messages, more } = app.hub.read(&caller, query).await?;
    let last = messages.last().filter(|_| more);
    let epoch = app.hub.epoch();
    Ok(bare_json(rest::Thread {
        ok: rest::True,
        data: messages.iter().map(|message| MessageFrame::from(&**message)).collect(),
        next_cursor: last.map(|last| Position { epoch, seq: last.seq }.to_string()),
    }))
}

pub async fn reply_count(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::ReplyCount>, Problem> {
    let count = app.hub.read(&caller, CountReplies { message: message_id(&id)? }).await?;
    Ok(data(rest::ReplyCount { count }))
}

pub async fn forward(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::ForwardTo>,
) -> Result<PostResponse, Problem> {
    let room = RoomId::parse(&body.target_room_id);
    let room = room.map_err(|_| Problem::invalid("targetRoomId", "is not an id"))?;
    let client_message_id = body.client_message_id;
    let command = ForwardMessage { message: message_id(&id)?, room, client_message_id };
    Ok(post_response(app.hub.execute(&caller, command).await?))
}

pub async fn remove_many(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::MessageList>,
) -> Result<Data<rest::Deleted>, Problem> {
    let ids = body.message_ids.iter().map(|id| MessageId::parse(id)).collect::<Result<BTreeSet<_>, _>>();
    let ids = ids.map_err(|_| Problem::invalid("messageIds", "must be message ids"))?;
    let deleted = ids.len();
    app.hub.execute(&caller, DeleteMessages { messages: ids.into_iter().collect() }).await?;
    Ok(data(rest::Deleted { deleted }))
}

/// Parses the cursor of an earlier page.
pub fn position(app: &App, cursor: &str) -> Result<Seq, Problem> {
    match parse_cursor(app, cursor, "cursor")? {
        HistoryCursor::Seq(seq) => Ok(seq),
        HistoryCursor::Time(_) => Err(Problem::invalid("cursor", "is not a cursor")),
    }
}

pub fn message_id(id: &str) -> Result<MessageId, Problem> {
    MessageId::parse(id).map_err(|_| Problem::not_an_id())
}
