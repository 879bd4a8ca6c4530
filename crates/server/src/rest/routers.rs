//! Routers: models that pick which agents answer.

use crate::App;
use crate::http::Signed;
use crate::http::answer::{Created, Data, Done, List, created, data, list as all};
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use axum::extract::State;
use parlor_model::command::{NewRouter, RouterChanges};
use parlor_model::{
    Answer, Caller, Command, ModelAccess, ModelApi, Query, Receipt, Refusal, Router, RouterId, SealedKey,
    Thing,
};
use parlor_wire::agentim::rest;
use std::sync::Arc;

pub fn router_id(id: &str) -> Result<RouterId, Problem> {
    RouterId::parse(id).map_err(|_| Problem::not_an_id())
}

pub async fn list(
    State(app): State<Arc<App>>,
    Signed(caller): Signed,
) -> Result<List<rest::Router<'static>>, Problem> {
    Ok(all(known(&app, &caller).await?.iter().map(rest::Router::from)))
}

pub async fn show(
    State(app): State<Arc<App>>,
    Signed(caller): Signed,
    Path(id): Path<String>,
) -> Result<Data<rest::Router<'static>>, Problem> {
    let id = router_id(&id)?;
    let known = known(&app, &caller).await?;
    let found = known.iter().find(|router| router.id == id).ok_or(Refusal::NotFound(Thing::Router))?;
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
    Signed(caller): Signed,
    Body(body): Body<rest::RouterBody>,
) -> Result<Created<rest::Router<'static>>, Problem> {
    let shared = shared(body.scope.as_deref())?.unwrap_or(false);
    // Asked first: what may be reached from here is told to nobody else.
    app.hub.may(&caller, Query::MayMakeRouter { shared }).await?;
    let url = body.llm_base_url.as_deref().ok_or(Problem::invalid("llmBaseUrl", "is required"))?;
    let base_url = address(&app, url)?;
    let key = sealed(&app, &base_url, body.llm_api_key.as_ref())?;
    let new = NewRouter {
        name: body.name.unwrap_or_default(),
        shared,
        model: ModelAccess {
            api: api(body.llm_api.as_deref())?.unwrap_or_default(),
            base_url,
            model: body.llm_model.unwrap_or_default(),
            key: key.flatten(),
        },
    };
    let Receipt::Router(router) = app.hub.call(&caller, Command::CreateRouter(new)).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(created(rest::Router::from(&*router)))
}

pub async fn change(
    State(app): State<Arc<App>>,
    Signed(caller): Signed,
    Path(id): Path<String>,
    Body(body): Body<rest::RouterBody>,
) -> Result<Data<rest::Router<'static>>, Problem> {
    let router = router_id(&id)?;
    // Asked first: only who may change it learns for which address its key is good.
    let known = own(&app, &caller, router.clone()).await?;
    let base_url = body.llm_base_url.as_deref().map(|url| address(&app, url)).transpose()?;
    // The same once more is no change, and needs no key again.
    let base_url = base_url.filter(|url| *url != known.model.base_url);
    let key = sealed(&app, base_url.as_ref().unwrap_or(&known.model.base_url), body.llm_api_key.as_ref())?;
    let changes = RouterChanges {
        name: body.name,
        shared: shared(body.scope.as_deref())?,
        api: api(body.llm_api.as_deref())?,
        // Without a key there is none to give again.
        key: if base_url.is_some() && known.model.key.is_none() { key.or(Some(None)) } else { key },
        base_url,
        model: body.llm_model,
    };
    let Receipt::Router(router) = app.hub.call(&caller, Command::ChangeRouter { router, changes }).await?
    else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(data(rest::Router::from(&*router)))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Signed(caller): Signed,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.call(&caller, Command::RemoveRouter { router: router_id(&id)? }).await?;
    Ok(Done)
}

/// Asks the model something simple, at the expense of whoever may change the router.
pub async fn test(
    State(app): State<Arc<App>>,
    Signed(caller): Signed,
    Path(id): Path<String>,
) -> Result<Data<rest::RouterTest>, Problem> {
    let router = own(&app, &caller, router_id(&id)?).await?;
    let error = app.config.models.probe(router).await.err();
    Ok(data(rest::RouterTest { success: error.is_none(), error }))
}

async fn own(app: &App, caller: &Caller, router: RouterId) -> Result<Router, Problem> {
    match app.hub.read(caller, Query::OwnRouter { router }).await? {
        Answer::Router(router) => Ok(router),
        _ => Err(Refusal::Unavailable.into()),
    }
}

fn address(app: &App, url: &str) -> Result<Box<str>, Problem> {
    app.config.models.address(url).map_err(|rule| Problem::invalid("llmBaseUrl", rule))
}

/// A key as it is kept: readable by this hub, for this address.
fn sealed(
    app: &App,
    base_url: &str,
    key: Option<&Option<Box<str>>>,
) -> Result<Option<Option<SealedKey>>, Problem> {
    let Some(key) = key else { return Ok(None) };
    let Some(key) = key.as_deref().map(str::trim).filter(|key| !key.is_empty()) else {
        return Ok(Some(None));
    };
    // As it must travel in a header.
    if key.len() > 1000 || !key.bytes().all(|byte| byte.is_ascii_graphic()) {
        return Err(Problem::invalid("llmApiKey", "cannot be a key"));
    }
    Ok(Some(Some(SealedKey(app.model_keys.close(base_url, key.as_bytes())))))
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
