//! API keys of the caller: list, create and revoke them.

use crate::App;
use crate::ably::NewSigningKey;
use crate::auth::secrets;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{Created, Done, List, created, list as all};
use axum::extract::State;
use parlor_model::command::{CreateKey, RevokeKey};
use parlor_model::query::ListKeys;
use parlor_model::{Caller, KeyId, Scope};
use parlor_wire::ably::jaibber;
use parlor_wire::agentim::rest;
use std::sync::Arc;

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<rest::Key<'static>>, Problem> {
    let keys = app.hub.read(&caller, ListKeys).await?;
    Ok(all(keys.iter().map(rest::Key::from)))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::NewKey>,
) -> Result<Created<rest::CreatedKey<'static>>, Problem> {
    if let Some(capability) = &body.capability {
        return create_ably_key(&app, &caller, &body, capability).await;
    }
    let scopes = scopes(&body)?;
    let secret = secrets::api_key();
    let command = CreateKey { owner: None, name: body.name, scopes, secret: secrets::hash(&secret) };
    let key = app.hub.execute(&caller, command).await?;
    Ok(created(rest::CreatedKey { about: (&*key).into(), key: &secret }))
}

async fn create_ably_key(
    app: &App,
    caller: &Caller,
    body: &rest::NewKey,
    capability: &str,
) -> Result<Created<rest::CreatedKey<'static>>, Problem> {
    // Checked first, so that a caller who may not manage keys gets the same refusal for every body.
    app.hub.may(caller, ListKeys).await?;
    if !body.scopes.is_empty() || body.preset.is_some() {
        return Err(Problem::invalid("scopes", "must be empty for a key with a capability"));
    }
    let new = app.ably.keys().generate(None, body.name.clone(), capability);
    let invalid = |_| Problem::invalid("capability", "must be operations by channel, as JSON");
    let NewSigningKey { command, text } = new.map_err(invalid)?;
    let key = app.hub.execute(caller, command).await?;
    Ok(created(rest::CreatedKey { about: (&*key).into(), key: &text }))
}

/// The scopes of a new key, by the hub's names or by those of Jaibber.
fn scopes(body: &rest::NewKey) -> Result<Vec<Scope>, Problem> {
    let mut scopes = match body.preset.as_deref() {
        None => Vec::new(),
        Some(preset) => jaibber::rest::preset(preset)
            .ok_or(Problem::invalid("preset", "must be read-only, agent-operator or full-access"))?,
    };
    for name in &body.scopes {
        let scope = Scope::parse(name).or_else(|| jaibber::rest::scope(name));
        let scope = scope.ok_or(Problem::invalid("scopes", Scope::ALLOWED_VALUES))?;
        if !scopes.contains(&scope) {
            scopes.push(scope);
        }
    }
    Ok(scopes)
}

pub async fn revoke(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    let key = KeyId::parse(&id).map_err(|_| Problem::not_an_id())?;
    app.hub.execute(&caller, RevokeKey { key }).await?;
    Ok(Done)
}
