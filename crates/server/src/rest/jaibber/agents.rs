//! Registrations of agents: an agent of the caller and its membership of a project.

use super::names::{Names, own_agent};
use super::{invalid, project_id};
use crate::App;
use crate::auth::secrets;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Parameters;
use crate::http::problem::JaibberProblem;
use crate::http::response::{BareJson, Done, bare_json};
use axum::extract::State;
use parlor_model::command::{AddMember, AgentProfile, ChangeAgent, CreateAgent, RemoveAgent, RemoveMember};
use parlor_model::query::{ListAgents, ListRoomsWithAgent};
use parlor_model::{AgentId, EntityKind, MemberId, Refusal, RoomRole};
use parlor_wire::ably::jaibber::rest;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

/// Lists the caller's agents, once for each of the caller's projects that they are in.
pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<BareJson<rest::One<Vec<rest::AgentRegistration>>>, JaibberProblem> {
    let mut registrations = Vec::new();
    let agents = app.hub.read(&caller, ListAgents).await?;
    for agent in agents.into_iter().filter(|agent| Some(&agent.owner) == caller.user()) {
        let rooms = app.hub.read(&caller, ListRoomsWithAgent { agent: agent.id.clone() }).await?;
        registrations.extend(rooms.iter().map(|(room, _)| rest::AgentRegistration::of(&agent, &room.id)));
    }
    Ok(bare_json(rest::One { data: registrations }))
}

/// Creates or changes the caller's agent with this name and adds it to the project.
pub async fn put(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::AgentRegistration>,
) -> Result<BareJson<rest::One<rest::AgentRegistration>>, JaibberProblem> {
    let room = project_id(&body.project_id)?;
    let names = Names::of(&app, &caller, &room).await?;
    let profile = AgentProfile {
        name: Some(body.agent_name.clone()),
        description: body.description(),
        settings: body.settings(),
        ..AgentProfile::default()
    };
    let existing = own_agent(&app, &caller, &body.agent_name, &names).await?;
    let created = existing.is_none();
    let id = match existing {
        Some(agent) => {
            app.hub.execute(&caller, ChangeAgent { id: agent.id.clone(), profile }).await?;
            agent.id
        }
        None => {
            let id = AgentId::stored(secrets::id());
            let new = CreateAgent { id: id.clone(), profile, subscriptions: Vec::new() };
            app.hub.execute(&caller, new).await?.agent.id.clone()
        }
    };
    let member = MemberId::Agent(id.clone());
    let join = AddMember { room, member, role: RoomRole::Member, description: None };
    match app.hub.execute(&caller, join).await {
        Ok(_) | Err(Refusal::AlreadyExists(EntityKind::Member)) => Ok(bare_json(rest::One { data: body })),
        Err(refusal) => {
            if created {
                app.hub.execute(&caller, RemoveAgent { id }).await?;
            }
            Err(refusal.into())
        }
    }
}

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(rename_all = "camelCase")]
pub struct Registered {
    project_id: String,
    agent_name: String,
}

/// Removes the caller's agent with this name from the project. The agent itself stays.
pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(registered): Parameters<Registered>,
) -> Result<Done, JaibberProblem> {
    let room = project_id(&registered.project_id)?;
    let names = Names::of(&app, &caller, &room).await?;
    let agent = own_agent(&app, &caller, &registered.agent_name, &names).await?;
    let agent = agent.ok_or_else(|| invalid("agentName", "is not an agent of yours"))?;
    app.hub.execute(&caller, RemoveMember { room, member: MemberId::Agent(agent.id) }).await?;
    Ok(Done)
}
