//! What a request says in its path and its query; refused in the same form as everything else.

use super::problem::Problem;
use axum::extract::{self, FromRequestParts};
use http::StatusCode;
use http::request::Parts;
use serde::de::DeserializeOwned;

/// The ids in a path.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = extract::Path::from_request_parts(parts, state).await;
        path.map(|extract::Path(found)| Self(found)).map_err(|_| Problem::not_an_id())
    }
}

/// `?name=value&…`
pub struct Parameters<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = extract::Query::try_from_uri(&parts.uri);
        let wrong = Problem::Status(StatusCode::BAD_REQUEST, "The query is not of the form wanted");
        query.map(|extract::Query(found)| Self(found)).map_err(|_| wrong)
    }
}
