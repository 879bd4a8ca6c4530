//! How often one person, or one address that nobody signed in from, may ask.

use super::problem::Problem;
use super::{Known, Peer, bearer};
use crate::auth::throttle::{Left, Throttle, network};
use crate::{App, Config, auth};
use axum::extract::{MatchedPath, Request, State};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use http::{HeaderName, Method};
use parlor_model::{Refusal, UserId};
use std::net::IpAddr;
use std::sync::Arc;

static LIMIT: HeaderName = HeaderName::from_static("x-ratelimit-limit");
static REMAINING: HeaderName = HeaderName::from_static("x-ratelimit-remaining");

/// Whoever is counted.
#[derive(Clone, PartialEq, Eq, Hash)]
pub enum Who {
    User(UserId),
    Address(IpAddr),
}

pub struct Limits {
    all: Throttle<Who>,
    passwords: Throttle<Who>,
    searches: Throttle<Who>,
    uploads: Throttle<Who>,
    router_tests: Throttle<Who>,
}

impl Limits {
    pub fn new(config: &Config) -> Self {
        Self {
            all: Throttle::per_minute(config.requests_per_minute),
            passwords: Throttle::per_minute(config.passwords_per_minute),
            searches: Throttle::per_minute(config.searches_per_minute),
            uploads: Throttle::per_minute(config.uploads_per_minute),
            router_tests: Throttle::per_minute(config.router_tests_per_minute),
        }
    }

    /// What costs more than most has a count of its own besides.
    fn dear(&self, method: &Method, route: &str) -> Option<&Throttle<Who>> {
        match (method.as_str(), route) {
            ("PUT", "/api/users/me/password") => Some(&self.passwords),
            ("GET", "/api/messages/search") => Some(&self.searches),
            ("POST", "/api/upload" | "/api/upload/avatar") => Some(&self.uploads),
            ("POST", "/api/routers/{id}/test" | "/api/service-agents/{id}/validate") => {
                Some(&self.router_tests)
            }
            _ => None,
        }
    }

    /// What is left of the scarcer one; or of which there is nothing left.
    fn take(&self, who: &Who, dear: Option<&Throttle<Who>>) -> Result<Option<Left>, (Refusal, u32)> {
        let mut scarcest: Option<Left> = None;
        for throttle in [Some(&self.all), dear].into_iter().flatten() {
            let left = throttle.take(who).map_err(|refusal| (refusal, throttle.most()))?;
            scarcest = [scarcest, left].into_iter().flatten().min_by_key(|left| left.remaining);
        }
        Ok(scarcest)
    }
}

pub async fn limit(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if !app.limits.all.is_on() {
        return next.run(request).await;
    }
    let address = request.extensions().get::<Peer>().copied().unwrap_or_default().0.ip();
    let mut who = Who::Address(network(address));
    if let Some(token) = bearer(request.headers()) {
        let caller = auth::caller(&app, token).await;
        if let Ok(user) = caller.as_ref().map(|caller| caller.user()) {
            who = user.map_or(who, |user| Who::User(user.clone()));
        }
        // Looked up once: the handler takes it from here.
        request.extensions_mut().insert(Known(caller));
    }
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let taken = app.limits.take(&who, app.limits.dear(request.method(), route));
    match taken {
        Ok(left) => {
            let mut response = next.run(request).await;
            if let Some(left) = left {
                response.headers_mut().insert(LIMIT.clone(), left.limit.into());
                response.headers_mut().insert(REMAINING.clone(), left.remaining.into());
            }
            response
        }
        Err((refusal, most)) => {
            let mut response = Problem::Refused(refusal).into_response();
            response.headers_mut().insert(LIMIT.clone(), most.into());
            response.headers_mut().insert(REMAINING.clone(), 0.into());
            response
        }
    }
}
