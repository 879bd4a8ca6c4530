//! What every HTTP request goes through, whatever it asks for.

pub mod answer;
pub mod body;
pub mod browser;
pub mod describe;
pub mod forwarded;
pub mod limits;
pub mod multipart;
pub mod parameters;
pub mod problem;
pub mod range;
pub mod trace;

use crate::App;
use crate::auth;
use axum::extract::FromRequestParts;
use describe::{Describe, Sheet};
use http::StatusCode;
use http::header::AUTHORIZATION;
use http::request::Parts;
use parlor_model::{Caller, Refusal};
use problem::Problem;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::Arc;
use utoipa::openapi::security::SecurityRequirement;

/// Where the connection comes from.
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

    /// Somebody who has not said who they are.
    pub fn outsider(self) -> Caller {
        Caller::ANONYMOUS.at(self.0.ip())
    }
}

/// Whoever the bearer token names.
pub struct Signed(pub Caller);

/// What came of looking the bearer token up, where that was done before.
#[derive(Clone)]
pub struct Known(pub Result<Caller, Refusal>);

impl FromRequestParts<Arc<App>> for Signed {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let token = bearer(&parts.headers).ok_or(Problem::Refused(Refusal::NotSignedIn))?;
        let caller = match parts.extensions.remove::<Known>() {
            Some(Known(caller)) => caller,
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

/// The caller may be nobody, or not allowed to, or nobody can say because the store cannot be asked.
impl Describe for Signed {
    fn describe(sheet: &mut Sheet) {
        sheet.secured([SecurityRequirement::new::<_, [&str; 0], _>(describe::BEARER, [])]);
        let refusals = [StatusCode::UNAUTHORIZED, StatusCode::FORBIDDEN, StatusCode::SERVICE_UNAVAILABLE];
        sheet.refuses(&refusals);
    }
}

pub fn bearer(headers: &http::HeaderMap) -> Option<&str> {
    headers.get(AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ").map(str::trim)
}
