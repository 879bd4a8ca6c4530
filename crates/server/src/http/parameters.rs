//! Extractors for path and query parameters, with errors in the same format as everywhere in the API.

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

/// Ids in the path of a request.
pub struct Path<T>(pub T);

impl<S: Send + Sync, T: DeserializeOwned + Send> FromRequestParts<S> for Path<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, state: &S) -> Result<Self, Problem> {
        let path = extract::Path::from_request_parts(parts, state).await;
        path.map(|extract::Path(found)| Self(found)).map_err(|_| Problem::not_an_id())
    }
}

/// Declares 400 (not a valid id) and 404 (unknown, or not visible to the caller).
impl<T> Describe for Path<T> {
    fn describe(operation_doc: &mut OperationDoc) {
        operation_doc.refuses(&[StatusCode::BAD_REQUEST, StatusCode::NOT_FOUND]);
    }
}

/// Query parameters, `?name=value&…`.
pub struct Parameters<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequestParts<S> for Parameters<T> {
    type Rejection = Problem;

    async fn from_request_parts(parts: &mut Parts, _: &S) -> Result<Self, Problem> {
        let query = extract::Query::try_from_uri(&parts.uri);
        let invalid = Problem::Status(StatusCode::BAD_REQUEST, "The query parameters are invalid");
        query.map(|extract::Query(found)| Self(found)).map_err(|_| invalid)
    }
}

impl<T: IntoParams> Describe for Parameters<T> {
    fn describe(operation_doc: &mut OperationDoc) {
        operation_doc.reads(T::into_params(|| Some(ParameterIn::Query)).into_iter().map(never_null));
        operation_doc.refuses(&[StatusCode::BAD_REQUEST]);
    }
}

/// Removes `null` from the type of an optional query parameter: a query omits a value instead.
fn never_null(mut parameter: Parameter) -> Parameter {
    if let Some(RefOr::T(Schema::Object(schema))) = &mut parameter.schema
        && let SchemaType::Array(types) = &schema.schema_type
        && let Some(only) = types.iter().find(|candidate| **candidate != Type::Null)
    {
        schema.schema_type = SchemaType::Type(only.clone());
    }
    parameter
}
