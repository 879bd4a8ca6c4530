//! How often one person, or one address that nobody signed in from, may ask.

use super::problem::Problem;
use super::{Peer, ResolvedCaller, bearer};
use crate::auth::rate_limiter::{KeyedRateLimiter, RateLimitStatus, network};
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
pub enum RateLimitKey {
    User(UserId),
    Address(IpAddr),
}

pub struct RateLimits {
    all: KeyedRateLimiter<RateLimitKey>,
    passwords: KeyedRateLimiter<RateLimitKey>,
    searches: KeyedRateLimiter<RateLimitKey>,
    uploads: KeyedRateLimiter<RateLimitKey>,
    router_tests: KeyedRateLimiter<RateLimitKey>,
}

impl RateLimits {
    pub fn new(config: &Config) -> Self {
        Self {
            all: KeyedRateLimiter::per_minute(config.requests_per_minute),
            passwords: KeyedRateLimiter::per_minute(config.passwords_per_minute),
            searches: KeyedRateLimiter::per_minute(config.searches_per_minute),
            uploads: KeyedRateLimiter::per_minute(config.uploads_per_minute),
            router_tests: KeyedRateLimiter::per_minute(config.router_tests_per_minute),
        }
    }

    /// What costs more than most has a count of its own besides.
    fn dear(&self, method: &Method, route: &str) -> Option<&KeyedRateLimiter<RateLimitKey>> {
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
    fn take(
        &self,
        who: &RateLimitKey,
        dear: Option<&KeyedRateLimiter<RateLimitKey>>,
    ) -> Result<Option<RateLimitStatus>, (Refusal, u32)> {
        let mut scarcest: Option<RateLimitStatus> = None;
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
    let mut who = RateLimitKey::Address(network(address));
    if let Some(token) = bearer(request.headers()) {
        let caller = auth::caller(&app, token).await;
        if let Ok(user) = caller.as_ref().map(|caller| caller.user()) {
            who = user.map_or(who, |user| RateLimitKey::User(user.clone()));
        }
        // Looked up once: the handler takes it from here.
        request.extensions_mut().insert(ResolvedCaller(caller));
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
