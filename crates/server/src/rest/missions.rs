//! Missions, and the settings for prompting idle agents.

use super::chat::{SessionQuery, agent_id};
use super::roots::room_selection;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::{Body, MaybeBody};
use crate::http::parameters::Parameters;
use crate::http::problem::{ChatEventsProblem, Problem};
use crate::http::response::{BareJson, bare_json};
use axum::extract::State;
use parlor_model::command::{EndMission, SetIdlePrompt, SetMission};
use parlor_model::query::{GetIdlePrompt, ListMissions, ListRooms};
use parlor_model::{IdlePrompt, Mission, RoomSelection};
use parlor_wire::events::missions::{
    ActiveMission, AgentOverride, Missions, NewIdleAgent, NewMission, NewOverride, ScopeParams,
};
use parlor_wire::events::rest::Okay;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Maximum missions in one list.
const MAX_MISSIONS: usize = 100;

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
) -> Result<BareJson<ActiveMission>, ChatEventsProblem> {
    let rooms = params.rooms()?;
    let latest = app.hub.read(&caller, ListMissions { rooms, limit: 1 }).await?.pop();
    Ok(bare_json(ActiveMission::new(latest.filter(Mission::is_on).as_ref())))
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
) -> Result<BareJson<Missions>, ChatEventsProblem> {
    let rooms = params.rooms()?;
    let missions = app.hub.read(&caller, ListMissions { rooms, limit: MAX_MISSIONS }).await?;
    Ok(bare_json(Missions::new(&missions)))
}

pub async fn set(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewMission>,
) -> Result<BareJson<Okay>, ChatEventsProblem> {
    // Refuses a key without the scope before the body is validated.
    app.hub.may(&caller, ListRooms).await?;
    let rooms = room_selection(body.session_id.as_deref(), body.project_root.as_deref())?;
    let parse_agent = |agent: NewIdleAgent| {
        let idle =
            IdlePrompt { prompt: agent.idle_prompt.map(Into::into), interval: agent.idle_interval_secs };
        Ok((agent_id(&agent.id)?, idle))
    };
    let agents =
        body.agents.unwrap_or_default().into_iter().map(parse_agent).collect::<Result<_, Problem>>()?;
    let set = SetMission { rooms, text: body.text.into(), agents };
    app.hub.execute(&caller, set).await?;
    Ok(bare_json(Okay::YES))
}

pub async fn end(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
    MaybeBody(body): MaybeBody<ScopeParams>,
) -> Result<BareJson<Okay>, ChatEventsProblem> {
    let rooms = scope(body, params.session_id, params.project_root)?;
    app.hub.execute(&caller, EndMission { rooms }).await?;
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

/// Rooms of a DELETE request: fields of the body, and for those it omits the values of the query string.
fn scope(
    body: Option<ScopeParams>,
    session_id: Option<String>,
    project_root: Option<String>,
) -> Result<RoomSelection, Problem> {
    let body = body.unwrap_or(ScopeParams { session_id: None, project_root: None });
    let (session, root) = (body.session_id.or(session_id), body.project_root.or(project_root));
    room_selection(session.as_deref(), root.as_deref())
}

pub async fn show_override(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<OverrideQuery>,
) -> Result<BareJson<AgentOverride>, ChatEventsProblem> {
    let agent = agent_id(&params.agent_id)?;
    let rooms = room_selection(params.session_id.as_deref(), params.project_root.as_deref())?;
    let idle = app.hub.read(&caller, GetIdlePrompt { agent: agent.clone(), rooms }).await?;
    Ok(bare_json(AgentOverride::new(&agent, &idle.unwrap_or_default())))
}

pub async fn set_override(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewOverride>,
) -> Result<BareJson<Okay>, ChatEventsProblem> {
    // Refuses a key without the scope before the body is validated.
    app.hub.may(&caller, ListRooms).await?;
    let agent = agent_id(&body.agent_id)?;
    let rooms = room_selection(body.session_id.as_deref(), body.project_root.as_deref())?;
    let idle = IdlePrompt { prompt: body.idle_prompt.map(Into::into), interval: body.idle_interval_secs };
    let set = SetIdlePrompt { agent, rooms, idle: Some(idle) };
    app.hub.execute(&caller, set).await?;
    Ok(bare_json(Okay::YES))
}

pub async fn remove_override(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<OverrideQuery>,
    MaybeBody(body): MaybeBody<ScopeParams>,
) -> Result<BareJson<Okay>, ChatEventsProblem> {
    let OverrideQuery { agent_id: agent, session_id, project_root } = params;
    let agent = agent_id(&agent)?;
    let rooms = scope(body, session_id, project_root)?;
    app.hub.execute(&caller, SetIdlePrompt { agent, rooms, idle: None }).await?;
    Ok(bare_json(Okay::YES))
}
