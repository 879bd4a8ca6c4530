//! JSON bodies: bounded, looked over before anything is built from them, refused in one form.

use super::problem::Problem;
use axum::Json;
use axum::extract::{FromRequest, Request};
use axum::response::{IntoResponse, Response};
use http::StatusCode;
use http_body_util::{BodyExt, LengthLimitError, Limited};
use parlor_wire::json::{self, Bounds};
use serde::de::DeserializeOwned;
use serde_json::{Value, json};

const MOST_BYTES: usize = 1024 * 1024;
const BOUNDS: Bounds = Bounds { depth: 32, items: 1000 };

pub struct Body<T>(pub T);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for Body<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let text = read(request).await?;
        parse(&text).map(Self)
    }
}

/// A body that may be left out altogether.
pub struct MaybeBody<T>(pub Option<T>);

impl<S: Sync, T: DeserializeOwned> FromRequest<S> for MaybeBody<T> {
    type Rejection = Problem;

    async fn from_request(request: Request, _: &S) -> Result<Self, Problem> {
        let text = read(request).await?;
        if text.trim().is_empty() { Ok(Self(None)) } else { parse(&text).map(|body| Self(Some(body))) }
    }
}

async fn read(request: Request) -> Result<String, Problem> {
    let collected = Limited::new(request.into_body(), MOST_BYTES).collect().await.map_err(|error| {
        let too_large = error.downcast_ref::<LengthLimitError>().is_some();
        let status = if too_large { StatusCode::PAYLOAD_TOO_LARGE } else { StatusCode::BAD_REQUEST };
        Problem::Status(status, if too_large { "Body exceeds 1 MB" } else { "The body could not be read" })
    })?;
    String::from_utf8(collected.to_bytes().into()).map_err(|_| Problem::NotJson)
}

fn parse<T: DeserializeOwned>(text: &str) -> Result<T, Problem> {
    json::check(text, BOUNDS).map_err(|_| Problem::NotJson)?;
    serde_json::from_str(text).map_err(|error| {
        let words = error.to_string();
        let message = words.split(" at line ").next().unwrap_or_default().to_owned();
        let field = message.split('`').nth(1).unwrap_or_default().to_owned();
        Problem::Malformed { field, message }
    })
}

/// `{ok: true, data}`
pub fn data(data: Value) -> Response {
    Json(json!({ "ok": true, "data": data })).into_response()
}

pub fn created(data: Value) -> Response {
    (StatusCode::CREATED, Json(json!({ "ok": true, "data": data }))).into_response()
}

/// `{ok: true}`
pub fn done() -> Response {
    Json(json!({ "ok": true })).into_response()
}
