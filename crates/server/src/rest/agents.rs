//! Agents: list, create, change, delete and spawn them; and the gateways that host them.

use super::Pages;
use crate::App;
use crate::auth::secrets;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::response::{Created, Data, Done, List, created, data, list as all};
use axum::extract::State;
use parlor_model::command::{AgentProfile, ChangeAgent, CreateAgent, RemoveAgent, RemoveGateway};
use parlor_model::query::{
    AgentCard, GetAgentCard, ListAgentCards, ListGateways, ListRoomsWithAgent, ListSharedAgentCards,
};
use parlor_model::{
    AgentId, Caller, EntityKind, GatewayId, GatewayRequest, Refusal, Spawn, UserId, Visibility,
};
use parlor_wire::agentim::rest;
use std::collections::BTreeSet;
use std::sync::Arc;

type AgentList = Result<List<rest::Agent<'static>>, Problem>;

pub fn agent_id(id: &str) -> Result<AgentId, Problem> {
    AgentId::parse(id).map_err(|_| Problem::not_an_id())
}

fn agent_response<'a>(app: &App, card: &'a AgentCard, missing: &BTreeSet<AgentId>) -> rest::Agent<'a> {
    let id = &card.agent.id;
    rest::Agent::new(card, app.hub.hosting().agent_status(id), missing.contains(id))
}

/// Returns the caller's own agents whose folders have disappeared.
async fn missing_folders(app: &App, caller: &Caller, cards: &[AgentCard]) -> BTreeSet<AgentId> {
    let own = cards.iter().map(|card| &card.agent).filter(|agent| caller.user() == Some(&agent.owner));
    let own: Vec<AgentId> = own.map(|agent| agent.id.clone()).collect();
    let folders = app.config.folders.clone();
    let is_missing = move |id: &AgentId| folders.folder(id).is_some_and(|folder| folder.is_missing);
    let read = tokio::task::spawn_blocking(move || own.into_iter().filter(is_missing).collect());
    // A failure is a panic of the folders component, which it logs itself.
    read.await.unwrap_or_default()
}

async fn agent_list(app: &App, caller: &Caller, cards: &[AgentCard]) -> List<rest::Agent<'static>> {
    let missing = missing_folders(app, caller, cards).await;
    all(cards.iter().map(|card| agent_response(app, card, &missing)))
}

async fn read_card(
    app: &App,
    caller: &Caller,
    id: AgentId,
) -> Result<(AgentCard, BTreeSet<AgentId>), Problem> {
    let card = app.hub.read(caller, GetAgentCard { id }).await?;
    let missing = missing_folders(app, caller, std::slice::from_ref(&card)).await;
    Ok((card, missing))
}

pub async fn list(State(app): State<Arc<App>>, Authenticated(caller): Authenticated) -> AgentList {
    let cards = app.hub.read(&caller, ListAgentCards).await?;
    Ok(agent_list(&app, &caller, &cards).await)
}

pub async fn shared(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(pages): Parameters<Pages>,
) -> AgentList {
    let query = ListSharedAgentCards { limit: pages.limit(), offset: pages.offset() };
    let cards = app.hub.read(&caller, query).await?;
    Ok(agent_list(&app, &caller, &cards).await)
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::NewAgent>,
) -> Result<Created<rest::Agent<'static>>, Problem> {
    let id = match &body.id {
        Some(id) => AgentId::parse(id).map_err(|_| Problem::invalid("id", "is not an id"))?,
        None => AgentId::stored(secrets::id()),
    };
    let profile = AgentProfile {
        name: Some(body.name),
        description: body.description,
        settings: Vec::new(),
        visibility: visibility(body.visibility.as_deref(), body.visibility_list)?,
        kind: body.kind,
    };
    app.hub.execute(&caller, CreateAgent { id: id.clone(), profile, subscriptions: Vec::new() }).await?;
    let (card, missing) = read_card(&app, &caller, id).await?;
    Ok(created(agent_response(&app, &card, &missing)))
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::Agent<'static>>, Problem> {
    let (card, missing) = read_card(&app, &caller, agent_id(&id)?).await?;
    Ok(data(agent_response(&app, &card, &missing)))
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::AgentChanges>,
) -> Result<Data<rest::Agent<'static>>, Problem> {
    let id = agent_id(&id)?;
    let profile = AgentProfile {
        name: body.name,
        description: body.description,
        visibility: visibility(body.visibility.as_deref(), body.visibility_list)?,
        ..AgentProfile::default()
    };
    app.hub.execute(&caller, ChangeAgent { id: id.clone(), profile }).await?;
    let (card, missing) = read_card(&app, &caller, id).await?;
    Ok(data(agent_response(&app, &card, &missing)))
}

pub async fn rooms(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<List<rest::RoomOfMember<'static>>, Problem> {
    let rooms = app.hub.read(&caller, ListRoomsWithAgent { agent: agent_id(&id)? }).await?;
    Ok(all(rooms.iter().map(|(room, member)| rest::RoomOfMember::new(room, member))))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, RemoveAgent { id: agent_id(&id)? }).await?;
    Ok(Done)
}

/// Sends a spawn request to a gateway and returns its request id without waiting for the agent.
pub async fn spawn(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::NewSpawn>,
) -> Result<Data<rest::Spawning>, Problem> {
    let gateway = GatewayId::parse(&body.gateway_id).map_err(|_| Refusal::NotFound(EntityKind::Gateway))?;
    let gateway_request = GatewayRequest::Spawn(Spawn {
        kind: body.agent_type,
        name: body.name,
        working_directory: body.working_directory,
        credential: body.credential_id,
    });
    let request_id = app.hub.hosting().send_gateway_request(&caller, gateway, gateway_request).await?;
    Ok(data(rest::Spawning { request_id }))
}

/// Leaves out ephemeral gateways: they exist only while they are connected, so there is nothing to manage.
pub async fn gateways(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<rest::Gateway<'static>>, Problem> {
    let found = app.hub.read(&caller, ListGateways).await?;
    Ok(all(found.iter().filter(|gateway| !gateway.ephemeral).map(rest::Gateway::from)))
}

pub async fn remove_gateway(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    let gateway = GatewayId::parse(&id).map_err(|_| Problem::not_an_id())?;
    app.hub.execute(&caller, RemoveGateway { gateway }).await?;
    Ok(Done)
}

fn visibility(word: Option<&str>, users: Option<Vec<Box<str>>>) -> Result<Option<Visibility>, Problem> {
    match (word, users) {
        (None, None) => Ok(None),
        (Some("private"), _) => Ok(Some(Visibility::Private)),
        (Some("all"), _) => Ok(Some(Visibility::All)),
        (None | Some("whitelist"), Some(users)) => {
            let users = users.iter().map(|id| UserId::parse(id)).collect::<Result<_, _>>();
            let users = users.map_err(|_| Problem::invalid("visibilityList", "must be user ids"))?;
            Ok(Some(Visibility::List(users)))
        }
        (Some("whitelist"), None) => Err(Problem::invalid("visibilityList", "is required")),
        (Some(_), _) => Err(Problem::invalid("visibility", "must be private, all or whitelist")),
    }
}
