//! Annotations on messages: reactions, pins and bookmarks.

use super::messages::{message_id, position};
use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::response::{Created, Data, Done, Either, List, created, data, list};
use axum::extract::State;
use parlor_model::MessageId;
use parlor_model::command::{
    AddBookmark, Bookmarked, PinMessage, Pinned, RemoveBookmark, ToggleReaction, UnpinMessage,
};
use parlor_model::query::{BookmarkPage, ListBookmarks, ListPins};
use parlor_wire::agentim::frames::ReactionFrame;
use parlor_wire::agentim::rest;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

pub async fn react(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewReaction>,
) -> Result<List<ReactionFrame<'static>>, Problem> {
    let command = ToggleReaction { message: message_id(&id)?, emoji: body.emoji };
    let message = app.hub.execute(&caller, command).await?;
    Ok(list(message.reactions.iter().map(ReactionFrame::from)))
}

pub async fn pins(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<List<rest::PinnedMessage<'static>>, Problem> {
    let pins = app.hub.read(&caller, ListPins { room: room_id(&id)? }).await?;
    Ok(list(pins.iter().map(|(pin, message)| rest::PinnedMessage::new(pin, message))))
}

pub async fn pin(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::PinnedMessage<'static>>, Problem> {
    let command = PinMessage { message: message_id(&id)? };
    let Pinned { pin, message } = app.hub.execute(&caller, command).await?;
    Ok(data(rest::PinnedMessage::new(&pin, &message)))
}

pub async fn unpin(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, UnpinMessage { message: message_id(&id)? }).await?;
    Ok(Done)
}

#[derive(Deserialize, IntoParams)]
pub struct Paging {
    /// Default 50, maximum 200.
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

impl Paging {
    pub fn limit(&self) -> usize {
        self.limit.unwrap_or(50).clamp(1, 200)
    }

    pub fn cursor(&self, app: &App) -> Result<Option<parlor_model::Seq>, Problem> {
        self.cursor.as_deref().map(|cursor| position(app, cursor)).transpose()
    }
}

pub async fn bookmarks(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(paging): Parameters<Paging>,
) -> Result<Data<rest::Bookmarks<'static>>, Problem> {
    let query = ListBookmarks { before: paging.cursor(&app)?, limit: paging.limit() };
    let BookmarkPage { bookmarks, more } = app.hub.read(&caller, query).await?;
    Ok(data(rest::Bookmarks::new(&bookmarks, more, app.hub.epoch())))
}

pub async fn bookmark(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::NewBookmark>,
) -> Result<Either<Created<rest::Bookmark<'static>>, Data<rest::Bookmark<'static>>>, Problem> {
    let message =
        MessageId::parse(&body.message_id).map_err(|_| Problem::invalid("messageId", "is not an id"))?;
    let Bookmarked { bookmark, message, repeated } =
        app.hub.execute(&caller, AddBookmark { message }).await?;
    let bookmark = rest::Bookmark::new(&bookmark, &message);
    Ok(if repeated { Either::That(data(bookmark)) } else { Either::This(created(bookmark)) })
}

pub async fn remove_bookmark(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, RemoveBookmark { message: message_id(&id)? }).await?;
    Ok(Done)
}
