//! Derives the OpenAPI description of a handler from its types.
//!
//! Each argument type declares its parameters or body and its error statuses, and the result type declares
//! its schema. So a handler cannot accept or return anything that is not documented.

use super::problem::{ChatEventsProblem, JaibberProblem, Problem};
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use parlor_wire::agentim::rest;
use utoipa::ToSchema;
use utoipa::openapi::path::{Operation, Parameter};
use utoipa::openapi::request_body::RequestBody;
use utoipa::openapi::security::SecurityRequirement;
use utoipa::openapi::{Content, Ref, RefOr, Required, Response, Schema};

pub const BEARER: &str = "bearer";
pub const COOKIE: &str = "cookie";
pub const API_KEY: &str = "apiKey";

/// An argument or the result of a handler.
pub trait Describe {
    fn describe(operation_doc: &mut OperationDoc);
}

/// A handler whose arguments and result describe themselves.
pub trait Described<Arguments> {
    fn describe(operation_doc: &mut OperationDoc);
}

/// OpenAPI description of one operation, and the schemas that it refers to.
#[derive(Default)]
pub struct OperationDoc {
    pub operation: Operation,
    pub schemas: Vec<(String, RefOr<Schema>)>,
}

impl OperationDoc {
    /// Adds the schema of a type to the document and returns a reference to it.
    pub fn schema_of<T: ToSchema>(&mut self) -> RefOr<Schema> {
        T::schemas(&mut self.schemas);
        self.schemas.push((T::name().into(), T::schema()));
        Ref::from_schema_name(T::name()).into()
    }

    pub fn answers(&mut self, status: StatusCode, schema: impl Into<RefOr<Schema>>) {
        let reason = status.canonical_reason().unwrap_or_default();
        let mut response = Response::new(reason);
        response.content.insert("application/json".into(), Content::new(Some(schema)).into());
        self.operation.responses.responses.insert(status.as_str().into(), response.into());
    }

    /// Adds error responses with these statuses, which all share one schema.
    pub fn refuses(&mut self, statuses: &[StatusCode]) {
        for status in statuses {
            let schema = self.schema_of::<rest::Problem>();
            self.answers(*status, schema);
        }
    }

    pub fn takes<T: ToSchema>(&mut self, required: bool) {
        let schema = self.schema_of::<T>();
        let mut body = RequestBody::new();
        body.content.insert("application/json".into(), Content::new(Some(schema)).into());
        body.required = Some(if required { Required::True } else { Required::False });
        self.operation.request_body = Some(body.into());
    }

    pub fn reads(&mut self, parameters: impl IntoIterator<Item = Parameter>) {
        let all = self.operation.parameters.get_or_insert_default();
        all.extend(parameters.into_iter().map(RefOr::from));
    }

    /// Sets the accepted authentication schemes; only the first call has an effect.
    pub fn secured(&mut self, schemes: impl IntoIterator<Item = SecurityRequirement>) {
        self.operation.security.get_or_insert_with(|| schemes.into_iter().collect());
    }
}

/// Implements `Describe` for arguments that add nothing to the document.
macro_rules! undocumented {
    ($($type:ty),+) => { $(impl Describe for $type { fn describe(_: &mut OperationDoc) {} })+ };
}

undocumented!(HeaderMap, super::Peer);

impl<S> Describe for State<S> {
    fn describe(_: &mut OperationDoc) {}
}

impl<T: Describe, E: ErrorBody> Describe for Result<T, E> {
    fn describe(operation_doc: &mut OperationDoc) {
        T::describe(operation_doc);
    }
}

/// An error response whose body has the schema of [`rest::Problem`].
pub trait ErrorBody {}

impl ErrorBody for Problem {}
impl ErrorBody for ChatEventsProblem {}
impl ErrorBody for JaibberProblem {}

macro_rules! handlers {
    ($($argument:ident),*) => {
        impl<F, Outcome, $($argument),*> Described<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Outcome,
            Outcome: Future,
            Outcome::Output: Describe,
            $($argument: Describe),*
        {
            fn describe(operation_doc: &mut OperationDoc) {
                $($argument::describe(operation_doc);)*
                Outcome::Output::describe(operation_doc);
            }
        }
    };
}

handlers!();
handlers!(A);
handlers!(A, B);
handlers!(A, B, C);
handlers!(A, B, C, D);
handlers!(A, B, C, D, E);
handlers!(A, B, C, D, E, G);
