//! Every error under `/api`: `{ok: false, error: "sentence", code?, fields?}` and a fitting status.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use parlor_model::{FieldError, Refusal};
use parlor_wire::agentim::{codes, rest};

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
            Self::NotJson => answer(StatusCode::BAD_REQUEST, "Invalid JSON body"),
            Self::Malformed { field, message } => {
                let fields = Some(vec![rest::Field { field: &field, message: &message }]);
                encode(StatusCode::BAD_REQUEST, rest::Problem { fields, ..said("Validation failed") })
            }
            Self::Status(status, sentence) => answer(status, sentence),
            Self::Unread(status, sentence) => {
                let mut response = answer(status, sentence);
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
            Self::Refused(refusal) => refused(&refusal),
        }
    }
}

fn refused(refusal: &Refusal) -> Response {
    let (status, sentence, code) = codes::status(refusal);
    let mut body = rest::Problem { code, ..said(&sentence) };
    if let Refusal::Invalid(flaws) = refusal {
        body.fields = Some(flaws.iter().map(field).collect());
    }
    if let Refusal::Resync { now } = refusal {
        body.position = Some(now.to_string());
    }
    let status = StatusCode::from_u16(status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR);
    let mut response = encode(status, body);
    if let Refusal::RateLimited { retry_after } = refusal {
        let seconds = retry_after.as_secs().saturating_add(1);
        response.headers_mut().insert(RETRY_AFTER, seconds.into());
    } else if status == StatusCode::TOO_MANY_REQUESTS || status == StatusCode::SERVICE_UNAVAILABLE {
        response.headers_mut().insert(RETRY_AFTER, 5.into());
    }
    response
}

fn field(flaw: &FieldError) -> rest::Field<'_> {
    rest::Field { field: flaw.field, message: flaw.rule }
}

fn said(sentence: &str) -> rest::Problem<'_> {
    rest::Problem { ok: rest::False, error: sentence, code: None, fields: None, position: None }
}

fn answer(status: StatusCode, sentence: &str) -> Response {
    encode(status, said(sentence))
}

fn encode(status: StatusCode, body: rest::Problem) -> Response {
    (status, Json(body)).into_response()
}
