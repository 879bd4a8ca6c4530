//! Service agents: models that the hub itself runs as agents, managed by admins.

use super::model_access::ModelForm;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{Created, Data, Done, List, created, data, list as all};
use axum::extract::State;
use parlor_model::command::{ChangeService, CreateService, RemoveService, ServiceChanges, ServiceWithAgent};
use parlor_model::query::{FoundService, GetService, ListServices};
use parlor_model::{AgentId, ModelApi};
use parlor_wire::agentim::rest::{
    ServiceAgent, ServiceAgentBody, ServiceAgentSettings, ServiceAgentType, ServiceProvider,
    ServiceValidation,
};
use std::sync::Arc;

fn agent_id(id: &str) -> Result<AgentId, Problem> {
    AgentId::parse(id).map_err(|_| Problem::not_an_id())
}

pub async fn providers(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<ServiceProvider>, Problem> {
    app.hub.may(&caller, ListServices).await?;
    Ok(all(ServiceProvider::all()))
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<ServiceAgent<'static>>, Problem> {
    let services = app.hub.read(&caller, ListServices).await?;
    Ok(all(services.iter().map(|(agent, service)| ServiceAgent::new(agent, service))))
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<ServiceAgent<'static>>, Problem> {
    let query = GetService { agent: agent_id(&id)? };
    let FoundService { agent, service } = app.hub.read(&caller, query).await?;
    Ok(data(ServiceAgent::new(&agent, &service)))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<ServiceAgentBody>,
) -> Result<Created<ServiceAgent<'static>>, Problem> {
    // Checked first: only an authorised caller may learn which addresses the hub can reach.
    app.hub.may(&caller, ListServices).await?;
    let api = parse_api(body.kind.as_deref())?.unwrap_or_default();
    let active = parse_status(body.status.as_deref())?.unwrap_or(true);
    let mut config = body.config.unwrap_or_default();
    config.base_url.get_or_insert_with(|| ServiceProvider::base_url(api).into());
    let new = CreateService {
        name: body.name.unwrap_or_default(),
        description: body.description.unwrap_or_default(),
        active,
        model: model_form(&mut config, Some(api)).access(&app)?,
        fallback: config.fallback_model.flatten().and_then(non_empty),
        instructions: config.system_prompt.flatten().and_then(non_empty),
        most_tokens: config.max_tokens.flatten(),
    };
    let ServiceWithAgent { agent, service } = app.hub.execute(&caller, new).await?;
    Ok(created(ServiceAgent::new(&agent, &service)))
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<ServiceAgentBody>,
) -> Result<Data<ServiceAgent<'static>>, Problem> {
    let agent = agent_id(&id)?;
    let existing = app.hub.read(&caller, GetService { agent: agent.clone() }).await?.service;
    let api = parse_api(body.kind.as_deref())?;
    let mut config = body.config.unwrap_or_default();
    let changes = ServiceChanges {
        name: body.name,
        description: body.description,
        active: parse_status(body.status.as_deref())?,
        model: model_form(&mut config, api).changes(&app, &existing.model)?,
        fallback: config.fallback_model.map(|model| model.and_then(non_empty)).into(),
        instructions: config.system_prompt.map(|prompt| prompt.and_then(non_empty)).into(),
        most_tokens: config.max_tokens.into(),
    };
    let changed = app.hub.execute(&caller, ChangeService { agent, changes }).await?;
    Ok(data(ServiceAgent::new(&changed.agent, &changed.service)))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, RemoveService { agent: agent_id(&id)? }).await?;
    Ok(Done)
}

pub async fn validate(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<ServiceValidation>, Problem> {
    let service = app.hub.read(&caller, GetService { agent: agent_id(&id)? }).await?.service;
    let error = app.config.models.probe(service.model).await.err();
    Ok(data(ServiceValidation { valid: error.is_none(), error }))
}

fn model_form(config: &mut ServiceAgentSettings, api: Option<ModelApi>) -> ModelForm<'_> {
    ModelForm {
        model: config.model.take(),
        url: ("config.baseUrl", config.base_url.as_deref()),
        key: ("config.apiKey", config.api_key.as_ref()),
        api,
    }
}

/// Treats blank text as absent.
fn non_empty(text: Box<str>) -> Option<Box<str>> {
    Some(text).filter(|text| !text.trim().is_empty())
}

fn parse_status(status: Option<&str>) -> Result<Option<bool>, Problem> {
    match status {
        None => Ok(None),
        Some("active") => Ok(Some(true)),
        Some("inactive") => Ok(Some(false)),
        Some(_) => Err(Problem::invalid("status", "must be active or inactive")),
    }
}

fn parse_api(word: Option<&str>) -> Result<Option<ModelApi>, Problem> {
    let unknown = || Problem::invalid("type", "must be openai-chat or anthropic-chat");
    word.map(|word| ServiceAgentType::parse(word).ok_or_else(unknown)).transpose()
}
