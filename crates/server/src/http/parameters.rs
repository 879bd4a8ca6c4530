//! What a request says in its path and its query; refused in the same form as everything else.

use super::openapi::{Describe, OperationDoc};
use super::problem::Problem;
use axum::extract::{self, FromRequestParts};
use http::StatusCode;
use http::request::Parts;
use serde::de::DeserializeOwned;
use utoipa::IntoParams;
use utoipa::openapi::path::{Parameter, ParameterIn};
use utoipa::openapi::schema::{SchemaType, Type};
use utoipa::openapi::{RefOr, Schema};

/// The ids in a path.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = extract::Path::from_request_parts(parts, state).await;
        path.map(|extract::Path(found)| Self(found)).map_err(|_| Problem::not_an_id())
    }
}

/// What is named may be no id, or of nothing that the caller can see.
impl<T> Describe for Path<T> {
    fn describe(operation_doc: &mut OperationDoc) {
        operation_doc.refuses(&[StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND]);
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

impl<T: IntoParams> Describe for Parameters<T> {
    fn describe(operation_doc: &mut OperationDoc) {
        operation_doc.reads(T::into_params(|| Some(ParameterIn::Query)).into_iter().map(never_null));
        operation_doc.refuses(&[StatusCode::BAD_REQUEST]);
    }
}

/// A query leaves things out, it has no `null`.
fn never_null(mut parameter: Parameter) -> Parameter {
    if let Some(RefOr::T(Schema::Object(form))) = &mut parameter.schema
        && let SchemaType::Array(types) = &form.schema_type
        && let Some(only) = types.iter().find(|one| **one != Type::Null)
    {
        form.schema_type = SchemaType::Type(only.clone());
    }
    parameter
}
