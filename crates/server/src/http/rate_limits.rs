//! Rate limits of the REST API, per user, or per address for unauthenticated requests.

use super::problem::Problem;
use super::{Peer, ResolvedCaller, credential};
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

/// Key of a rate limit: a user, or the address of an unauthenticated client.
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

    /// Additional limiter of an expensive route.
    fn extra_limiter(&self, method: &Method, route: &str) -> Option<&KeyedRateLimiter<RateLimitKey>> {
        match (method.as_str(), route) {
            ("PUT", "/api/users/me/password") | ("POST", "/api/auth/change-password") => {
                Some(&self.passwords)
            }
            ("GET", "/api/messages/search") => Some(&self.searches),
            ("POST", "/api/upload" | "/api/upload/avatar") => Some(&self.uploads),
            ("POST", "/api/routers/{id}/test" | "/api/service-agents/{id}/validate") => {
                Some(&self.router_tests)
            }
            _ => None,
        }
    }

    /// Counts a request against the general limiter.
    pub fn count(&self, key: &RateLimitKey) -> Result<(), Refusal> {
        self.all.take(key).map(drop)
    }

    /// Counts a request against the general limiter and the route's own. Returns the status of the one with
    /// the fewest requests left, or the refusal and limit of the exhausted one.
    fn take(
        &self,
        key: &RateLimitKey,
        extra: Option<&KeyedRateLimiter<RateLimitKey>>,
    ) -> Result<Option<RateLimitStatus>, (Refusal, u32)> {
        let mut lowest: Option<RateLimitStatus> = None;
        for limiter in [Some(&self.all), extra].into_iter().flatten() {
            let left = limiter.take(key).map_err(|refusal| (refusal, limiter.limit()))?;
            lowest = [lowest, left].into_iter().flatten().min_by_key(|left| left.remaining);
        }
        Ok(lowest)
    }
}

pub async fn limit(State(app): State<Arc<App>>, mut request: Request, next: Next) -> Response {
    if !app.limits.all.is_enabled() {
        return next.run(request).await;
    }
    let address = request.extensions().get::<Peer>().copied().unwrap_or_default().0.ip();
    let mut key = RateLimitKey::Address(network(address));
    if let Some(token) = credential(request.headers()) {
        let caller = auth::caller(&app, token).await;
        if let Ok(user) = caller.as_ref().map(|caller| caller.user()) {
            key = user.map_or(key, |user| RateLimitKey::User(user.clone()));
        }
        // The handler takes the resolved caller from here instead of resolving the token again.
        request.extensions_mut().insert(ResolvedCaller(caller));
    }
    let route = request.extensions().get::<MatchedPath>().map_or("", MatchedPath::as_str);
    let result = app.limits.take(&key, app.limits.extra_limiter(request.method(), route));
    match result {
        Ok(left) => {
            let mut response = next.run(request).await;
            if let Some(left) = left {
                response.headers_mut().insert(LIMIT.clone(), left.limit.into());
                response.headers_mut().insert(REMAINING.clone(), left.remaining.into());
            }
            response
        }
        Err((refusal, limit)) => {
            let mut response = Problem::Refused(refusal).into_response();
            response.headers_mut().insert(LIMIT.clone(), limit.into());
            response.headers_mut().insert(REMAINING.clone(), 0.into());
            response
        }
    }
}
