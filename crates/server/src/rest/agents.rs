//! Agents, as far as the real clients ask for them.

use crate::App;
use crate::http::Signed;
use crate::http::body::data;
use crate::http::problem::Problem;
use axum::extract::State;
use axum::response::Response;
use parlor_model::{Answer, Query, Refusal};
use parlor_wire::agentim::rest;
use serde_json::json;
use std::sync::Arc;

pub async fn list(State(app): State<Arc<App>>, Signed(caller): Signed) -> Result<Response, Problem> {
    let Answer::Agents(agents) = app.hub.read(&caller, Query::Agents).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(data(agents.iter().map(rest::agent).collect()))
}

/// Agents belong to their owners alone so far, so nobody shares one.
pub async fn shared(State(app): State<Arc<App>>, Signed(caller): Signed) -> Result<Response, Problem> {
    app.hub.may(&caller, Query::Agents).await?;
    Ok(data(json!([])))
}
