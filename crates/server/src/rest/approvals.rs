//! Tool approvals: pending permission requests of agents, and the rules that allow a tool permanently.

use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::response::{Data, Done, List, data, list};
use axum::extract::State;
use parlor_model::command::{DecideApproval, RevokeApprovalRule};
use parlor_model::query::{ListApprovalRules, ListApprovals};
use parlor_model::{AgentId, ApprovalId, ApprovalKind, EntityKind, InputDigest, Refusal};
use parlor_wire::agentim::rest::{self, NewDecision, RuleAsked};
use std::sync::Arc;

pub async fn open(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<List<rest::Approval<'static>>, Problem> {
    let approvals = app.hub.read(&caller, ListApprovals { room: room_id(&id)? }).await?;
    let tools = approvals.iter().filter(|approval| approval.subject.kind() == ApprovalKind::Tool);
    Ok(list(tools.map(rest::Approval::from)))
}

pub async fn decide(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<NewDecision>,
) -> Result<Data<rest::Approval<'static>>, Problem> {
    let command = DecideApproval {
        approval: ApprovalId::parse(&id).map_err(|_| Problem::not_an_id())?,
        allow: match &*body.decision {
            "allow" => true,
            "deny" => false,
            _ => return Err(Problem::invalid("decision", "must be allow or deny")),
        },
        always: body.allow_always.unwrap_or(false),
        reason: body.deny_reason,
        digest: match body.input_digest.as_deref().map(InputDigest::parse) {
            Some(None) => return Err(Problem::invalid("inputDigest", "must be 64 hexadecimal digits")),
            given => given.flatten(),
        },
    };
    let approval = app.hub.execute(&caller, command).await?;
    Ok(data(rest::Approval::from(&*approval)))
}

pub async fn rules(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<List<rest::ApprovalRule<'static>>, Problem> {
    let rules = app.hub.read(&caller, ListApprovalRules { room: room_id(&id)? }).await?;
    Ok(list(rules.iter().map(rest::ApprovalRule::from)))
}

pub async fn revoke(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Parameters(params): Parameters<RuleAsked>,
) -> Result<Done, Problem> {
    let room = room_id(&id)?;
    let agent = AgentId::parse(&params.agent_id).map_err(|_| Refusal::NotFound(EntityKind::ApprovalRule))?;
    let command = RevokeApprovalRule { room, agent, tool: params.tool_name.into() };
    app.hub.execute(&caller, command).await?;
    Ok(Done)
}
