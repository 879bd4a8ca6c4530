//! Token requests and revocations: `POST /keys/{keyName}/requestToken` and `/revokeTokens`.

use super::credentials::{self, capability_of, issue_for_key, unknown_key};
use super::http::AblyRequest;
use super::nonces::{Rejected, WINDOW};
use super::signing_keys;
use crate::App;
use crate::auth::rate_limiter::network;
use crate::http::rate_limits::RateLimitKey;
use axum::Router;
use axum::body::Body;
use axum::extract::{Path, State};
use axum::response::Response;
use axum::routing::post;
use http::StatusCode;
use parlor_model::command::RevokeTokens;
use parlor_model::{KeyId, Principal, Time};
use parlor_wire::ably::auth::{KeyName, TokenDetails, TokenRequest};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::rest;
use serde::Serialize;
use std::sync::Arc;

/// Maximum size of a body.
const MAX_BODY_BYTES: usize = 128 * 1024;

/// Routes of keys, below `/keys`.
pub fn routes() -> Router<Arc<App>> {
    Router::new()
        .route("/{name}/requestToken", post(request_token))
        .route("/{name}/revokeTokens", post(revoke_tokens))
}

async fn request_token(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: AblyRequest,
    body: Body,
) -> Response {
    let issued = issue(&app, &name, &request, body).await;
    request.finish(issued.map(|token| request.success(StatusCode::CREATED, &token)))
}

async fn issue(app: &App, name: &str, request: &AblyRequest, body: Body) -> Result<TokenDetails, ErrorInfo> {
    count(app, request)?;
    let name = parse_name(name)?;
    let body: TokenRequest = request.decode(body, MAX_BODY_BYTES).await?;
    if body.key_name != name.as_str() {
        return Err(ErrorInfo::new(codes::BAD_REQUEST, "keyName differs from the key of the URL"));
    }
    if body.mac.is_none() {
        let key = own_key(app, &name, request).await?;
        let grant = body.grant(&request.caller(app).await?.capability)?;
        return Ok(issue_for_key(app, &key, grant));
    }
    let (key, secret) = credentials::signing_key(app, &name).await?;
    let now = app.hub.now();
    body.verify(&secret, now, WINDOW)?;
    let grant = body.grant(&capability_of(&key.key)?)?;
    let nonce = body.nonce.as_deref().unwrap_or_default();
    let signed_at = Time(body.timestamp.unwrap_or_default().saturating_mul(1000));
    app.ably.nonces.take(&key.key.id, nonce, signed_at, now).map_err(|rejected| match rejected {
        Rejected::Replayed => ErrorInfo::new(codes::NONCE_REPLAYED, "Token request was used before"),
        Rejected::BeforeStart => {
            let words = "Token request is older than the start of the hub: sign it again";
            ErrorInfo::new(codes::TIMESTAMP_OUT_OF_RANGE, words)
        }
        Rejected::Full => ErrorInfo::new(codes::RATE_LIMITED, "Too many token requests"),
    })?;
    Ok(issue_for_key(app, &key.key.id, grant))
}

/// Result for one target of a revocation.
#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Revoked<'a> {
    target: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    issued_before: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    applies_at: Option<i64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    error: Option<ErrorInfo>,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Revocations<'a> {
    success_count: usize,
    failure_count: usize,
    results: Vec<Revoked<'a>>,
}

async fn revoke_tokens(
    State(app): State<Arc<App>>,
    Path(name): Path<String>,
    request: AblyRequest,
    body: Body,
) -> Response {
    let revoked = revoke(&app, &name, &request, body).await;
    request.finish(revoked)
}

async fn revoke(app: &App, name: &str, request: &AblyRequest, body: Body) -> Result<Response, ErrorInfo> {
    count(app, request)?;
    let key = own_key(app, &parse_name(name)?, request).await?;
    let caller = request.caller(app).await?.caller;
    let rest::RevokeTokens { targets, issued_before, allow_reauth_margin: _ } =
        request.decode(body, MAX_BODY_BYTES).await?;
    let now = app.hub.now();
    let given = issued_before.map(|millis| Time(millis.saturating_mul(1000)));
    if given.is_some_and(|given| given > now.plus(std::time::Duration::from_secs(60))) {
        return Err(ErrorInfo::new(codes::INVALID_PARAMETER, "issuedBefore is in the future"));
    }
    let issued_before = given.unwrap_or(now).min(now);
    let is_valid = |target: &str| {
        let kind = target.split_once(':').filter(|(_, value)| !value.is_empty()).map(|(kind, _)| kind);
        matches!(kind, Some("clientId" | "revocationKey" | "channel"))
    };
    let valid: Vec<Box<str>> =
        targets.iter().filter(|target| is_valid(target)).map(|target| (**target).into()).collect();
    let success_count = valid.len();
    if targets.is_empty() || !valid.is_empty() {
        let command = RevokeTokens { key, targets: valid, issued_before };
        app.hub.execute(&caller, command).await.map_err(|refusal| codes::error(&refusal))?;
    }
    let result = |target: &'_ String| {
        let valid = is_valid(target);
        let error =
            || ErrorInfo::new(codes::BAD_REQUEST, "Target must name a clientId, revocationKey or channel");
        (valid.then(|| issued_before.millis()), valid.then(|| now.millis()), (!valid).then(error))
    };
    let results = targets.iter().map(|target| {
        let (issued_before, applies_at, error) = result(target);
        Revoked { target, issued_before, applies_at, error }
    });
    let results: Vec<_> = results.collect();
    let failure_count = results.len() - success_count;
    Ok(request.success(StatusCode::OK, &Revocations { success_count, failure_count, results }))
}

/// Counts a request against the limit of its address: the credential is not verified yet.
fn count(app: &App, request: &AblyRequest) -> Result<(), ErrorInfo> {
    let counted = app.limits.count(&RateLimitKey::Address(network(request.address)));
    counted.map_err(|refusal| codes::error(&refusal))
}

fn parse_name(name: &str) -> Result<KeyName, ErrorInfo> {
    KeyName::parse(name).ok_or_else(|| ErrorInfo::new(codes::BAD_REQUEST, "The URL does not name a key"))
}

/// Requires basic authentication with the key that the URL names.
async fn own_key(app: &App, name: &KeyName, request: &AblyRequest) -> Result<KeyId, ErrorInfo> {
    let caller = request.caller(app).await?;
    let id = signing_keys::id_of(name).ok_or_else(unknown_key)?;
    match &caller.caller.principal {
        Principal::Program { key, .. } if !caller.is_token && *key == id => Ok(id),
        _ => Err(ErrorInfo::new(codes::NOT_PERMITTED, "The request needs basic authentication with the key")),
    }
}
