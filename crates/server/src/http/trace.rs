//! Middleware for every request: a request id, a log line, a trace span, metrics, and security headers.
//!
//! The log line contains method, path and status. Queries, headers and bodies are not logged, as they contain
//! secrets.

use crate::App;
use crate::metrics::RouteLabel;
use axum::extract::{Request, State};
use axum::middleware::Next;
use axum::response::Response;
use http::header::{CACHE_CONTROL, REFERRER_POLICY, X_CONTENT_TYPE_OPTIONS, X_FRAME_OPTIONS};
use http::{HeaderName, HeaderValue};
use std::sync::Arc;
use std::time::Instant;
use tracing::Instrument;

static REQUEST_ID: HeaderName = HeaderName::from_static("x-request-id");

pub async fn trace(State(app): State<Arc<App>>, request: Request, next: Next) -> Response {
    let id = uuid::Uuid::now_v7().simple().to_string();
    let span = tracing::info_span!("request", %id);
    let (method, path, began) = (request.method().clone(), request.uri().path().to_owned(), Instant::now());
    let label = RouteLabel::of(&request);
    // Exported to OpenTelemetry, independently of the log line.
    let traced = tracing::debug_span!(
        "http",
        otel.kind = "server",
        otel.name = format!("{} {}", label.method(), label.route()),
        http.request.method = label.method(),
        http.route = label.route(),
        http.response.status_code = tracing::field::Empty,
    );
    let response_future = next.run(request).instrument(traced.clone());
    let mut response = response_future.instrument(span.clone()).await;
    let (time, status) = (began.elapsed(), response.status().as_u16());
    traced.record("http.response.status_code", status);
    app.http_metrics.count_response(&label, status, time);
    let millis = time.as_secs_f64() * 1000.0;
    span.in_scope(|| {
        if status >= 500 {
            tracing::warn!(%method, path, status, millis, "answered");
        } else {
            tracing::debug!(%method, path, status, millis, "answered");
        }
    });
    let headers = response.headers_mut();
    if let Ok(id) = HeaderValue::from_str(&id) {
        headers.insert(REQUEST_ID.clone(), id);
    }
    headers.insert(X_CONTENT_TYPE_OPTIONS, HeaderValue::from_static("nosniff"));
    headers.insert(X_FRAME_OPTIONS, HeaderValue::from_static("DENY"));
    headers.insert(REFERRER_POLICY, HeaderValue::from_static("no-referrer"));
    headers.entry(CACHE_CONTROL).or_insert(HeaderValue::from_static("no-store"));
    response
}
