//! Health check: reports whether the store accepts writes.

use crate::App;
use crate::http::openapi::{Describe, OperationDoc};
use crate::http::response::{BareJson, bare_json};
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use parlor_engine::Health;
use parlor_wire::agentim::rest;
use parlor_wire::time::iso;
use std::sync::Arc;

/// Health report: status 200 if healthy, otherwise 503 with the same body.
pub struct Report(StatusCode, BareJson<rest::Health<'static>>);

impl IntoResponse for Report {
    fn into_response(self) -> Response {
        (self.0, self.1).into_response()
    }
}

impl Describe for Report {
    fn describe(operation_doc: &mut OperationDoc) {
        for status in [StatusCode::OK, StatusCode::SERVICE_UNAVAILABLE] {
            let schema = operation_doc.schema_of::<rest::Health>();
            operation_doc.answers(status, schema);
        }
    }
}

pub async fn health(State(app): State<Arc<App>>) -> Report {
    let (status, store) = match app.hub.health() {
        Health::Good => (StatusCode::OK, "ok"),
        Health::Full => (StatusCode::SERVICE_UNAVAILABLE, "full"),
        Health::Broken => (StatusCode::SERVICE_UNAVAILABLE, "failed"),
    };
    let ok = status == StatusCode::OK;
    let body = rest::Health {
        ok,
        status: if ok { "ok" } else { "degraded" },
        timestamp: iso(app.hub.now()),
        version: env!("CARGO_PKG_VERSION"),
        checks: rest::Checks { store },
    };
    Report(status, bare_json(body))
}
