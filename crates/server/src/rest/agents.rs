//! Agents, as far as the real clients ask for them.

use crate::App;
use crate::http::Signed;
use crate::http::answer::{List, list as all};
use crate::http::problem::Problem;
use axum::extract::State;
use parlor_model::{Answer, Query, Refusal};
use parlor_wire::agentim::rest;
use std::sync::Arc;

type Listed = Result<List<rest::Agent<'static>>, Problem>;

pub async fn list(State(app): State<Arc<App>>, Signed(caller): Signed) -> Listed {
    let Answer::Agents(agents) = app.hub.read(&caller, Query::Agents).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(all(agents.iter().map(rest::Agent::from)))
}

/// Agents belong to their owners alone so far, so nobody shares one.
pub async fn shared(State(app): State<Arc<App>>, Signed(caller): Signed) -> Listed {
    app.hub.may(&caller, Query::Agents).await?;
    Ok(all([]))
}
