//! JSON request bodies: limits on size, time, depth and item count are checked before deserialization.

use super::openapi::{Describe, OperationDoc};
use super::problem::{InvalidField, Problem};
use axum::extract::{FromRequest, Request};
use http::StatusCode;
use http::header::{CONTENT_ENCODING, CONTENT_TYPE};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use parlor_wire::json::{self, JsonLimits};
use serde::de::DeserializeOwned;
use std::marker::PhantomData;
use std::time::Duration;
use utoipa::ToSchema;

/// Maximum size of a body.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Timeout for the complete body.
const BODY_TIMEOUT: Duration = Duration::from_secs(10);
const JSON_LIMITS: JsonLimits = JsonLimits { depth: 32, items: 1000 };

/// Error statuses of every route that reads a JSON body.
const REFUSALS: [StatusCode; 4] = [
    StatusCode::BAD_REQUEST,
    StatusCode::REQUEST_TIMEOUT,
    StatusCode::PAYLOAD_TOO_LARGE,
    StatusCode::UNSUPPORTED_MEDIA_TYPE,
];

pub struct Body<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let text = read(request).await?;
        parse(&text).map(Self)
    }
}

impl<T: ToSchema> Describe for Body<T> {
    fn describe(operation_doc: &mut OperationDoc) {
        operation_doc.takes::<T>(true);
        operation_doc.refuses(&REFUSALS);
    }
}

/// An optional body: `None` if it is empty.
pub struct MaybeBody<T>(pub Option<T>);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for MaybeBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let text = read(request).await?;
        if text.trim().is_empty() { Ok(Self(None)) } else { parse(&text).map(|body| Self(Some(body))) }
    }
}

impl<T: ToSchema> Describe for MaybeBody<T> {
    fn describe(operation_doc: &mut OperationDoc) {
        operation_doc.takes::<T>(false);
        operation_doc.refuses(&REFUSALS);
    }
}

/// Media type of HTML forms.
const FORM: &str = "application/x-www-form-urlencoded";

/// An ignored body: empty, a form, or JSON of this type.
pub struct IgnoredBody<T>(PhantomData<T>);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for IgnoredBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let media = request.headers().get(CONTENT_TYPE).and_then(|media| media.to_str().ok());
        let is_form = media.is_some_and(|media| media.split(';').next().unwrap_or_default().trim() == FORM);
        let text = read(request).await?;
        if !is_form && !text.trim().is_empty() {
            parse::<T>(&text)?;
        }
        Ok(Self(PhantomData))
    }
}

impl<T: ToSchema> Describe for IgnoredBody<T> {
    fn describe(operation_doc: &mut OperationDoc) {
        operation_doc.takes::<T>(false);
        operation_doc.refuses(&REFUSALS);
    }
}

async fn read(request: Request) -> Result<String, Problem> {
    // Bodies are never decompressed, so a small body cannot expand in memory.
    if request.headers().get(CONTENT_ENCODING).is_some_and(|encoding| encoding != "identity") {
        return Err(Problem::Unread(
            StatusCode::UNSUPPORTED_MEDIA_TYPE,
            "Send the body without Content-Encoding",
        ));
    }
    let body = Limited::new(request.into_body(), MAX_BODY_BYTES).collect();
    let body = tokio::time::timeout(BODY_TIMEOUT, body).await;
    let body =
        body.map_err(|_| Problem::Unread(StatusCode::REQUEST_TIMEOUT, "The body was not received in time"))?;
    let collected = body.map_err(|error| {
        let too_large = error.downcast_ref::<LengthLimitError>().is_some();
        let status = if too_large { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
        Problem::Unread(status, if too_large { "Body exceeds 1 MB" } else { "The body could not be read" })
    })?;
    String::from_utf8(collected.to_bytes().into()).map_err(|_| Problem::NotJson)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    json::check(text, JSON_LIMITS).map_err(|_| Problem::NotJson)?;
    serde_json::from_str(text).map_err(|error| {
        let json::SchemaMismatch { field, rule } = json::schema_mismatch(&error);
        let field = field.map_or("body".into(), String::from);
        Problem::Invalid(vec![InvalidField { field: field.into(), message: String::from(rule).into() }])
    })
}
