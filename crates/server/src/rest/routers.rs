//! Routers: models that pick which agents answer.

use super::model_access::ModelForm;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{Created, Data, Done, List, created, data, list as all};
use axum::extract::State;
use parlor_model::command::{NewRouter, RouterChanges};
use parlor_model::{
    Answer, Caller, Command, EntityKind, ModelApi, Query, Receipt, Refusal, Router, RouterId,
};
use parlor_wire::agentim::rest;
use std::sync::Arc;

pub fn router_id(id: &str) -> Result<RouterId, Problem> {
    RouterId::parse(id).map_err(|_| Problem::not_an_id())
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<rest::Router<'static>>, Problem> {
    Ok(all(known(&app, &caller).await?.iter().map(rest::Router::from)))
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::Router<'static>>, Problem> {
    let id = router_id(&id)?;
    let known = known(&app, &caller).await?;
    let found = known.iter().find(|router| router.id == id).ok_or(Refusal::NotFound(EntityKind::Router))?;
    Ok(data(rest::Router::from(found)))
}

async fn known(app: &App, caller: &Caller) -> Result<Vec<Router>, Problem> {
    match app.hub.read(caller, Query::Routers).await? {
        Answer::Routers(routers) => Ok(routers),
        _ => Err(Refusal::Unavailable.into()),
    }
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::RouterBody>,
) -> Result<Created<rest::Router<'static>>, Problem> {
    let shared = shared(body.scope.as_deref())?.unwrap_or(false);
    // Asked first: what may be reached from here is told to nobody else.
    app.hub.may(&caller, Query::MayMakeRouter { shared }).await?;
    let (name, model) = (body.name.clone().unwrap_or_default(), written(&body)?.access(&app)?);
    let new = NewRouter { name, shared, model };
    let Receipt::Router(router) = app.hub.execute(&caller, Command::CreateRouter(new)).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(created(rest::Router::from(&*router)))
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::RouterBody>,
) -> Result<Data<rest::Router<'static>>, Problem> {
    let router = router_id(&id)?;
    // Asked first: only who may change it learns for which address its key is good.
    let known = own(&app, &caller, router.clone()).await?;
    let changes = RouterChanges {
        shared: shared(body.scope.as_deref())?,
        model: written(&body)?.changes(&app, &known.model)?,
        name: body.name,
    };
    let Receipt::Router(router) = app.hub.execute(&caller, Command::ChangeRouter { router, changes }).await?
    else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(data(rest::Router::from(&*router)))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, Command::RemoveRouter { router: router_id(&id)? }).await?;
    Ok(Done)
}

/// Asks the model something simple, at the expense of whoever may change the router.
pub async fn test(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Data<rest::RouterTest>, Problem> {
    let router = own(&app, &caller, router_id(&id)?).await?;
    let error = app.config.models.probe(router.model).await.err();
    Ok(data(rest::RouterTest { success: error.is_none(), error }))
}

async fn own(app: &App, caller: &Caller, router: RouterId) -> Result<Router, Problem> {
    match app.hub.read(caller, Query::OwnRouter { router }).await? {
        Answer::Router(router) => Ok(router),
        _ => Err(Refusal::Unavailable.into()),
    }
}

fn written(body: &rest::RouterBody) -> Result<ModelForm<'_>, Problem> {
    Ok(ModelForm {
        url: ("llmBaseUrl", body.llm_base_url.as_deref()),
        key: ("llmApiKey", body.llm_api_key.as_ref()),
        model: body.llm_model.clone(),
        api: api(body.llm_api.as_deref())?,
    })
}

fn shared(scope: Option<&str>) -> Result<Option<bool>, Problem> {
    match scope {
        None => Ok(None),
        Some("personal") => Ok(Some(false)),
        Some("global") => Ok(Some(true)),
        Some(_) => Err(Problem::invalid("scope", "must be personal or global")),
    }
}

fn api(word: Option<&str>) -> Result<Option<ModelApi>, Problem> {
    match word {
        None => Ok(None),
        Some(word) => {
            let known = ModelApi::parse(word);
            Ok(Some(known.ok_or(Problem::invalid("llmApi", "must be openai or anthropic"))?))
        }
    }
}
