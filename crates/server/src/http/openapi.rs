//! What handlers say about themselves, for the OpenAPI document.
//!
//! The document follows from the types of a handler: an argument says what it reads and how it refuses, the
//! result says its form. So a handler cannot take or answer anything else than what is documented.

use super::problem::Problem;
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

/// An argument or the result of a handler.
pub trait Describe {
    fn describe(operation_doc: &mut OperationDoc);
}

/// A handler whose arguments and result describe themselves.
pub trait Described<Arguments> {
    fn describe(operation_doc: &mut OperationDoc);
}

/// What is known of one operation, and the forms it refers to.
#[derive(Default)]
pub struct OperationDoc {
    pub operation: Operation,
    pub schemas: Vec<(String, RefOr<Schema>)>,
}

impl OperationDoc {
    /// A reference to the form of a type, which goes into the document once.
    pub fn form<T: ToSchema>(&mut self) -> RefOr<Schema> {
        T::schemas(&mut self.schemas);
        self.schemas.push((T::name().into(), T::schema()));
        Ref::from_schema_name(T::name()).into()
    }

    pub fn answers(&mut self, status: StatusCode, form: impl Into<RefOr<Schema>>) {
        let reason = status.canonical_reason().unwrap_or_default();
        let mut response = Response::new(reason);
        response.content.insert("application/json".into(), Content::new(Some(form)).into());
        self.operation.responses.responses.insert(status.as_str().into(), response.into());
    }

    /// Adds statuses with the one form of every error.
    pub fn refuses(&mut self, statuses: &[StatusCode]) {
        for status in statuses {
            let form = self.form::<rest::Problem>();
            self.answers(*status, form);
        }
    }

    pub fn takes<T: ToSchema>(&mut self, required: bool) {
        let form = self.form::<T>();
        let mut body = RequestBody::new();
        body.content.insert("application/json".into(), Content::new(Some(form)).into());
        body.required = Some(if required { Required::True } else { Required::False });
        self.operation.request_body = Some(body.into());
    }

    pub fn reads(&mut self, parameters: impl IntoIterator<Item = Parameter>) {
        let all = self.operation.parameters.get_or_insert_default();
        all.extend(parameters.into_iter().map(RefOr::from));
    }

    /// Any one of these ways to say who is calling; the first to speak decides.
    pub fn secured(&mut self, ways: impl IntoIterator<Item = SecurityRequirement>) {
        self.operation.security.get_or_insert_with(|| ways.into_iter().collect());
    }
}

/// Says nothing: it neither refuses nor reads anything of the caller's own.
macro_rules! silent {
    ($($type:ty),+) => { $(impl Describe for $type { fn describe(_: &mut OperationDoc) {} })+ };
}

silent!(HeaderMap, super::Peer);

impl<S> Describe for State<S> {
    fn describe(_: &mut OperationDoc) {}
}

impl<T: Describe> Describe for Result<T, Problem> {
    fn describe(operation_doc: &mut OperationDoc) {
        T::describe(operation_doc);
    }
}

macro_rules! handlers {
    ($($argument:ident),*) => {
        impl<F, Outcome, $($argument),*> Described<($($argument,)*)> for F
        where
            F: Fn($($argument),*) -> Outcome,
            Outcome: Future,
            Outcome::Output: Describe,
            $($argument: Describe),*
        {
            fn describe(sheet: &mut OperationDoc) {
                $($argument::describe(sheet);)*
                Outcome::Output::describe(sheet);
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
