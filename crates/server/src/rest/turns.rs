//! Why agents did or did not answer.

use super::messages::message_id;
use crate::App;
use crate::http::Signed;
use crate::http::answer::{List, list};
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use axum::extract::State;
use parlor_model::{Answer, Query, Refusal};
use parlor_wire::agentim::rest::TurnDelivery;
use std::sync::Arc;

pub async fn deliveries(
    State(app): State<Arc<App>>,
    Signed(caller): Signed,
    Path(id): Path<String>,
) -> Result<List<TurnDelivery<'static>>, Problem> {
    let query = Query::RunsOf { message: message_id(&id)? };
    let Answer::Runs(runs) = app.hub.read(&caller, query).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(list(runs.iter().map(|(run, name)| TurnDelivery::new(run, name, app.hub.has_spoken(&run.id)))))
}
