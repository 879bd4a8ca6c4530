//! Missions, and the settings for prompting idle agents.

use super::chat::{SessionQuery, agent_id};
use super::roots::required_rooms_of_call;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::{Body, MaybeBody};
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, bare_json};
use axum::extract::State;
use parlor_model::command::{EndMission, SetIdlePrompt, SetMission};
use parlor_model::query::ListRooms;
use parlor_model::query::{GetIdlePrompt, ListMissions};
use parlor_model::{Caller, IdlePrompt, Mission, RoomId};
use parlor_wire::events::missions::{
    ActiveMission, AgentOverride, Missions, NewIdleAgent, NewMission, NewOverride, ScopeParams,
};
use parlor_wire::events::rest::Okay;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Maximum missions in one list.
const MAX_MISSIONS: usize = 100;

/// Resolves `session_id` and `project_root` to exactly one room.
async fn require_room(
    app: &App,
    caller: &Caller,
    session: Option<&str>,
    root: Option<&str>,
) -> Result<RoomId, Problem> {
    let rooms = required_rooms_of_call(app, caller, session, root).await?;
    match <[RoomId; 1]>::try_from(rooms) {
        Ok([room]) => Ok(room),
        Err(_) => Err(Problem::invalid("session_id", "is required: several rooms have this project root")),
    }
}

/// Resolves the query to any one of its rooms: rooms with the same project root share their missions.
async fn any_room(app: &App, caller: &Caller, params: &SessionQuery) -> Result<RoomId, Problem> {
    let mut rooms =
        required_rooms_of_call(app, caller, params.session_id.as_deref(), params.project_root.as_deref())
            .await?;
    Ok(rooms.swap_remove(0))
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
) -> Result<BareJson<ActiveMission>, Problem> {
    let room = any_room(&app, &caller, &params).await?;
    let latest = app.hub.read(&caller, ListMissions { room, limit: 1 }).await?.pop();
    Ok(bare_json(ActiveMission::new(latest.filter(Mission::is_on).as_ref())))
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
) -> Result<BareJson<Missions>, Problem> {
    let room = any_room(&app, &caller, &params).await?;
    let missions = app.hub.read(&caller, ListMissions { room, limit: MAX_MISSIONS }).await?;
    Ok(bare_json(Missions::new(&missions)))
}

pub async fn set(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewMission>,
) -> Result<BareJson<Okay>, Problem> {
    let room = require_room(&app, &caller, body.session_id.as_deref(), body.project_root.as_deref()).await?;
    let parse_agent = |agent: NewIdleAgent| {
        let idle =
            IdlePrompt { prompt: agent.idle_prompt.map(Into::into), interval: agent.idle_interval_secs };
        Ok((agent_id(&agent.id)?, idle))
    };
    let agents =
        body.agents.unwrap_or_default().into_iter().map(parse_agent).collect::<Result<_, Problem>>()?;
    app.hub.execute(&caller, SetMission { room, text: body.text.into(), agents }).await?;
    Ok(bare_json(Okay::YES))
}

pub async fn end(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
    MaybeBody(body): MaybeBody<ScopeParams>,
) -> Result<BareJson<Okay>, Problem> {
    let ScopeParams { session_id, project_root } = scope_params(body, params.session_id, params.project_root);
    let room = require_room(&app, &caller, session_id.as_deref(), project_root.as_deref()).await?;
    app.hub.execute(&caller, EndMission { room }).await?;
    Ok(bare_json(Okay::YES))
}

/// Query parameters: `?agent_id=&session_id=&project_root=`.
#[derive(Deserialize, IntoParams)]
pub struct OverrideQuery {
    agent_id: String,
    /// Room id. Without it and `project_root`, the agent's global settings are used.
    session_id: Option<String>,
    /// Absolute path of a project root.
    project_root: Option<String>,
}

/// Scope of a DELETE request: fields of the body, and for those it omits the values of the query string.
fn scope_params(
    body: Option<ScopeParams>,
    session_id: Option<String>,
    project_root: Option<String>,
) -> ScopeParams {
    let body = body.unwrap_or(ScopeParams { session_id: None, project_root: None });
    ScopeParams {
        session_id: body.session_id.or(session_id),
        project_root: body.project_root.or(project_root),
    }
}

/// Room whose mission scope the idle prompt settings apply to; `None` for the agent's global settings.
async fn scope_room(
    app: &App,
    caller: &Caller,
    session: Option<&str>,
    root: Option<&str>,
) -> Result<Option<RoomId>, Problem> {
    match (session, root) {
        (None, None) => Ok(None),
        (session, root) => require_room(app, caller, session, root).await.map(Some),
    }
}

pub async fn show_override(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<OverrideQuery>,
) -> Result<BareJson<AgentOverride>, Problem> {
    let agent = agent_id(&params.agent_id)?;
    let room =
        scope_room(&app, &caller, params.session_id.as_deref(), params.project_root.as_deref()).await?;
    let idle = app.hub.read(&caller, GetIdlePrompt { agent: agent.clone(), room }).await?;
    Ok(bare_json(AgentOverride::new(&agent, &idle.unwrap_or_default())))
}

pub async fn set_override(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewOverride>,
) -> Result<BareJson<Okay>, Problem> {
    app.hub.may(&caller, ListRooms).await?;
    let agent = agent_id(&body.agent_id)?;
    let room = scope_room(&app, &caller, body.session_id.as_deref(), body.project_root.as_deref()).await?;
    let idle = IdlePrompt { prompt: body.idle_prompt.map(Into::into), interval: body.idle_interval_secs };
    app.hub.execute(&caller, SetIdlePrompt { agent, room, idle: Some(idle) }).await?;
    Ok(bare_json(Okay::YES))
}

pub async fn remove_override(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<OverrideQuery>,
    MaybeBody(body): MaybeBody<ScopeParams>,
) -> Result<BareJson<Okay>, Problem> {
    let OverrideQuery { agent_id: agent, session_id, project_root } = params;
    let ScopeParams { session_id, project_root } = scope_params(body, session_id, project_root);
    let agent = agent_id(&agent)?;
    let room = scope_room(&app, &caller, session_id.as_deref(), project_root.as_deref()).await?;
    app.hub.execute(&caller, SetIdlePrompt { agent, room, idle: None }).await?;
    Ok(bare_json(Okay::YES))
}
