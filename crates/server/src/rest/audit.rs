//! The audit log, read page by page with filters. Admins only, as the engine enforces.

use crate::App;
use crate::http::Authenticated;
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{Data, data};
use axum::extract::State;
use parlor_model::Time;
use parlor_model::audit::{Action, AuditFilter};
use parlor_model::query::{AuditPage, ListAuditRecords};
use parlor_wire::agentim::rest;
use parlor_wire::time;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
pub struct AuditQuery {
    /// Default 50, maximum 200.
    limit: Option<usize>,
    /// `nextCursor` of the previous page.
    cursor: Option<String>,
    /// Only entries with this action.
    action: Option<String>,
    /// Only entries of this actor, by id or name.
    actor: Option<Box<str>>,
    /// Only entries about this subject, by id or name.
    subject: Option<Box<str>>,
    /// Start of the time range.
    from: Option<String>,
    /// End of the time range.
    to: Option<String>,
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<AuditQuery>,
) -> Result<Data<rest::AuditPage<'static>>, Problem> {
    let filter = AuditFilter {
        limit: params.limit.unwrap_or(50).clamp(1, 200),
        before: parse_optional(params.cursor, |text| text.parse().ok(), "cursor", "is not a cursor")?,
        action: parse_optional(params.action, Action::parse, "action", "is not an action")?,
        actor: params.actor,
        subject: params.subject,
        from: parse_optional(params.from, parse_time, "from", "must be a time")?,
        to: parse_optional(params.to, parse_time, "to", "must be a time")?,
    };
    let AuditPage { records, more } = app.hub.read(&caller, ListAuditRecords { filter }).await?;
    Ok(data(rest::AuditPage::new(&records, more)))
}

fn parse_optional<T>(
    value: Option<String>,
    parse: impl FnOnce(&str) -> Option<T>,
    field: &'static str,
    rule: &'static str,
) -> Result<Option<T>, Problem> {
    value.map(|text| parse(&text).ok_or(Problem::invalid(field, rule))).transpose()
}

/// Parses a time from a query, where an unencoded `+` arrives as a space.
fn parse_time(text: &str) -> Option<Time> {
    time::parse(&text.replace(' ', "+"))
}
