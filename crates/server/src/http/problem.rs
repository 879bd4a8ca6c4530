//! Every error under `/api`: `{ok: false, error: "sentence", code?, fields?}` and a fitting status.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use parlor_model::{Flaw, Refusal};
use parlor_wire::agentim::codes;
use serde_json::{Value, json};

#[derive(Debug)]
pub enum Problem {
    Refused(Refusal),
    NotJson,
    /// A body that is JSON, but not of the form wanted.
    Malformed {
        field: Box<str>,
        message: Box<str>,
    },
    Status(StatusCode, &'static str),
    /// The body was not read to its end: the connection cannot be used again, and whoever sent it is told so.
    Unread(StatusCode, &'static str),
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Problem {
    pub fn invalid(field: &'static str, rule: &'static str) -> Self {
        Self::Refused(Refusal::invalid(field, rule))
    }

    /// A path segment that cannot be an id.
    pub fn not_an_id() -> Self {
        Self::Status(StatusCode::BAD_REQUEST, "Invalid parameter: id")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::NotJson => answer(StatusCode::BAD_REQUEST, json!({ "error": "Invalid JSON body" })),
            Self::Malformed { field, message } => answer(
                StatusCode::BAD_REQUEST,
                json!({ "error": "Validation failed", "fields": [{ "field": field, "message": message }] }),
            ),
            Self::Status(status, sentence) => answer(status, json!({ "error": sentence })),
            Self::Unread(status, sentence) => {
                let mut response = answer(status, json!({ "error": sentence }));
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
            Self::Refused(refusal) => refused(&refusal),
        }
    }
}

fn refused(refusal: &Refusal) -> Response {
    let (status, sentence, code) = codes::status(refusal);
    let mut body = json!({ "error": sentence });
    if let Some(code) = code {
        body["code"] = json!(code);
    }
    if let Refusal::Invalid(flaws) = refusal {
        body["fields"] = flaws.iter().map(field).collect();
    }
    if let Refusal::Resync { now } = refusal {
        body["position"] = json!(now.to_string());
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = answer(status, body);
    if let Refusal::RateLimited { retry_after } = refusal {
        let seconds = retry_after.as_secs().saturating_add(1);
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    } else if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, 5.into());
    }
    response
}

fn field(flaw: &Flaw) -> Value {
    json!({ "field": flaw.field, "message": flaw.rule })
}

fn answer(status: StatusCode, body: Value) -> Response {
    let mut answer = json!({ "ok": false });
    if let (Value::Object(answer), Value::Object(body)) = (&mut answer, body) {
        answer.extend(body);
    }
    (status, Json(answer)).into_response()
}
