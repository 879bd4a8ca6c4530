//! The REST API: bodies in, one call to the hub, bodies out.

mod agents;
mod auth;
mod health;
mod keys;
mod messages;
mod rooms;
mod users;

use crate::App;
use crate::http::problem::Problem;
use axum::Router;
use axum::routing::{delete, get, post, put};
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;

pub fn router() -> Router<Arc<App>> {
    Router::new()
        .route("/health", get(health::health))
        .route("/setup", post(auth::set_up))
        .route("/auth/login", post(auth::login))
        .route("/auth/refresh", post(auth::refresh))
        .route("/auth/logout", post(auth::logout))
        .route("/auth/oauth/providers", get(auth::oauth_providers))
        .route("/auth/sessions", get(auth::sessions))
        .route("/auth/sessions/{id}", delete(auth::end_session))
        .route("/keys", get(keys::list).post(keys::create))
        .route("/keys/{id}", delete(keys::revoke))
        .route("/users", get(users::list).post(users::create))
        .route("/users/me", get(users::me).put(users::change_me))
        .route("/users/me/password", put(users::change_password))
        .route("/users/search", get(users::search))
        .route("/users/{id}", put(users::change).delete(users::remove))
        .route("/rooms", get(rooms::list).post(rooms::create))
        .route("/rooms/{id}", get(rooms::show).put(rooms::change).delete(rooms::remove))
        .route("/rooms/{id}/members", get(rooms::members).post(rooms::add_member))
        .route("/rooms/{id}/members/{member}", put(rooms::change_member).delete(rooms::remove_member))
        .route("/rooms/{id}/messages", post(messages::create).get(messages::history))
        .route("/messages/recent", get(messages::recent))
        .route("/messages/mark-all-read", post(messages::mark_all_read))
        .route("/messages/rooms/{id}", get(messages::history))
        .route("/messages/rooms/{id}/read", post(messages::mark_read))
        .route("/messages/{id}", put(messages::edit).delete(messages::remove))
        .route("/messages/{id}/history", get(messages::revisions))
        .route("/agents", get(agents::list))
        .route("/agents/shared", get(agents::shared))
        .fallback(not_found)
}

pub async fn not_found() -> Problem {
    Problem::Status(StatusCode::NOT_FOUND, "Not found")
}

pub async fn method_not_allowed() -> Problem {
    Problem::Status(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
}

/// `?limit=&offset=`
#[derive(Deserialize)]
struct Pages {
    limit: Option<usize>,
    offset: Option<usize>,
}

impl Pages {
    fn limit(&self) -> usize {
        self.limit.unwrap_or(100).clamp(1, 500)
    }

    fn offset(&self) -> usize {
        self.offset.unwrap_or(0)
    }
}
