//! Room preferences of the caller: pin, archive, clear and notifications. Other members are not affected.

use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{Data, data};
use axum::extract::State;
use parlor_model::command::ChangeRoomPreferences;
use parlor_model::{Caller, Notifications, RoomPreferenceChange, RoomPreferences};
use parlor_wire::agentim::rest;
use parlor_wire::time::iso;
use std::sync::Arc;

pub async fn pin(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::Pinned>, Problem> {
    let preferences = change_preferences(&app, &caller, &id, RoomPreferenceChange::Pin).await?;
    Ok(data(rest::Pinned { pinned: preferences.pinned_at.is_some() }))
}

pub async fn archive(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::Archived>, Problem> {
    let preferences = change_preferences(&app, &caller, &id, RoomPreferenceChange::Archive).await?;
    Ok(data(rest::Archived { archived: preferences.archived_at.is_some() }))
}

pub async fn clear(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::Cleared>, Problem> {
    let preferences = change_preferences(&app, &caller, &id, RoomPreferenceChange::Clear).await?;
    Ok(data(rest::Cleared { cleared_at: preferences.cleared_at.map(iso).unwrap_or_default() }))
}

pub async fn notify(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::Notify>,
) -> Result<Data<rest::Notified>, Problem> {
    let requested = Notifications::parse(&body.pref);
    let requested = requested.ok_or(Problem::invalid("pref", "must be all, mentions or none"))?;
    let preferences = change_preferences(&app, &caller, &id, RoomPreferenceChange::Notify(requested)).await?;
    Ok(data(rest::Notified { pref: preferences.notifications.into() }))
}

async fn change_preferences(
    app: &App,
    caller: &Caller,
    id: &str,
    how: RoomPreferenceChange,
) -> Result<RoomPreferences, Problem> {
    let member = app.hub.execute(caller, ChangeRoomPreferences { room: room_id(id)?, how }).await?;
    Ok(member.room_preferences)
}
