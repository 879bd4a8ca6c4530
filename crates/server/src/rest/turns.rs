//! Turns: the decisions about automatic turns, and the start of a turn.

use super::agents::agent_id;
use super::messages::message_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{Created, Data, created, data};
use axum::extract::State;
use parlor_model::command::{TriggerTurn, TurnInput};
use parlor_model::query::ListTurns;
use parlor_model::{SessionId, TurnPage};
use parlor_wire::agentim::rest;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
pub struct TurnQuery {
    /// Default 50, maximum 200.
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
    /// Only decisions about this agent.
    #[serde(rename = "agentId")]
    agent: Option<String>,
    /// Only decisions about sessions with this id.
    #[serde(rename = "sessionId")]
    session: Option<String>,
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<TurnQuery>,
) -> Result<Data<rest::TurnPage<'static>>, Problem> {
    let limit = params.limit.unwrap_or(50).clamp(1, 200);
    let cursor = |text: String| text.parse().map_err(|_| Problem::invalid("cursor", "is not a cursor"));
    let page = TurnPage {
        // One more, to know whether there is a further page.
        limit: limit + 1,
        before: params.cursor.map(cursor).transpose()?,
        session: params.session.as_deref().map(session_id).transpose()?,
    };
    let agent = params.agent.as_deref().map(agent_id).transpose()?;
    let turns = app.hub.read(&caller, ListTurns { agent, page }).await?;
    Ok(data(rest::TurnPage::new(&turns, limit)))
}

pub async fn start(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::NewTurn>,
) -> Result<Created<rest::StartedTurn>, Problem> {
    let input = match (body.message_ids, body.prompt) {
        (Some(_), Some(_)) => return Err(Problem::invalid("prompt", "cannot be used with messageIds")),
        (None, Some(prompt)) => TurnInput::Prompt(prompt.into()),
        (ids, None) => {
            let ids = ids.unwrap_or_default();
            TurnInput::Mail(ids.iter().map(|id| message_id(id)).collect::<Result<_, _>>()?)
        }
    };
    let session = body.session_id.as_deref().map_or(Ok(SessionId::main()), session_id)?;
    let turn = TriggerTurn { agent: agent_id(&body.agent_id)?, session, input };
    let receipt = app.hub.execute(&caller, turn).await?;
    Ok(created(rest::StartedTurn::from(&receipt)))
}

fn session_id(id: &str) -> Result<SessionId, Problem> {
    SessionId::parse(id).map_err(|_| Problem::invalid("sessionId", "is not the id of a session"))
}
