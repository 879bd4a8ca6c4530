//! Error responses of the REST API: an HTTP status and `{ok: false, error: "sentence", code?, fields?}`.

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
    /// A JSON body that does not match the expected schema.
    Malformed {
        field: Box<str>,
        message: Box<str>,
    },
    Status(StatusCode, &'static str),
    /// The body was not read to its end, so the response closes the connection.
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

    /// Error for a path segment that is not a valid id.
    pub fn not_an_id() -> Self {
        Self::Status(StatusCode::BAD_REQUEST, "Invalid parameter: id")
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::NotJson => status_response(StatusCode::BAD_REQUEST, "Invalid JSON body"),
            Self::Malformed { field, message } => {
                let fields = Some(vec![rest::Field { field: &field, message: &message }]);
                encode(StatusCode::BAD_REQUEST, rest::Problem { fields, ..problem_body("Validation failed") })
            }
            Self::Status(status, sentence) => status_response(status, sentence),
            Self::Unread(status, sentence) => {
                let mut response = status_response(status, sentence);
                response.headers_mut().insert(CONNECTION, HeaderValue::from_static("close"));
                response
            }
            Self::Refused(refusal) => refusal_response(&refusal),
        }
    }
}

fn refusal_response(refusal: &Refusal) -> Response {
    let (status, sentence, code) = codes::status(refusal);
    let mut body = rest::Problem { code, ..problem_body(&sentence) };
    if let Refusal::Invalid(errors) = refusal {
        body.fields = Some(errors.iter().map(field).collect());
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

fn field(error: &FieldError) -> rest::Field<'_> {
    rest::Field { field: &error.field, message: &error.rule }
}

fn problem_body(sentence: &str) -> rest::Problem<'_> {
    rest::Problem { ok: rest::False, error: sentence, code: None, fields: None, position: None }
}

fn status_response(status: StatusCode, sentence: &str) -> Response {
    encode(status, problem_body(sentence))
}

fn encode(status: StatusCode, body: rest::Problem) -> Response {
    (status, Json(body)).into_response()
}
