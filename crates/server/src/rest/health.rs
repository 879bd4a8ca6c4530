//! Whether the hub can do its work.

use crate::App;
use axum::Json;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use parlor_engine::Health;
use parlor_wire::time::iso;
use serde_json::json;
use std::sync::Arc;

pub async fn health(State(app): State<Arc<App>>) -> Response {
    let (status, store) = match app.hub.health() {
        Health::Good => (StatusCode::OK, "ok"),
        Health::Full => (StatusCode::SERVICE_UNAVAILABLE, "full"),
        Health::Broken => (StatusCode::SERVICE_UNAVAILABLE, "failed"),
    };
    let ok = status == StatusCode::OK;
    let body = json!({
        "ok": ok,
        "status": if ok { "ok" } else { "degraded" },
        "timestamp": iso(app.hub.now()),
        "version": env!("CARGO_PKG_VERSION"),
        "checks": { "store": store },
    });
    (status, Json(body)).into_response()
}
