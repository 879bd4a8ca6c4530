//! WebSocket handshake: turns an HTTP request into a raw connection and runs a protocol's session on it.

use super::concurrency::ConcurrencyPermit;
use super::open_sockets::SocketGuard;
use super::stream::Stream;
use crate::App;
use crate::auth::origin;
use crate::auth::rate_limiter::network;
use crate::http::Peer;
use crate::http::problem::Problem;
use crate::write_timeout::WriteTimeoutStream;
use axum::body::Body;
use axum::extract::{MatchedPath, Request};
use axum::response::Response;
use bytes::Bytes;
use http::header::{CONNECTION, SEC_WEBSOCKET_ACCEPT, SEC_WEBSOCKET_KEY, SEC_WEBSOCKET_VERSION, UPGRADE};
use http::{HeaderMap, Method, StatusCode};
use hyper::upgrade::OnUpgrade;
use hyper_util::rt::TokioIo;
use std::sync::Arc;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;

/// An upgraded connection. `permit` counts it as unauthenticated until the client authenticates.
pub struct Upgraded {
    pub stream: Stream,
    pub already_read: Bytes,
    pub permit: ConcurrencyPermit,
    pub socket_guard: SocketGuard,
}

/// Answers a handshake from an allowed origin and runs `run_session` on the upgraded connection, as a task of the app.
pub fn upgrade<Session>(
    app: &Arc<App>,
    request: Request,
    run_session: impl FnOnce(Upgraded) -> Session + Send + 'static,
) -> Result<Response, Problem>
where
    Session: Future<Output = ()> + Send + 'static,
{
    if !origin::is_allowed(request.headers(), &app.config) {
        return Err(Problem::Status(StatusCode::FORBIDDEN, "This origin may not connect"));
    }
    upgrade_from_any_origin(app, request, run_session)
}

/// Answers a handshake as [`upgrade`] does, for protocols that serve pages of every origin. Their credential is a key
/// or token that the page itself must know, never a cookie.
pub fn upgrade_from_any_origin<Session>(
    app: &Arc<App>,
    mut request: Request,
    run_session: impl FnOnce(Upgraded) -> Session + Send + 'static,
) -> Result<Response, Problem>
where
    Session: Future<Output = ()> + Send + 'static,
{
    let headers = request.headers();
    let is_handshake = request.method() == Method::GET
        && asks_for_upgrade(headers)
        && headers.get(SEC_WEBSOCKET_VERSION).is_some_and(|version| version == "13");
    let key = headers.get(SEC_WEBSOCKET_KEY).filter(|_| is_handshake);
    let Some(accept) = key.map(|key| derive_accept_key(key.as_bytes())) else {
        return Err(Problem::Status(StatusCode::UPGRADE_REQUIRED, "This is a WebSocket endpoint"));
    };
    let peer = request.extensions().get::<Peer>().copied().unwrap_or_default();
    let permit = app.connection_limiter.unauthenticated(network(peer.0.ip()))?;
    let Some(on_upgrade) = request.extensions_mut().remove::<OnUpgrade>() else {
        return Err(Problem::Status(StatusCode::UPGRADE_REQUIRED, "This connection cannot be upgraded"));
    };
    let endpoint = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let socket_guard = app.open_sockets.begin(endpoint);
    app.tasks.spawn(async move {
        let Ok(upgraded) = on_upgrade.await else { return };
        let Ok(parts) = upgraded.downcast::<TokioIo<WriteTimeoutStream>>() else { return };
        let stream = parts.io.into_inner().into_inner();
        run_session(Upgraded { stream, already_read: parts.read_buf, permit, socket_guard }).await;
    });
    let response = Response::builder()
        .status(StatusCode::SWITCHING_PROTOCOLS)
        .header(CONNECTION, "upgrade")
        .header(UPGRADE, "websocket")
        .header(SEC_WEBSOCKET_ACCEPT, accept)
        .body(Body::empty());
    response.map_err(|_| Problem::Status(StatusCode::BAD_REQUEST, "Malformed handshake"))
}

/// Whether a request asks for a WebSocket. The rest of its handshake may be incomplete.
pub fn asks_for_upgrade(headers: &HeaderMap) -> bool {
    has_token(headers, CONNECTION.as_str(), "upgrade") && has_token(headers, UPGRADE.as_str(), "websocket")
}

fn has_token(headers: &HeaderMap, header: &str, token: &str) -> bool {
    let values = headers.get_all(header).into_iter().filter_map(|value| value.to_str().ok());
    values.flat_map(|value| value.split(',')).any(|part| part.trim().eq_ignore_ascii_case(token))
}
