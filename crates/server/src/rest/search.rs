//! Full-text search of messages in the caller's rooms.

use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, bare_json};
use axum::extract::State;
use parlor_model::query::{SearchCursor, SearchMessages};
use parlor_model::{MessageKind, Position, Refusal, SenderKind, Seq, Time};
use parlor_wire::agentim::rest;
use parlor_wire::time;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
pub struct SearchQuery {
    /// Search words, 2 to 500 characters; all must occur. Supports `"a phrase"`, `prefix*` and `-excluded`.
    #[param(required = true)]
    q: Option<Box<str>>,
    /// Only messages in this room.
    room_id: Option<String>,
    /// Only messages of this sender.
    sender_id: Option<Box<str>>,
    /// `user`, `agent` or `system`.
    sender_type: Option<String>,
    /// `text` or `agent_response`.
    #[serde(rename = "type")]
    kind: Option<String>,
    /// Start of the time range: a time, or a day in UTC.
    date_from: Option<String>,
    /// End of the time range: a time, or a day in UTC, which is included.
    date_to: Option<String>,
    /// Default 50, maximum 100.
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
}

pub async fn search(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SearchQuery>,
) -> Result<BareJson<rest::Found<'static>>, Problem> {
    let query = SearchMessages {
        text: params.q.unwrap_or_default(),
        room: params.room_id.as_deref().map(room_id).transpose()?,
        sender: params.sender_id,
        sender_kind: params.sender_type.as_deref().map(sender_kind).transpose()?,
        kind: params.kind.as_deref().map(kind).transpose()?,
        from: params.date_from.as_deref().map(|date| parse_time("dateFrom", date, false)).transpose()?,
        to: params.date_to.as_deref().map(|date| parse_time("dateTo", date, true)).transpose()?,
        from_place: params
            .cursor
            .as_deref()
            .map(|cursor| parse_cursor(&app, cursor))
            .transpose()?
            .unwrap_or_default(),
        limit: params.limit.unwrap_or(50).clamp(1, 100),
    };
    let found = app.hub.read(&caller, query).await?;
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
    MessageKind::parse(text).ok_or(Problem::invalid("type", "is not a message type"))
}

/// Parses a time, or a day in UTC: its start, or its end if `last`.
fn parse_time(field: &'static str, text: &str, last: bool) -> Result<Time, Problem> {
    // An unencoded `+` before the time zone offset arrives as a space in a query.
    let text = text.replace(' ', "+");
    let day = if last { format!("{text}T23:59:59.999999Z") } else { format!("{text}T00:00:00Z") };
    time::parse(&text).or_else(|| time::parse(&day)).ok_or(Problem::invalid(field, "is not a time"))
}

fn parse_cursor(app: &App, cursor: &str) -> Result<SearchCursor, Problem> {
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
