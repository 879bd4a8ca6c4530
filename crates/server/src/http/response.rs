//! Successes: `{ok: true, data}` and its kin.
//!
//! They are encoded where they are made and keep no more than their form, so that they may borrow from what
//! the hub answered although the handler's result does not. (The form is in the place of an argument, where a
//! shorter lifetime stands for a longer one.)

use super::openapi::{Describe, OperationDoc};
use axum::Json;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, HeaderValue, StatusCode};
use parlor_wire::agentim::rest::{self, Success, True};
use serde::Serialize;
use std::marker::PhantomData;
use utoipa::openapi::schema::{Array, Object};
use utoipa::openapi::{RefOr, Schema};
use utoipa::{PartialSchema, ToSchema};

/// The form of `Success`, which refers to that of its data instead of repeating it.
fn success(data: impl Into<RefOr<Schema>>) -> Object {
    let form = Object::builder().property("ok", True::schema()).required("ok");
    form.property("data", data).required("data").build()
}

macro_rules! answer {
    ($(#[$doc:meta])* $name:ident, $status:ident, |$sheet:ident| $form:expr) => {
        $(#[$doc])*
        pub struct $name<T>(Response, PhantomData<fn(T)>);

        impl<T> $name<T> {
            fn encode(body: impl Serialize) -> Self {
                Self((StatusCode::$status, Json(body)).into_response(), PhantomData)
            }
        }

        impl<T> IntoResponse for $name<T> {
            fn into_response(self) -> Response {
                self.0
            }
        }

        impl<T: ToSchema> Describe for $name<T> {
            fn describe($sheet: &mut OperationDoc) {
                let form = $form;
                $sheet.answers(StatusCode::$status, form);
            }
        }
    };
}

answer!(/// 200 `{ok: true, data}`
    Data, OK, |sheet| success(sheet.form::<T>()));
answer!(/// 201 `{ok: true, data}`
    Created, CREATED, |sheet| success(sheet.form::<T>()));
answer!(/// 200 `{ok: true, data: […]}`
    List, OK, |sheet| success(Array::new(sheet.form::<T>())));
answer!(/// 200 and a body that is more than `{ok, data}`.
    BareJson, OK, |sheet| sheet.form::<T>());

answer!(/// 200 `[…]`
    Items, OK, |sheet| Array::new(sheet.form::<T>()));

pub fn items<T: Serialize>(items: impl IntoIterator<Item = T>) -> Items<T> {
    Items::encode(items.into_iter().collect::<Vec<T>>())
}

impl<T> Data<T> {
    /// Where this is one of several things that may be answered.
    pub fn one_of<U: From<T>>(self) -> Data<U> {
        Data(self.0, PhantomData)
    }
}

pub fn data<T: Serialize>(data: T) -> Data<T> {
    Data::encode(Success { ok: True, data })
}

pub fn created<T: Serialize>(data: T) -> Created<T> {
    Created::encode(Success { ok: True, data })
}

pub fn list<T: Serialize>(data: impl IntoIterator<Item = T>) -> List<T> {
    List::encode(Success { ok: True, data: data.into_iter().collect::<Vec<T>>() })
}

pub fn bare_json<T: Serialize>(body: T) -> BareJson<T> {
    BareJson::encode(body)
}

/// 200 `{ok: true}`
pub struct Done;

impl IntoResponse for Done {
    fn into_response(self) -> Response {
        Json(rest::Done { ok: True }).into_response()
    }
}

impl Describe for Done {
    fn describe(operation_doc: &mut OperationDoc) {
        let form = operation_doc.form::<rest::Done>();
        operation_doc.answers(StatusCode::OK, form);
    }
}

/// What comes along with a success in a header.
pub type Header = [(HeaderName, HeaderValue); 1];

impl<A: Describe> Describe for (Header, A) {
    fn describe(operation_doc: &mut OperationDoc) {
        A::describe(operation_doc);
    }
}

/// One of two successes.
pub enum Either<A, B> {
    This(A),
    That(B),
}

impl<A: IntoResponse, B: IntoResponse> IntoResponse for Either<A, B> {
    fn into_response(self) -> Response {
        match self {
            Self::This(answer) => answer.into_response(),
            Self::That(answer) => answer.into_response(),
        }
    }
}

impl<A: Describe, B: Describe> Describe for Either<A, B> {
    fn describe(operation_doc: &mut OperationDoc) {
        A::describe(operation_doc);
        B::describe(operation_doc);
    }
}
