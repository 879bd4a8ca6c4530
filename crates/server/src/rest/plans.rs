//! Plans of agents: list, approve, reject and edit them.

use super::chat::{SessionQuery, agent_id};
use super::roots::room_selection;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Parameters;
use crate::http::problem::ChatEventsProblem;
use crate::http::response::{BareJson, Items, bare_json, items};
use axum::extract::State;
use parlor_model::Caller;
use parlor_model::command::{DecidePlan, PlanDecision};
use parlor_model::query::ListPlans;
use parlor_wire::events::rest::{AgentPlan, OfPlan, Okay, PlanEdit, PlanJudged};
use std::sync::Arc;

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
) -> Result<Items<AgentPlan>, ChatEventsProblem> {
    let plans = app.hub.read(&caller, ListPlans { rooms: params.rooms()? }).await?;
    Ok(items(plans.iter().map(AgentPlan::from)))
}

async fn decide(
    app: &App,
    caller: &Caller,
    of: &OfPlan,
    verdict: PlanDecision,
) -> Result<(), ChatEventsProblem> {
    let agent = agent_id(&of.agent_id)?;
    let rooms = room_selection(of.session_id.as_deref(), of.project_root.as_deref())?;
    app.hub.execute(caller, DecidePlan { agent, rooms, verdict }).await?;
    Ok(())
}

pub async fn approve(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<OfPlan>,
) -> Result<BareJson<PlanJudged>, ChatEventsProblem> {
    decide(&app, &caller, &body, PlanDecision::Approve).await?;
    Ok(bare_json(PlanJudged { status: "approved" }))
}

pub async fn reject(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<OfPlan>,
) -> Result<BareJson<PlanJudged>, ChatEventsProblem> {
    decide(&app, &caller, &body, PlanDecision::Reject).await?;
    Ok(bare_json(PlanJudged { status: "rejected" }))
}

pub async fn edit(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<PlanEdit>,
) -> Result<BareJson<Okay>, ChatEventsProblem> {
    let PlanEdit { agent_id, session_id, project_root, text } = body;
    let of = OfPlan { agent_id, session_id, project_root };
    decide(&app, &caller, &of, PlanDecision::Edit(text.into())).await?;
    Ok(bare_json(Okay::YES))
}
