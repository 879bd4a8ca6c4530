//! Who did what to whom.

use crate::App;
use crate::http::Authenticated;
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{Data, data};
use axum::extract::State;
use parlor_model::audit::{Action, AuditFilter};
use parlor_model::{Answer, Query, Refusal, Time};
use parlor_wire::agentim::rest;
use parlor_wire::time;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
pub struct AuditQuery {
    /// 50 where it is left out, 200 at most.
    limit: Option<usize>,
    /// As the last page gave it.
    cursor: Option<String>,
    action: Option<String>,
    /// An id or a name.
    actor: Option<Box<str>>,
    /// An id or a name.
    subject: Option<Box<str>>,
    from: Option<String>,
    to: Option<String>,
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(asked): Parameters<AuditQuery>,
) -> Result<Data<rest::AuditPage<'static>>, Problem> {
    let page = AuditFilter {
        limit: asked.limit.unwrap_or(50).clamp(1, 200),
        before: read(asked.cursor, |text| text.parse().ok(), "cursor", "is not of the form wanted")?,
        action: read(asked.action, Action::parse, "action", "is not an action")?,
        actor: asked.actor,
        subject: asked.subject,
        from: read(asked.from, moment, "from", "must be a time")?,
        to: read(asked.to, moment, "to", "must be a time")?,
    };
    let Answer::Audit { notes, more } = app.hub.read(&caller, Query::Audit(page)).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(data(rest::AuditPage::new(&notes, more)))
}

fn read<T>(
    given: Option<String>,
    parse: impl FnOnce(&str) -> Option<T>,
    field: &'static str,
    rule: &'static str,
) -> Result<Option<T>, Problem> {
    given.map(|text| parse(&text).ok_or(Problem::invalid(field, rule))).transpose()
}

/// A `+` in a query is a space where it was not encoded.
fn moment(text: &str) -> Option<Time> {
    time::parse(&text.replace(' ', "+"))
}
