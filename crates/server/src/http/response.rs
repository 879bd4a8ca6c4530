//! Success responses of the REST API: `{ok: true, data}` and its variants.
//!
//! A response is encoded when it is created and then carries only the type of its schema. So its body may
//! borrow from the hub's answer although the handler's result type is `'static`: `PhantomData<fn(T)>` is
//! contravariant in `T`.

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

/// Schema of `Success`, which refers to the schema of its data instead of repeating it.
fn success(data: impl Into<RefOr<Schema>>) -> Object {
    let schema = Object::builder().property("ok", True::schema()).required("ok");
    schema.property("data", data).required("data").build()
}

macro_rules! response {
    ($(#[$doc:meta])* $name:ident, $status:ident, |$operation_doc:ident| $schema:expr) => {
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
            fn describe($operation_doc: &mut OperationDoc) {
                let schema = $schema;
                $operation_doc.answers(StatusCode::$status, schema);
            }
        }
    };
}

response!(/// 200 `{ok: true, data}`
    Data, OK, |operation_doc| success(operation_doc.schema_of::<T>()));
response!(/// 201 `{ok: true, data}`
    Created, CREATED, |operation_doc| success(operation_doc.schema_of::<T>()));
response!(/// 200 `{ok: true, data: […]}`
    List, OK, |operation_doc| success(Array::new(operation_doc.schema_of::<T>())));
response!(/// 200 with a body that has its own top-level fields.
    BareJson, OK, |operation_doc| operation_doc.schema_of::<T>());

response!(/// 201 with a body that has its own top-level fields.
    BareCreated, CREATED, |operation_doc| operation_doc.schema_of::<T>());

response!(/// 200 `[…]`
    Items, OK, |operation_doc| Array::new(operation_doc.schema_of::<T>()));

pub fn items<T: Serialize>(items: impl IntoIterator<Item = T>) -> Items<T> {
    Items::encode(items.into_iter().collect::<Vec<T>>())
}

impl<T> Data<T> {
    /// Converts to a response type that has this body as one of its variants.
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

pub fn bare_created<T: Serialize>(body: T) -> BareCreated<T> {
    BareCreated::encode(body)
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
        let schema = operation_doc.schema_of::<rest::Done>();
        operation_doc.answers(StatusCode::OK, schema);
    }
}

/// A header that is added to a success response.
pub type Header = [(HeaderName, HeaderValue); 1];

impl<A: Describe> Describe for (Header, A) {
    fn describe(operation_doc: &mut OperationDoc) {
        A::describe(operation_doc);
    }
}

/// One of two success responses.
pub enum Either<A, B> {
    This(A),
    That(B),
}

impl<A: IntoResponse, B: IntoResponse> IntoResponse for Either<A, B> {
    fn into_response(self) -> Response {
        match self {
            Self::This(response) => response.into_response(),
            Self::That(response) => response.into_response(),
        }
    }
}

impl<A: Describe, B: Describe> Describe for Either<A, B> {
    fn describe(operation_doc: &mut OperationDoc) {
        A::describe(operation_doc);
        B::describe(operation_doc);
    }
}
