//! Shared HTTP layer: extractors, responses, errors, rate limits and OpenAPI descriptions. No route lives
//! here.

pub mod body;
pub mod browser;
pub mod forwarded;
pub mod multipart;
pub mod openapi;
pub mod parameters;
pub mod problem;
pub mod range;
pub mod rate_limits;
pub mod response;
pub mod trace;

use crate::App;
use crate::auth;
use axum::extract::FromRequestParts;
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;
use openapi::{Describe, OperationDoc};
use parlor_model::{Caller, Refusal};
use problem::Problem;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use utoipa::openapi::security::SecurityRequirement;

/// Client address of a request, behind trusted proxies.
#[derive(Clone, Copy)]
pub struct Peer(pub SocketAddr);

impl Default for Peer {
    fn default() -> Self {
        Self(SocketAddr::from((Ipv4Addr::UNSPECIFIED, 0)))
    }
}

impl<S: Sync> FromRequestParts<S> for Peer {
    type Rejection = std::convert::Infallible;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Self::Rejection> {
        Ok(Self::of(parts))
    }
}

impl Peer {
    fn of(parts: &Parts) -> Self {
        parts.extensions.get::<Peer>().copied().unwrap_or_default()
    }

    /// Unauthenticated caller at this address.
    pub fn anonymous(self) -> Caller {
        Caller::ANONYMOUS.at(self.0.ip())
    }
}

/// Caller authenticated by the bearer token or an API key; 401 without a valid one.
pub struct Authenticated(pub Caller);

/// Result of resolving the bearer token, stored by the rate limiter so that the handler need not resolve it
/// again.
#[derive(Clone)]
pub struct ResolvedCaller(pub Result<Caller, Refusal>);

impl FromRequestParts<Arc<App>> for Authenticated {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let token = credential(&parts.headers).ok_or(Problem::Refused(Refusal::NotSignedIn))?;
        let caller = match parts.extensions.remove::<ResolvedCaller>() {
            Some(ResolvedCaller(caller)) => caller,
            None => auth::caller(app, token).await,
        };
        match caller {
            Ok(caller) => Ok(Self(caller.at(Peer::of(parts).0.ip()))),
            Err(Refusal::NotSignedIn) => {
                Err(Problem::Status(StatusCode::UNAUTHORIZED, "Invalid or expired token"))
            }
            Err(refusal) => Err(refusal.into()),
        }
    }
}

/// Declares 401 (no valid token), 403 (not allowed) and 503 (the store cannot be read).
impl Describe for Authenticated {
    fn describe(operation_doc: &mut OperationDoc) {
        let scheme = |name: &str| SecurityRequirement::new::<_, [&str; 0], _>(name, []);
        operation_doc.secured([scheme(openapi::BEARER), scheme(openapi::API_KEY)]);
        let refusals = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::SERVICE_UNAVAILABLE];
        operation_doc.refuses(&refusals);
    }
}

pub fn bearer(headers: &http::HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::trim)
}

/// Header in which some clients send their API key instead of `Authorization`.
const API_KEY: &str = "x-api-key";

/// The bearer token of a request, or the API key in its own header.
pub fn credential(headers: &http::HeaderMap) -> Option<&str> {
    let key = || headers.get(API_KEY)?.to_str().ok().map(str::trim);
    bearer(headers).or_else(|| key().filter(|key| key.starts_with(auth::secrets::KEY_PREFIX)))
}
