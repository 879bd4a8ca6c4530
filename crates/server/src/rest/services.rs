//! Service agents: models that the hub itself runs as agents, managed by admins.

use super::model_access::ModelForm;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{Created, Data, Done, List, created, data, list as all};
use axum::extract::State;
use parlor_model::command::{NewService, ServiceChanges};
use parlor_model::{Agent, AgentId, Answer, Caller, Command, ModelApi, Query, Receipt, Refusal, Service};
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
    app.hub.may(&caller, Query::Services).await?;
    Ok(all(ServiceProvider::all()))
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<ServiceAgent<'static>>, Problem> {
    let Answer::Services(services) = app.hub.read(&caller, Query::Services).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(all(services.iter().map(|(agent, service)| ServiceAgent::new(agent, service))))
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<ServiceAgent<'static>>, Problem> {
    let (agent, service) = read_service(&app, &caller, agent_id(&id)?).await?;
    Ok(data(ServiceAgent::new(&agent, &service)))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<ServiceAgentBody>,
) -> Result<Created<ServiceAgent<'static>>, Problem> {
    // Checked first: only an authorised caller may learn which addresses the hub can reach.
    app.hub.may(&caller, Query::Services).await?;
    let api = parse_api(body.kind.as_deref())?.unwrap_or_default();
    let active = parse_status(body.status.as_deref())?.unwrap_or(true);
    let mut config = body.config.unwrap_or_default();
    config.base_url.get_or_insert_with(|| ServiceProvider::base_url(api).into());
    let new = NewService {
        name: body.name.unwrap_or_default(),
        description: body.description.unwrap_or_default(),
        active,
        model: model_form(&mut config, Some(api)).access(&app)?,
        fallback: config.fallback_model.flatten().and_then(non_empty),
        instructions: config.system_prompt.flatten().and_then(non_empty),
        most_tokens: config.max_tokens.flatten(),
    };
    match app.hub.execute(&caller, Command::CreateService(new)).await? {
        Receipt::Service { agent, service } => Ok(created(ServiceAgent::new(&agent, &service))),
        _ => Err(Refusal::Unavailable.into()),
    }
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<ServiceAgentBody>,
) -> Result<Data<ServiceAgent<'static>>, Problem> {
    let agent = agent_id(&id)?;
    let (_, existing) = read_service(&app, &caller, agent.clone()).await?;
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
    match app.hub.execute(&caller, Command::ChangeService { agent, changes }).await? {
        Receipt::Service { agent, service } => Ok(data(ServiceAgent::new(&agent, &service))),
        _ => Err(Refusal::Unavailable.into()),
    }
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, Command::RemoveService { agent: agent_id(&id)? }).await?;
    Ok(Done)
}

pub async fn validate(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<ServiceValidation>, Problem> {
    let (_, service) = read_service(&app, &caller, agent_id(&id)?).await?;
    let error = app.config.models.probe(service.model).await.err();
    Ok(data(ServiceValidation { valid: error.is_none(), error }))
}

async fn read_service(app: &App, caller: &Caller, agent: AgentId) -> Result<(Agent, Service), Problem> {
    match app.hub.read(caller, Query::Service { agent }).await? {
        Answer::Service(agent, service) => Ok((agent, service)),
        _ => Err(Refusal::Unavailable.into()),
    }
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
