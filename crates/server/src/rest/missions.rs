//! Missions, and how idle agents are prompted.

use super::chat::{SessionQuery, agent_id};
use super::roots::required_rooms_of_call;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::{Body, MaybeBody};
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, bare_json};
use axum::extract::State;
use parlor_model::{Answer, Caller, Command, IdlePrompt, Mission, Query, Refusal, RoomId};
use parlor_wire::events::missions::{
    ActiveMission, AgentOverride, Missions, NewIdleAgent, NewMission, NewOverride, ScopeParams,
};
use parlor_wire::events::rest::Okay;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// How many of them are told.
const MOST: usize = 100;

/// The one room that a call means.
async fn the_room(
    app: &App,
    caller: &Caller,
    session: Option<&str>,
    root: Option<&str>,
) -> Result<RoomId, Problem> {
    let rooms = required_rooms_of_call(app, caller, session, root).await?;
    match <[RoomId; 1]>::try_from(rooms) {
        Ok([room]) => Ok(room),
        Err(_) => Err(Problem::invalid("session_id", "must say which of several rooms")),
    }
}

/// Whichever of several rooms: they have the same missions.
async fn any_room(app: &App, caller: &Caller, of: &SessionQuery) -> Result<RoomId, Problem> {
    let mut rooms =
        required_rooms_of_call(app, caller, of.session_id.as_deref(), of.project_root.as_deref()).await?;
    Ok(rooms.swap_remove(0))
}

async fn missions(app: &App, caller: &Caller, room: RoomId, limit: usize) -> Result<Vec<Mission>, Refusal> {
    match app.hub.read(caller, Query::Missions { room, limit }).await? {
        Answer::Missions(missions) => Ok(missions),
        _ => Err(Refusal::Unavailable),
    }
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(of): Parameters<SessionQuery>,
) -> Result<BareJson<ActiveMission>, Problem> {
    let room = any_room(&app, &caller, &of).await?;
    let latest = missions(&app, &caller, room, 1).await?.pop();
    Ok(bare_json(ActiveMission::new(latest.filter(Mission::is_on).as_ref())))
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(of): Parameters<SessionQuery>,
) -> Result<BareJson<Missions>, Problem> {
    let room = any_room(&app, &caller, &of).await?;
    Ok(bare_json(Missions::new(&missions(&app, &caller, room, MOST).await?)))
}

pub async fn set(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewMission>,
) -> Result<BareJson<Okay>, Problem> {
    let room = the_room(&app, &caller, body.session_id.as_deref(), body.project_root.as_deref()).await?;
    let named = |agent: NewIdleAgent| {
        let idle =
            IdlePrompt { prompt: agent.idle_prompt.map(Into::into), interval: agent.idle_interval_secs };
        Ok((agent_id(&agent.id)?, idle))
    };
    let agents = body.agents.unwrap_or_default().into_iter().map(named).collect::<Result<_, Problem>>()?;
    app.hub.execute(&caller, Command::SetMission { room, text: body.text.into(), agents }).await?;
    Ok(bare_json(Okay::YES))
}

pub async fn end(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(of): Parameters<SessionQuery>,
    MaybeBody(body): MaybeBody<ScopeParams>,
) -> Result<BareJson<Okay>, Problem> {
    let ScopeParams { session_id, project_root } = scope_params(body, of.session_id, of.project_root);
    let room = the_room(&app, &caller, session_id.as_deref(), project_root.as_deref()).await?;
    app.hub.execute(&caller, Command::EndMission { room }).await?;
    Ok(bare_json(Okay::YES))
}

/// `?agent_id=&session_id=&project_root=`
#[derive(Deserialize, IntoParams)]
pub struct OverrideQuery {
    agent_id: String,
    session_id: Option<String>,
    project_root: Option<String>,
}

/// What the body leaves open is as the address says.
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

/// Where it holds; without a room and a folder, what the agent says of itself.
async fn realm(
    app: &App,
    caller: &Caller,
    session: Option<&str>,
    root: Option<&str>,
) -> Result<Option<RoomId>, Problem> {
    match (session, root) {
        (None, None) => Ok(None),
        (session, root) => the_room(app, caller, session, root).await.map(Some),
    }
}

pub async fn show_override(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(of): Parameters<OverrideQuery>,
) -> Result<BareJson<AgentOverride>, Problem> {
    let agent = agent_id(&of.agent_id)?;
    let room = realm(&app, &caller, of.session_id.as_deref(), of.project_root.as_deref()).await?;
    let Answer::Idle(idle) = app.hub.read(&caller, Query::Idle { agent: agent.clone(), room }).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(bare_json(AgentOverride::new(&agent, &idle.unwrap_or_default())))
}

pub async fn set_override(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewOverride>,
) -> Result<BareJson<Okay>, Problem> {
    app.hub.may(&caller, Query::Rooms).await?;
    let agent = agent_id(&body.agent_id)?;
    let room = realm(&app, &caller, body.session_id.as_deref(), body.project_root.as_deref()).await?;
    let idle = IdlePrompt { prompt: body.idle_prompt.map(Into::into), interval: body.idle_interval_secs };
    app.hub.execute(&caller, Command::SetIdlePrompt { agent, room, idle: Some(idle) }).await?;
    Ok(bare_json(Okay::YES))
}

pub async fn remove_override(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(of): Parameters<OverrideQuery>,
    MaybeBody(body): MaybeBody<ScopeParams>,
) -> Result<BareJson<Okay>, Problem> {
    let OverrideQuery { agent_id: agent, session_id, project_root } = of;
    let ScopeParams { session_id, project_root } = scope_params(body, session_id, project_root);
    let agent = agent_id(&agent)?;
    let room = realm(&app, &caller, session_id.as_deref(), project_root.as_deref()).await?;
    app.hub.execute(&caller, Command::SetIdlePrompt { agent, room, idle: None }).await?;
    Ok(bare_json(Okay::YES))
}
