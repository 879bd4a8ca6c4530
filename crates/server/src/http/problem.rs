//! Error responses of the REST API: an HTTP status and `{ok: false, error: "sentence", code?, fields?}`.

use axum::Json;
use axum::response::{IntoResponse, Response};
use http::header::{CONNECTION, RETRY_AFTER};
use http::{HeaderValue, StatusCode};
use parlor_model::{FieldError, Refusal};
use parlor_wire::agentim::{codes, fields, rest};
use parlor_wire::{ably, events};
use std::borrow::Cow;

#[derive(Debug)]
pub enum Problem {
    Refused(Refusal),
    NotJson,
    /// Fields of the request that violate a rule, with their names in the request.
    Invalid(Vec<InvalidField>),
    Status(StatusCode, &'static str),
    /// The body was not read to its end, so the response closes the connection.
    Unread(StatusCode, &'static str),
}

#[derive(Debug)]
pub struct InvalidField {
    pub field: Cow<'static, str>,
    pub message: Cow<'static, str>,
}

impl From<Refusal> for Problem {
    fn from(refusal: Refusal) -> Self {
        Self::Refused(refusal)
    }
}

impl Problem {
    pub fn invalid(field: &'static str, rule: &'static str) -> Self {
        Self::Invalid(vec![InvalidField { field: field.into(), message: rule.into() }])
    }

    /// Error for a path segment that is not a valid id.
    pub fn not_an_id() -> Self {
        Self::Status(StatusCode::BAD_REQUEST, "Invalid parameter: id")
    }
}

impl InvalidField {
    fn new((field, rule): (&'static str, &str)) -> Self {
        Self { field: field.into(), message: rule.to_owned().into() }
    }
}

/// Error response of the chat-events API, which has its own names for the fields of a refusal.
#[derive(Debug)]
pub struct ChatEventsProblem(Problem);

impl From<Problem> for ChatEventsProblem {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<Refusal> for ChatEventsProblem {
    fn from(refusal: Refusal) -> Self {
        let Refusal::Invalid(errors) = refusal else { return Self(refusal.into()) };
        let fields = errors.iter().map(|error| InvalidField::new(events::fields::translate(error)));
        Self(Problem::Invalid(fields.collect()))
    }
}

/// Error response of the routes of Jaibber clients. These clients show only the field `error`, so its sentence contains
/// the violated rules.
#[derive(Debug)]
pub struct JaibberProblem(Problem);

impl From<Problem> for JaibberProblem {
    fn from(problem: Problem) -> Self {
        Self(problem)
    }
}

impl From<Refusal> for JaibberProblem {
    fn from(refusal: Refusal) -> Self {
        let Refusal::Invalid(errors) = refusal else { return Self(refusal.into()) };
        let fields =
            errors.iter().map(|error| InvalidField::new((ably::fields::name(error.field), &error.rule)));
        Self(Problem::Invalid(fields.collect()))
    }
}

impl IntoResponse for JaibberProblem {
    fn into_response(self) -> Response {
        let Problem::Invalid(fields) = self.0 else { return self.0.into_response() };
        let sentences = fields.iter().map(|field| format!("{} {}", field.field, field.message));
        let sentence = sentences.collect::<Vec<_>>().join("; ");
        let fields = fields.iter().map(|InvalidField { field, message }| rest::Field { field, message });
        let fields = Some(fields.collect());
        encode(StatusCode::BAD_REQUEST, rest::Problem { fields, ..problem_body(&sentence) })
    }
}

impl IntoResponse for ChatEventsProblem {
    fn into_response(self) -> Response {
        self.0.into_response()
    }
}

impl IntoResponse for Problem {
    fn into_response(self) -> Response {
        match self {
            Self::NotJson => status_response(StatusCode::BAD_REQUEST, "Invalid JSON body"),
            Self::Invalid(fields) => {
                let fields =
                    fields.iter().map(|InvalidField { field, message }| rest::Field { field, message });
                let fields = Some(fields.collect());
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
    let (field, message) = fields::translate(error);
    rest::Field { field, message }
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
