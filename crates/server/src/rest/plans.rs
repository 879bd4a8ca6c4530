//! Plans of agents: list, approve, reject and edit them.

use super::chat::{SessionQuery, agent_id};
use super::roots::rooms_of_call;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Items, bare_json, items};
use axum::extract::State;
use parlor_model::command::{DecidePlan, PlanDecision};
use parlor_model::query::ListPlans;
use parlor_model::run_event::PlanState;
use parlor_model::{Caller, CurrentPlan, EntityKind, Post, Refusal};
use parlor_wire::events::rest::{AgentPlan, OfPlan, Okay, PlanEdit, PlanJudged};
use std::sync::Arc;

/// Text of the message that is posted to an agent when its plan is approved.
const APPROVAL_TEXT: &str = "The plan is approved. Carry it out.";

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
) -> Result<Items<AgentPlan>, Problem> {
    let (session, root) = (params.session_id.as_deref(), params.project_root.as_deref());
    Ok(items(plans(&app, &caller, session, root).await?.iter().map(AgentPlan::from)))
}

async fn plans(
    app: &App,
    caller: &Caller,
    session: Option<&str>,
    root: Option<&str>,
) -> Result<Vec<CurrentPlan>, Problem> {
    let rooms = rooms_of_call(app, caller, session, root).await?;
    let rooms = rooms.map_or_else(|| vec![None], |rooms| rooms.into_iter().map(Some).collect());
    let mut found = Vec::new();
    for room in rooms {
        found.extend(app.hub.read(caller, ListPlans { room }).await?);
    }
    Ok(found)
}

/// Returns the agent's only undecided plan in the given scope.
async fn pending(app: &App, caller: &Caller, of: &OfPlan) -> Result<CurrentPlan, Problem> {
    let agent = agent_id(&of.agent_id)?;
    let mut open = plans(app, caller, of.session_id.as_deref(), of.project_root.as_deref()).await?;
    open.retain(|plan| plan.agent == agent && plan.plan.state == PlanState::Planned);
    match (open.pop(), open.is_empty()) {
        (Some(plan), true) => Ok(plan),
        (Some(_), false) => {
            Err(Problem::invalid("session_id", "is required: the agent has several pending plans"))
        }
        (None, _) => Err(Refusal::NotFound(EntityKind::Plan).into()),
    }
}

/// Applies a decision to the pending plan. If the plan changes concurrently, decides on the new revision
/// instead.
async fn decide(
    app: &App,
    caller: &Caller,
    of: &OfPlan,
    verdict: impl Fn(&CurrentPlan) -> PlanDecision,
) -> Result<(), Problem> {
    loop {
        let plan = pending(app, caller, of).await?;
        let verdict = verdict(&plan);
        let CurrentPlan { room, agent, rev, .. } = plan;
        match app.hub.execute(caller, DecidePlan { room, agent, rev, verdict }).await {
            Err(Refusal::AlreadyExists(EntityKind::Plan)) => {}
            decided => return decided.map(drop).map_err(Problem::from),
        }
    }
}

pub async fn approve(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<OfPlan>,
) -> Result<BareJson<PlanJudged>, Problem> {
    let post = |plan: &CurrentPlan| Post {
        room: plan.room.clone(),
        text: match &plan.text {
            Some(text) => format!("{APPROVAL_TEXT}\n\n{text}").into(),
            None => APPROVAL_TEXT.into(),
        },
        mentions: vec![plan.agent.as_str().into()],
        reply_to: None,
        attachments: Vec::new(),
        client_message_id: None,
    };
    decide(&app, &caller, &body, |plan| PlanDecision::Approve(post(plan))).await?;
    Ok(bare_json(PlanJudged { status: "approved" }))
}

pub async fn reject(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<OfPlan>,
) -> Result<BareJson<PlanJudged>, Problem> {
    decide(&app, &caller, &body, |_| PlanDecision::Reject).await?;
    Ok(bare_json(PlanJudged { status: "rejected" }))
}

pub async fn edit(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<PlanEdit>,
) -> Result<BareJson<Okay>, Problem> {
    let PlanEdit { agent_id, session_id, project_root, text } = body;
    let of = OfPlan { agent_id, session_id, project_root };
    decide(&app, &caller, &of, |_| PlanDecision::Edit(text.as_str().into())).await?;
    Ok(bare_json(Okay::YES))
}
