//! Routers: models that pick which agents answer an unaddressed message.

use super::model_access::ModelForm;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{Created, Data, Done, List, created, data, list as all};
use axum::extract::State;
use parlor_model::command::{ChangeRouter, CreateRouter, RemoveRouter, RouterChanges};
use parlor_model::query::{GetOwnRouter, ListRouters, MayCreateRouter};
use parlor_model::{EntityKind, ModelApi, Refusal, RouterId};
use parlor_wire::agentim::rest;
use std::sync::Arc;

pub fn router_id(id: &str) -> Result<RouterId, Problem> {
    RouterId::parse(id).map_err(|_| Problem::not_an_id())
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<rest::Router<'static>>, Problem> {
    Ok(all(app.hub.read(&caller, ListRouters).await?.iter().map(rest::Router::from)))
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::Router<'static>>, Problem> {
    let id = router_id(&id)?;
    let routers = app.hub.read(&caller, ListRouters).await?;
    let found = routers.iter().find(|router| router.id == id).ok_or(Refusal::NotFound(EntityKind::Router))?;
    Ok(data(rest::Router::from(found)))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::RouterBody>,
) -> Result<Created<rest::Router<'static>>, Problem> {
    let shared = parse_scope(body.scope.as_deref())?.unwrap_or(false);
    // Checked first: only an authorised caller may learn which addresses the hub can reach.
    app.hub.may(&caller, MayCreateRouter { shared }).await?;
    let (name, model) = (body.name.clone().unwrap_or_default(), model_form(&body)?.access(&app)?);
    let router = app.hub.execute(&caller, CreateRouter { name, shared, model }).await?;
    Ok(created(rest::Router::from(&*router)))
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::RouterBody>,
) -> Result<Data<rest::Router<'static>>, Problem> {
    let router = router_id(&id)?;
    // Checked first: only a caller who may change the router may learn which base URL its key is bound to.
    let existing = app.hub.read(&caller, GetOwnRouter { router: router.clone() }).await?;
    let changes = RouterChanges {
        shared: parse_scope(body.scope.as_deref())?,
        model: model_form(&body)?.changes(&app, &existing.model)?,
        name: body.name,
    };
    let router = app.hub.execute(&caller, ChangeRouter { router, changes }).await?;
    Ok(data(rest::Router::from(&*router)))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, RemoveRouter { router: router_id(&id)? }).await?;
    Ok(Done)
}

/// Sends a short request to the router's model. Only for callers who may change the router, since its owner
/// pays.
pub async fn test(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::RouterTest>, Problem> {
    let router = app.hub.read(&caller, GetOwnRouter { router: router_id(&id)? }).await?;
    let error = app.config.models.probe(router.model).await.err();
    Ok(data(rest::RouterTest { success: error.is_none(), error }))
}

fn model_form(body: &rest::RouterBody) -> Result<ModelForm<'_>, Problem> {
    Ok(ModelForm {
        url: ("llmBaseUrl", body.llm_base_url.as_deref()),
        key: ("llmApiKey", body.llm_api_key.as_ref()),
        model: body.llm_model.clone(),
        api: parse_api(body.llm_api.as_deref())?,
    })
}

fn parse_scope(scope: Option<&str>) -> Result<Option<bool>, Problem> {
    match scope {
        None => Ok(None),
        Some("personal") => Ok(Some(false)),
        Some("global") => Ok(Some(true)),
        Some(_) => Err(Problem::invalid("scope", "must be personal or global")),
    }
}

fn parse_api(word: Option<&str>) -> Result<Option<ModelApi>, Problem> {
    match word {
        None => Ok(None),
        Some(word) => {
            let api = ModelApi::parse(word);
            Ok(Some(api.ok_or(Problem::invalid("llmApi", "must be openai or anthropic"))?))
        }
    }
}
