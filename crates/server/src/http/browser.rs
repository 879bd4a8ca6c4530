//! Extractors for browser requests: the refresh cookie, and the check of the request's origin.

use super::openapi::{self, Describe, OperationDoc};
use super::problem::Problem;
use crate::App;
use crate::auth::origin;
use axum::extract::FromRequestParts;
use http::header::{COOKIE, ORIGIN};
use http::request::Parts;
use http::{HeaderMap, StatusCode};
use std::sync::Arc;
use utoipa::openapi::security::SecurityRequirement;

pub const COOKIE_NAME: &str = "parlor_rt";

/// Rejects requests from pages of another origin, so that such a page cannot sign a visitor in to an account
/// of its choice (login CSRF).
pub struct NoForeignPage;

impl FromRequestParts<Arc<App>> for NoForeignPage {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        if parts.headers.contains_key(ORIGIN) && !origin::is_allowed(&parts.headers, &app.config) {
            return Err(Problem::Status(StatusCode::FORBIDDEN, "This origin may not sign in"));
        }
        Ok(Self)
    }
}

impl Describe for NoForeignPage {
    fn describe(operation_doc: &mut OperationDoc) {
        operation_doc.refuses(&[StatusCode::FORBIDDEN]);
    }
}

/// The refresh token from the cookie, if present. A cookie sent by a page of another origin is rejected.
pub struct RefreshCookie(pub Option<String>);

impl FromRequestParts<Arc<App>> for RefreshCookie {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, app: &Arc<App>) -> Result<Self, Problem> {
        let cookie = cookie(&parts.headers);
        if cookie.is_some() && !origin::is_allowed(&parts.headers, &app.config) {
            return Err(Problem::Status(StatusCode::FORBIDDEN, "This origin may not use the cookie"));
        }
        Ok(Self(cookie))
    }
}

/// Documents the cookie as optional authentication, unless the handler declared another scheme before.
impl Describe for RefreshCookie {
    fn describe(operation_doc: &mut OperationDoc) {
        let cookie = SecurityRequirement::new::<_, [&str; 0], _>(openapi::COOKIE, []);
        operation_doc.secured([cookie, SecurityRequirement::default()]);
        operation_doc.refuses(&[StatusCode::FORBIDDEN]);
    }
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let pairs = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(name, _)| *name == COOKIE_NAME)
        .map(|(_, value)| value.to_owned())
        .filter(|value| !value.is_empty())
}
