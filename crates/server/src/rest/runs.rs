//! Runs of agents: those that a message triggered, with the reason for a missing answer, and those of one
//! agent.

use super::agents::agent_id;
use super::messages::message_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::response::{List, list};
use axum::extract::State;
use parlor_model::query::{ListRunsOfAgent, ListRunsOfMessage, NamedRun};
use parlor_wire::agentim::rest::TurnDelivery;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
pub struct LimitQuery {
    /// Default 50, maximum 200.
    limit: Option<usize>,
}

pub async fn of_agent(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Parameters(params): Parameters<LimitQuery>,
) -> Result<List<TurnDelivery<'static>>, Problem> {
    let limit = params.limit.unwrap_or(50).clamp(1, 200);
    let runs = app.hub.read(&caller, ListRunsOfAgent { agent: agent_id(&id)?, limit }).await?;
    Ok(delivery_list(&app, &runs))
}

pub async fn deliveries(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<List<TurnDelivery<'static>>, Problem> {
    let runs = app.hub.read(&caller, ListRunsOfMessage { message: message_id(&id)? }).await?;
    Ok(delivery_list(&app, &runs))
}

fn delivery_list(app: &App, runs: &[NamedRun]) -> List<TurnDelivery<'static>> {
    list(runs.iter().map(|(run, name)| TurnDelivery::new(run, name, app.hub.hosting().has_spoken(&run.id))))
}
