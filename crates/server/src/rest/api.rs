//! Mounts handlers and writes the OpenAPI document of what is mounted, in one step: neither can be without
//! the other.

use crate::App;
use crate::http::openapi::{BEARER, COOKIE, Described, OperationDoc};
use axum::Router;
use axum::extract::Request;
use axum::handler::Handler;
use axum::response::Response;
use axum::routing::{MethodFilter, get, on};
use bytes::Bytes;
use http::StatusCode;
use http::header::CONTENT_TYPE;
use std::collections::BTreeMap;
use std::pin::Pin;
use std::sync::{Arc, LazyLock};
use utoipa::openapi::path::{HttpMethod, Parameter, ParameterIn, Paths};
use utoipa::openapi::schema::{Components, Object, Schema, Type};
use utoipa::openapi::security::{ApiKey, ApiKeyValue, Http, HttpAuthScheme, SecurityScheme};
use utoipa::openapi::{Info, OpenApi, RefOr};

/// Where the routes hang.
const BASE: &str = "/api";
const DOCUMENT: &str = "/openapi.json";
/// An agent has up to eight parts, everything else one.
const ID: &str = "^[A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64}){0,7}$";

#[derive(Default)]
pub struct Api {
    router: Router<Arc<App>>,
    mounted: Vec<Operation>,
}

/// A mounted handler, as far as the document is concerned.
struct Operation {
    method: HttpMethod,
    path: &'static str,
    summary: &'static str,
    refusals: Refusals,
    describe: fn(&mut OperationDoc),
}

/// The statuses, besides those of its arguments, with which a handler refuses.
type Refusals = &'static [StatusCode];

/// Return type of a handler function.
type Answering = Pin<Box<dyn Future<Output = Response> + Send>>;

/// A handler without its type: axum compiles what it puts around a handler once, and not for each of them.
#[derive(Clone)]
struct Mounted(Arc<dyn Fn(Request, Arc<App>) -> Answering + Send + Sync>);

impl Handler<(), Arc<App>> for Mounted {
    type Future = Answering;

    fn call(self, request: Request, app: Arc<App>) -> Answering {
        (self.0)(request, app)
    }
}

macro_rules! methods {
    ($($name:ident $filter:ident $method:ident),+) => { $(
        pub fn $name<T: 'static, A>(
            self,
            path: &'static str,
            summary: &'static str,
            refusals: Refusals,
            handler: impl Handler<T, Arc<App>, Future = Answering> + Described<A>,
        ) -> Self {
            self.mount(MethodFilter::$filter, HttpMethod::$method, path, summary, refusals, handler)
        }
    )+ };
}

impl Api {
    methods!(get GET Get, post POST Post, put PUT Put, patch PATCH Patch, delete DELETE Delete);

    fn mount<T: 'static, A, H: Handler<T, Arc<App>, Future = Answering> + Described<A>>(
        self,
        filter: MethodFilter,
        method: HttpMethod,
        path: &'static str,
        summary: &'static str,
        refusals: Refusals,
        handler: H,
    ) -> Self {
        let mounted = Mounted(Arc::new(move |request, app| handler.clone().call(request, app)));
        self.mount_any(filter, Operation { method, path, summary, refusals, describe: H::describe }, mounted)
    }

    fn mount_any(mut self, filter: MethodFilter, operation: Operation, handler: Mounted) -> Self {
        self.router = self.router.route(operation.path, on(filter, handler));
        self.mounted.push(operation);
        self
    }

    /// The routes, and one more that shows the document. The first request for the document writes it: that takes longer
    /// than the rest of a start, and few ask for it.
    pub fn finish(self) -> Router<Arc<App>> {
        let mounted = self.mounted;
        let text = LazyLock::new(move || Bytes::from(document(&mounted)));
        let text: Arc<LazyLock<Bytes, _>> = Arc::new(text);
        let show = move || {
            let answer = ([(CONTENT_TYPE, "application/json")], Bytes::clone(&text));
            std::future::ready(answer)
        };
        self.router.route(DOCUMENT, get(show))
    }
}

/// The OpenAPI document of these operations and of its own.
fn document(mounted: &[Operation]) -> String {
    let mut written = Written::default();
    for operation in mounted {
        let mut operation_doc = OperationDoc::default();
        operation_doc.reads(operation.path.split('/').filter_map(named).map(identifier));
        (operation.describe)(&mut operation_doc);
        operation_doc.refuses(operation.refusals);
        written.note(operation.method.clone(), operation.path, operation.summary, operation_doc);
    }
    let mut operation_doc = OperationDoc::default();
    operation_doc.answers(StatusCode::OK, Object::new());
    written.note(HttpMethod::Get, DOCUMENT, "This document", operation_doc);
    let mut components = Components::new();
    components.schemas = written.forms;
    let bearer = Http::builder().scheme(HttpAuthScheme::Bearer);
    let bearer = bearer.description(Some("An access token, or an API key")).build();
    let cookie = ApiKeyValue::with_description("parlor_rt", "The refresh token, set by a sign-in");
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    components.add_security_scheme(COOKIE, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    let mut document = OpenApi::new(Info::new("Parlor", env!("CARGO_PKG_VERSION")), written.paths);
    document.components = Some(components);
    document.to_json().expect("the document is made of texts, lists and maps")
}

#[derive(Default)]
struct Written {
    paths: Paths,
    forms: BTreeMap<String, RefOr<Schema>>,
}

impl Written {
    fn note(&mut self, method: HttpMethod, path: &str, summary: &str, mut operation_doc: OperationDoc) {
        operation_doc.refuses(&[StatusCode::TOO_MANY_REQUESTS]);
        // Said of all, so that nobody has to know what holds when nothing is said.
        operation_doc.secured([]);
        let OperationDoc { mut operation, schemas: forms } = operation_doc;
        operation.summary = Some(summary.into());
        operation.tags = path.split('/').nth(1).map(|tag| vec![tag.into()]);
        operation.operation_id = Some(operation_id(&method, path));
        self.paths.add_path_operation(format!("{BASE}{path}"), vec![method], operation);
        for (name, form) in forms {
            let known = self.forms.entry(name).or_insert_with(|| form.clone());
            assert!(*known == form, "two forms have one name, of which one is in {path}");
        }
    }
}

/// `{id}` in a path is a parameter of this name.
fn named(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

fn identifier(name: &str) -> Parameter {
    let form = Object::builder().schema_type(Type::String).pattern(Some(ID)).build();
    let mut parameter = Parameter::new(name);
    parameter.parameter_in = ParameterIn::Path;
    parameter.schema = Some(form.into());
    parameter
}

/// `getRoomsIdMembers`: method and path are unique together, so this is too.
fn operation_id(method: &HttpMethod, path: &str) -> String {
    let method = match method {
        HttpMethod::Get => "get",
        HttpMethod::Post => "post",
        HttpMethod::Put => "put",
        HttpMethod::Patch => "patch",
        _ => "delete",
    };
    let words = path.split(|c: char| !c.is_ascii_alphanumeric());
    words.fold(method.to_owned(), |mut id, word| {
        let mut letters = word.chars();
        id.extend(letters.next().map(|first| first.to_ascii_uppercase()));
        id + letters.as_str()
    })
}
