//! Settings that admins can change while the hub runs, at the paths of two protocols; and the limits, which
//! are fixed at startup.

use super::users::admins_only;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Data, List, bare_json, data, list};
use axum::extract::State;
use parlor_model::command::ChangeSettings;
use parlor_model::query::{GetSettings, MaySeeLimits};
use parlor_model::{Caller, HubSettings};
use parlor_wire::agentim::rest;
use std::sync::Arc;

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<BareJson<rest::Settings<'static>>, Problem> {
    let settings = app.hub.read(&caller, GetSettings).await?;
    Ok(bare_json(settings_response(&app, &settings)))
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::NewSettings>,
) -> Result<BareJson<rest::Settings<'static>>, Problem> {
    let settings = app.hub.execute(&caller, ChangeSettings { changes: body.into() }).await?;
    Ok(bare_json(settings_response(&app, &settings)))
}

pub async fn show_to_admin(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Data<rest::Settings<'static>>, Problem> {
    admins_only(&app, &caller).await?;
    let settings = app.hub.read(&Caller::OPERATOR, GetSettings).await?;
    Ok(data(settings_response(&app, &settings)))
}

pub async fn change_by_admin(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::ChangedSettings>,
) -> Result<Data<rest::Settings<'static>>, Problem> {
    let settings = app.hub.execute(&caller, ChangeSettings { changes: body.changes.into() }).await?;
    Ok(data(settings_response(&app, &settings)))
}

pub async fn limits(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<rest::Limit>, Problem> {
    app.hub.may(&caller, MaySeeLimits).await?;
    Ok(list(app.config.limits.iter().cloned()))
}

fn settings_response<'a>(app: &App, settings: &'a HubSettings) -> rest::Settings<'a> {
    rest::Settings::new(settings, app.config.lockout_failures, app.config.lockout.as_secs())
}
