//! Finding what was said.

use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, bare_json};
use axum::extract::State;
use parlor_model::query::{Search, SearchCursor};
use parlor_model::{Answer, MessageKind, Position, Query, Refusal, SenderKind, Seq, Time};
use parlor_wire::agentim::rest;
use parlor_wire::time;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct SearchQuery {
    /// Some words, 2 to 500 characters: all must occur; `"a phrase"`, `begin*`, `-without`.
    #[param(required = true)]
    q: Option<Box<str>>,
    room_id: Option<String>,
    sender_id: Option<Box<str>>,
    /// `user`, `agent` or `system`.
    sender_type: Option<String>,
    /// `text` or `agent_response`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// A time, or a day in UTC.
    date_from: Option<String>,
    /// A time, or a day in UTC, of which the end is meant.
    date_to: Option<String>,
    /// 50 where it is left out, 100 at most.
    limit: Option<usize>,
    /// Goes on from an earlier answer.
    cursor: Option<String>,
}

pub async fn search(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(asked): Parameters<SearchQuery>,
) -> Result<BareJson<rest::Found<'static>>, Problem> {
    let query = Query::Search(Box::new(Search {
        text: asked.q.unwrap_or_default(),
        room: asked.room_id.as_deref().map(room_id).transpose()?,
        sender: asked.sender_id,
        sender_kind: asked.sender_type.as_deref().map(sender_kind).transpose()?,
        kind: asked.kind.as_deref().map(kind).transpose()?,
        from: asked.date_from.as_deref().map(|date| moment("dateFrom", date, false)).transpose()?,
        to: asked.date_to.as_deref().map(|date| moment("dateTo", date, true)).transpose()?,
        from_place: asked
            .cursor
            .as_deref()
            .map(|cursor| place(&app, cursor))
            .transpose()?
            .unwrap_or_default(),
        limit: asked.limit.unwrap_or(50).clamp(1, 100),
    }));
    let Answer::Found(found) = app.hub.read(&caller, query).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(bare_json(rest::Found::new(&found, app.hub.epoch())))
}

fn sender_kind(text: &str) -> Result<SenderKind, Problem> {
    match text {
        "user" => Ok(SenderKind::User),
        "agent" => Ok(SenderKind::Agent),
        "system" => Ok(SenderKind::Source),
        _ => Err(Problem::invalid("senderType", "must be user, agent or system")),
    }
}

fn kind(text: &str) -> Result<MessageKind, Problem> {
    MessageKind::parse(text).ok_or(Problem::invalid("type", "is not a type of message"))
}

/// A time, or a day, of which the first or the last moment is meant.
fn moment(field: &'static str, text: &str, last: bool) -> Result<Time, Problem> {
    // In a query a `+` before the zone arrives as a space.
    let text = text.replace(' ', "+");
    let day = if last { format!("{text}T23:59:59.999999Z") } else { format!("{text}T00:00:00Z") };
    time::parse(&text).or_else(|| time::parse(&day)).ok_or(Problem::invalid(field, "is not a time"))
}

fn place(app: &App, cursor: &str) -> Result<SearchCursor, Problem> {
    let read = || {
        let (position, skip) = cursor.split_once('.')?;
        Some((Position::parse(position, app.hub.epoch())?, skip.parse().ok()?))
    };
    let (position, skip) = read().ok_or(Problem::invalid("cursor", "is not a cursor"))?;
    if position.epoch != app.hub.epoch() {
        return Err(Refusal::Resync { now: Position { epoch: app.hub.epoch(), seq: Seq(0) } }.into());
    }
    Ok(SearchCursor { before: Some(position.seq), skip })
}
