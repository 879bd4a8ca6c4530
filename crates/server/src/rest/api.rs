//! Mounts REST handlers and documents them in OpenAPI in one call, so that no route lacks documentation.

use crate::App;
use crate::http::openapi::{API_KEY, BEARER, COOKIE, Described, OperationDoc};
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

/// Path prefix of all routes in the OpenAPI document.
const BASE: &str = "/api";
const DOCUMENT: &str = "/openapi.json";
/// Pattern of the ids in paths. An agent id has up to eight segments, every other id has one.
const ID_PATTERN: &str = "^[A-Za-z0-9_-]{1,64}(/[A-Za-z0-9_-]{1,64}){0,7}$";

#[derive(Default)]
pub struct Api {
    router: Router<Arc<App>>,
    mounted: Vec<Operation>,
}

/// Entry of a mounted handler, from which the OpenAPI document is generated.
struct Operation {
    method: HttpMethod,
    path: &'static str,
    summary: &'static str,
    refusals: Refusals,
    describe: fn(&mut OperationDoc),
}

/// Error statuses of a handler that its argument types do not declare.
type Refusals = &'static [StatusCode];

/// Future returned by every handler.
type HandlerFuture = Pin<Box<dyn Future<Output = Response> + Send>>;

/// Type-erased handler, so that axum's wrapper code is compiled once and not for each handler.
#[derive(Clone)]
struct Mounted(Arc<dyn Fn(Request, Arc<App>) -> HandlerFuture + Send + Sync>);

impl Handler<(), Arc<App>> for Mounted {
    type Future = HandlerFuture;

    fn call(self, request: Request, app: Arc<App>) -> HandlerFuture {
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
            handler: impl Handler<T, Arc<App>, Future = HandlerFuture> + Described<A>,
        ) -> Self {
            self.mount(MethodFilter::$filter, HttpMethod::$method, path, summary, refusals, handler)
        }
    )+ };
}

impl Api {
    methods!(get GET Get, post POST Post, put PUT Put, patch PATCH Patch, delete DELETE Delete);

    fn mount<T: 'static, A, H: Handler<T, Arc<App>, Future = HandlerFuture> + Described<A>>(
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

    /// Returns the routes plus the one that serves the OpenAPI document. The document is generated on its
    /// first request: generating it takes longer than the rest of the startup, and few clients request it.
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

/// Generates the OpenAPI document of the mounted operations and of the document's own route.
fn document(mounted: &[Operation]) -> String {
    let mut builder = DocumentBuilder::default();
    for operation in mounted {
        let mut operation_doc = OperationDoc::default();
        operation_doc.reads(operation.path.split('/').filter_map(parameter_name).map(id_parameter));
        (operation.describe)(&mut operation_doc);
        operation_doc.refuses(operation.refusals);
        builder.add(operation.method.clone(), operation.path, operation.summary, operation_doc);
    }
    let mut operation_doc = OperationDoc::default();
    operation_doc.answers(StatusCode::OK, Object::new());
    builder.add(HttpMethod::Get, DOCUMENT, "Get this OpenAPI document", operation_doc);
    let mut components = Components::new();
    components.schemas = builder.schemas;
    let bearer = Http::builder().scheme(HttpAuthScheme::Bearer);
    let bearer = bearer.description(Some("Access token or API key")).build();
    let key = ApiKeyValue::with_description("X-API-Key", "API key");
    let cookie = ApiKeyValue::with_description("parlor_rt", "Refresh token, set when the user signs in");
    components.add_security_scheme(BEARER, SecurityScheme::Http(bearer));
    components.add_security_scheme(API_KEY, SecurityScheme::ApiKey(ApiKey::Header(key)));
    components.add_security_scheme(COOKIE, SecurityScheme::ApiKey(ApiKey::Cookie(cookie)));
    let mut document = OpenApi::new(Info::new("Parlor", env!("CARGO_PKG_VERSION")), builder.paths);
    document.components = Some(components);
    document.to_json().expect("an OpenAPI document contains only strings, lists and maps")
}

#[derive(Default)]
struct DocumentBuilder {
    paths: Paths,
    schemas: BTreeMap<String, RefOr<Schema>>,
}

impl DocumentBuilder {
    fn add(&mut self, method: HttpMethod, path: &str, summary: &str, mut operation_doc: OperationDoc) {
        operation_doc.refuses(&[StatusCode::TOO_MANY_REQUESTS]);
        // Explicit for every operation: without it, OpenAPI would apply a document-wide default.
        operation_doc.secured([]);
        let OperationDoc { mut operation, schemas } = operation_doc;
        operation.summary = Some(summary.into());
        operation.tags = path.split('/').nth(1).map(|tag| vec![tag.into()]);
        operation.operation_id = Some(operation_id(&method, path));
        self.paths.add_path_operation(format!("{BASE}{path}"), vec![method], operation);
        for (name, schema) in schemas {
            let existing = self.schemas.entry(name).or_insert_with(|| schema.clone());
            assert!(*existing == schema, "two different schemas share a name; one of them is used in {path}");
        }
    }
}

/// Returns the name of a path parameter: `id` for the segment `{id}`.
fn parameter_name(segment: &str) -> Option<&str> {
    segment.strip_prefix('{')?.strip_suffix('}')
}

fn id_parameter(name: &str) -> Parameter {
    let schema = Object::builder().schema_type(Type::String).pattern(Some(ID_PATTERN)).build();
    let mut parameter = Parameter::new(name);
    parameter.parameter_in = ParameterIn::Path;
    parameter.schema = Some(schema.into());
    parameter
}

/// Derives the operation id from method and path, such as `getRoomsIdMembers`. It is unique because each pair
/// is.
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
