//! The small built-in page: one file, no dependencies, and a policy that runs nothing but its own script.

use crate::App;
use crate::http::problem::Problem;
use axum::extract::State;
use axum::response::{Html, IntoResponse, Response};
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::header::CONTENT_SECURITY_POLICY;
use http::{HeaderValue, StatusCode};
use sha2::{Digest, Sha256};
use std::sync::Arc;

const PAGE: &str = include_str!("../assets/page.html");

pub struct Page {
    policy: HeaderValue,
}

impl Page {
    pub fn new() -> Self {
        let (script, style) = (hash("script"), hash("style"));
        let policy = format!(
            "default-src 'none'; script-src {script}; style-src {style}; connect-src 'self'; img-src data:; \
             base-uri 'none'; form-action 'none'; frame-ancestors 'none'; \
             require-trusted-types-for 'script'; trusted-types 'none'"
        );
        Self { policy: HeaderValue::from_str(&policy).expect("a policy is plain text") }
    }

    fn render(&self) -> Response {
        ([(CONTENT_SECURITY_POLICY, self.policy.clone())], Html(PAGE)).into_response()
    }
}

/// The hash of the page's one inline element of this kind, as the policy names it.
fn hash(tag: &str) -> String {
    let (open, close) = (format!("<{tag}>"), format!("</{tag}>"));
    let content =
        PAGE.split_once(&open).and_then(|(_, rest)| rest.split_once(&close)).map(|(content, _)| content);
    let content = content.expect("the page has one script and one style");
    format!("'sha256-{}'", BASE64_STANDARD.encode(Sha256::digest(content.as_bytes())))
}

pub async fn home(State(app): State<Arc<App>>) -> Response {
    app.page.render()
}

/// There until the first admin exists.
pub async fn setup(State(app): State<Arc<App>>) -> Result<Response, Problem> {
    if app.hub.needs_setup().await? {
        return Ok(app.page.render());
    }
    Err(Problem::Status(StatusCode::NOT_FOUND, "This hub is already set up"))
}
