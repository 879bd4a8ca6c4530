//! Routes of Ably's REST API, at the root of the hub.
//!
//! A handler translates between the bodies of Ably and the engine. Unknown paths below these prefixes get an error of
//! Ably, never the web app.

mod history;
mod presence;
mod publish;
mod status;

use super::credentials::AblyCaller;
use super::http::{AblyRequest, allow_any_origin};
use super::token_requests;
use crate::App;
use crate::auth::rate_limiter::network;
use crate::http::rate_limits::RateLimitKey;
use axum::Router;
use axum::extract::rejection::PathRejection;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::{MethodRouter, any, get, post};
use http::StatusCode;
use parlor_wire::ably::channel::{Channel, QualifiedChannel};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::rest::{NO_STATS, link};
use std::sync::Arc;

/// The segment of a path that names a channel, percent-decoded.
type ChannelName = Result<Path<String>, PathRejection>;

/// Parameters that the client library adds to each request. Links to other pages leave them out.
const OWN_PARAMETERS: [&str; 6] = ["key", "access_token", "accessToken", "envelope", "format", "rnd"];

pub fn router() -> Router<Arc<App>> {
    let channels = Router::new()
        .route("/{channel}", get(status::status))
        .route("/{channel}/messages", get(history::history).post(publish::publish))
        .route("/{channel}/presence", get(presence::members))
        .route("/{channel}/presence/history", get(presence::history));
    // The fallback of a nested router does not match its prefix with a trailing slash.
    let slashes = ["/channels/", "/keys/", "/time/", "/stats/", "/messages/", "/presence/"];
    let routes = slashes.into_iter().fold(Router::new(), |routes, path| routes.route(path, any(not_found)));
    routes
        .nest("/channels", closed(channels))
        .nest("/keys", closed(token_requests::routes()))
        .nest("/time", closed(at_root(get(time))))
        .nest("/stats", closed(at_root(get(stats))))
        .nest("/messages", closed(at_root(post(publish::batch))))
        .nest("/presence", closed(at_root(get(presence::batch))))
        .layer(axum::middleware::from_fn(allow_any_origin))
}

fn at_root(methods: MethodRouter<Arc<App>>) -> Router<Arc<App>> {
    Router::new().route("/", methods)
}

/// Adds Ably's errors as the answers to all other requests below the prefix.
fn closed(routes: Router<Arc<App>>) -> Router<Arc<App>> {
    routes.fallback(not_found).method_not_allowed_fallback(method_not_allowed)
}

async fn not_found(request: AblyRequest) -> Response {
    request.error(ErrorInfo::new(codes::NOT_FOUND, "Not found"))
}

async fn method_not_allowed(request: AblyRequest) -> Response {
    request.error(ErrorInfo::new(codes::METHOD_NOT_ALLOWED, "Method not allowed"))
}

/// Returns the current time in milliseconds. Needs no credential.
async fn time(State(app): State<Arc<App>>, request: AblyRequest) -> Response {
    request.success(StatusCode::OK, &[app.hub.now().millis()])
}

/// Returns an empty list, because the hub keeps no statistics.
async fn stats(State(app): State<Arc<App>>, request: AblyRequest) -> Response {
    let result = authenticated(&app, &request).await;
    request.finish(result.map(|_| request.page(&NO_STATS, &link("stats", &parameters(&request), None))))
}

/// Verifies the credential of a request, and counts the request against the limit of its account or, without a valid
/// credential, of its address.
async fn authenticated(app: &App, request: &AblyRequest) -> Result<AblyCaller, ErrorInfo> {
    let caller = request.caller(app).await;
    let user = caller.as_ref().ok().and_then(|caller| caller.caller.user().cloned());
    let key = user.map_or_else(|| RateLimitKey::Address(network(request.address)), RateLimitKey::User);
    app.limits.count(&key).map_err(|refusal| codes::error(&refusal))?;
    caller
}

fn channel(name: ChannelName) -> Result<Channel, ErrorInfo> {
    let Path(name) =
        name.map_err(|_| ErrorInfo::new(codes::INVALID_CHANNEL, "Channel name is not valid UTF-8"))?;
    Ok(QualifiedChannel::parse(&name)?.channel)
}

/// Parameters of the query that the links to other pages repeat.
fn parameters(request: &AblyRequest) -> Vec<(&str, &str)> {
    request.pairs().filter(|(name, _)| !OWN_PARAMETERS.contains(name)).collect()
}
