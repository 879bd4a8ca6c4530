//! The REST API: bodies in, one call to the hub, bodies out.

mod agents;
mod annotations;
mod api;
mod approvals;
mod audit;
mod auth;
mod chat;
mod health;
mod invitations;
mod keys;
mod messages;
mod missions;
mod model_access;
mod pairing;
mod plans;
mod room_preferences;
mod rooms;
mod roots;
mod routers;
mod runs;
mod search;
mod second_factor;
mod services;
mod settings;
mod tasks;
mod uploads;
mod users;
mod workspace;

use crate::App;
use crate::http::problem::Problem;
use api::Api;
use axum::Router;
use http::StatusCode;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

const UNAUTHORIZED: StatusCode = StatusCode::UNAUTHORIZED;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const GONE: StatusCode = StatusCode::GONE;
const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

/// Each route with what it is for and with how it refuses, besides what its arguments say of themselves.
#[rustfmt::skip]
pub fn router() -> Router<Arc<App>> {
    Api::default()
        .get("/health", "Whether the hub can do its work", &[], health::health)
        .post("/setup", "Makes the first admin", &[NOT_FOUND, UNAVAILABLE], auth::set_up)
        .post("/auth/login", "Signs in", &[UNAUTHORIZED, UNAVAILABLE], auth::login)
        .post("/auth/register", "Takes an invitation", &[NOT_FOUND, CONFLICT, UNAVAILABLE], invitations::register)
        .post("/auth/verify-totp", "Signs in with a second factor", &[UNAUTHORIZED, UNAVAILABLE], second_factor::verify)
        .post("/auth/setup-totp", "Offers a second factor", &[CONFLICT], second_factor::set_up)
        .post("/auth/verify-totp-setup", "Turns the second factor on", &[CONFLICT], second_factor::confirm)
        .post("/auth/disable-totp", "Turns the second factor off", &[NOT_FOUND], second_factor::disable)
        .post("/auth/refresh", "Exchanges a refresh token", &[UNAUTHORIZED, UNAVAILABLE], auth::refresh)
        .post("/auth/logout", "Ends this sign-in", &[], auth::logout)
        .get("/auth/oauth/providers", "Other ways to sign in", &[], auth::oauth_providers)
        .get("/auth/sessions", "One's signed-in devices", &[], auth::sessions)
        .delete("/auth/sessions/{id}", "Ends one of them", &[], auth::end_session)
        .get("/keys", "One's API keys", &[], keys::list)
        .post("/keys", "Makes a key", &[], keys::create)
        .delete("/keys/{id}", "Revokes a key", &[], keys::revoke)
        .post("/pairing", "Makes a code that pairs another machine", &[], pairing::offer)
        .post("/pairing/exchange", "Gives such a code for a key", &[NOT_FOUND, UNAVAILABLE], pairing::exchange)
        .get("/settings", "What can be changed while the hub runs", &[], settings::show)
        .post("/settings", "Changes some of it", &[], settings::change)
        .get("/admin/settings", "The same, for AgentIM", &[], settings::show_to_admin)
        .put("/admin/settings", "Changes some of it, for AgentIM", &[], settings::change_by_admin)
        .get("/limits", "How much of everything others may have", &[], settings::limits)
        .get("/audit", "Who did what to whom", &[], audit::list)
        .get("/invites", "Invitations that have not run out", &[], invitations::list)
        .post("/invites", "Makes an invitation", &[], invitations::create)
        .delete("/invites/{id}", "Takes an invitation back", &[], invitations::revoke)
        .get("/users", "All accounts", &[], users::list)
        .post("/users", "Makes an account", &[CONFLICT], users::create)
        .get("/users/me", "One's own account", &[], users::me)
        .put("/users/me", "Changes one's profile", &[], users::change_me)
        .get("/users/me/oauth-accounts", "One's accounts elsewhere", &[], users::oauth_accounts)
        .put("/users/me/password", "Changes one's password", &[], users::change_password)
        .get("/users/search", "Finds people by name", &[], users::search)
        .put("/users/{id}", "Changes an account", &[CONFLICT], users::change)
        .delete("/users/{id}", "Removes an account", &[CONFLICT], users::remove)
        .get("/rooms", "One's rooms", &[], rooms::list)
        .post("/rooms", "Makes a room", &[NOT_FOUND], rooms::create)
        .get("/rooms/{id}", "A room and its first members", &[], rooms::show)
        .put("/rooms/{id}", "Changes a room", &[], rooms::change)
        .delete("/rooms/{id}", "Removes a room and what was said in it", &[], rooms::remove)
        .post("/rooms/{id}/freeze", "Silences every agent in a room", &[], rooms::freeze)
        .delete("/rooms/{id}/freeze", "Lets them speak again", &[], rooms::thaw)
        .get("/project-roots", "Folders that rooms may be about", &[], roots::list)
        .put("/rooms/{id}/project-root", "Says which folder a room is about", &[], roots::set)
        .get("/workspace/tree", "The files of the folder that a room is about", &[NOT_FOUND], workspace::tree)
        .get("/rooms/{id}/members", "Who is in a room", &[], rooms::members)
        .post("/rooms/{id}/members", "Adds a member", &[CONFLICT], rooms::add_member)
        .put("/rooms/{id}/members/{member}", "Changes a role, or what it is for", &[CONFLICT], rooms::change_member)
        .delete("/rooms/{id}/members/{member}", "Removes a member", &[CONFLICT], rooms::remove_member)
        .put("/rooms/{id}/pin", "Keeps a room above one's others, or no longer", &[], room_preferences::pin)
        .put("/rooms/{id}/archive", "Puts a room away, or takes it out again", &[], room_preferences::archive)
        .put("/rooms/{id}/clear", "Shows oneself nothing any more of what was said so far", &[], room_preferences::clear)
        .put("/rooms/{id}/notification-pref", "What one wants to be called for", &[], room_preferences::notify)
        .get("/rooms/{id}/approvals", "What agents wait for an answer to", &[], approvals::open)
        .post("/approvals/{id}", "Allows an agent to use a tool, or does not", &[CONFLICT], approvals::decide)
        .get("/rooms/{id}/approval-rules", "What agents are always allowed in a room", &[], approvals::rules)
        .delete("/rooms/{id}/approval-rules", "Allows it no longer without asking", &[], approvals::revoke)
        .get("/rooms/{id}/pins", "The messages that a room keeps in sight", &[], annotations::pins)
        .post("/rooms/{id}/messages", "Posts a message", &[CONFLICT], messages::create)
        .get("/rooms/{id}/messages", "What was said", &[GONE], messages::history)
        .get("/messages/recent", "The newest message of each room", &[], messages::recent)
        .get("/messages/search", "Finds what was said", &[NOT_FOUND, GONE], search::search)
        .post("/messages/mark-all-read", "Marks every room as read", &[], messages::mark_all_read)
        .post("/messages/batch-delete", "Erases several messages, or none", &[NOT_FOUND], messages::remove_many)
        .get("/messages/rooms/{id}", "What was said", &[GONE], messages::history)
        .post("/messages/rooms/{id}/read", "Marks a room as read", &[], messages::mark_read)
        .put("/messages/{id}", "Edits a message", &[], messages::edit)
        .delete("/messages/{id}", "Erases a message", &[], messages::remove)
        .get("/messages/{id}/history", "What a message said before", &[], messages::revisions)
        .get("/messages/{id}/deliveries", "Why agents did or did not answer", &[], runs::deliveries)
        .get("/messages/{id}/thread", "What answers a message", &[GONE], messages::thread)
        .get("/messages/{id}/replies/count", "How many messages answer it", &[], messages::reply_count)
        .post("/messages/{id}/forward", "Says the same in another room", &[CONFLICT], messages::forward)
        .post("/messages/{id}/reactions", "Adds a reaction, or takes it away", &[], annotations::react)
        .post("/messages/{id}/pin", "Keeps a message in sight of the room", &[], annotations::pin)
        .delete("/messages/{id}/pin", "Takes a pin away", &[], annotations::unpin)
        .get("/bookmarks", "One's bookmarks", &[GONE], annotations::bookmarks)
        .post("/bookmarks", "Keeps a message in mind", &[NOT_FOUND], annotations::bookmark)
        .delete("/bookmarks/{id}", "Forgets a bookmark, by its message", &[], annotations::remove_bookmark)
        .post("/upload", "Sends a file", &[], uploads::create)
        .post("/upload/avatar", "Sends a picture of oneself", &[], uploads::create_avatar)
        .post("/upload/{id}/link", "Makes a link to a file that works for a moment", &[], uploads::link)
        .get("/routers", "Models that pick which agents answer", &[], routers::list)
        .post("/routers", "Makes one", &[], routers::create)
        .get("/routers/{id}", "One of them", &[], routers::show)
        .put("/routers/{id}", "Changes one", &[], routers::change)
        .delete("/routers/{id}", "Removes one, also from its rooms", &[], routers::remove)
        .post("/routers/{id}/test", "Asks its model something simple", &[], routers::test)
        .get("/service-agents", "Models that answer from within the hub", &[], services::list)
        .post("/service-agents", "Makes one", &[], services::create)
        .get("/service-agents/providers", "What kinds there are", &[], services::providers)
        .get("/service-agents/{id}", "One of them", &[], services::show)
        .put("/service-agents/{id}", "Changes one, at once", &[], services::change)
        .delete("/service-agents/{id}", "Removes one, also from its rooms", &[], services::remove)
        .post("/service-agents/{id}/validate", "Asks its model something simple", &[], services::validate)
        .get("/tasks", "One's tasks", &[], tasks::own)
        .get("/tasks/rooms/{id}", "The tasks of a room", &[], tasks::list)
        .post("/tasks/rooms/{id}", "Makes a task", &[], tasks::create)
        .put("/tasks/{id}", "Changes a task", &[CONFLICT], tasks::change)
        .patch("/tasks/{id}", "The same", &[CONFLICT], tasks::change)
        .delete("/tasks/{id}", "Removes a task", &[], tasks::remove)
        .post("/events/ticket", "Gives a ticket for one stream of events", &[], chat::ticket)
        .post("/chat", "Says something to an agent", &[NOT_FOUND], chat::chat)
        .get("/queue", "What waits for agents", &[NOT_FOUND], chat::queue)
        .delete("/queue", "Takes back what waits for agents", &[NOT_FOUND], chat::unqueue)
        .get("/agent-runs", "The newest turns of agents", &[NOT_FOUND], chat::runs)
        .get("/agent-children", "The turns that a turn set off", &[NOT_FOUND], chat::children)
        .get("/agent-context", "What a turn answers, and what was said in it", &[NOT_FOUND], chat::context)
        .post("/agent-cancel", "Ends a turn and what came of it", &[NOT_FOUND], chat::cancel)
        .get("/plan", "What agents are going to do", &[NOT_FOUND], plans::list)
        .post("/plan/approve", "Has an agent carry its plan out", &[NOT_FOUND], plans::approve)
        .post("/plan/reject", "Does not", &[NOT_FOUND], plans::reject)
        .post("/plan/edit", "Puts a plan in other words", &[NOT_FOUND], plans::edit)
        .get("/mission", "What agents are to pursue by themselves", &[NOT_FOUND], missions::show)
        .post("/mission", "Says what agents are to pursue", &[NOT_FOUND], missions::set)
        .delete("/mission", "Has them pursue nothing", &[NOT_FOUND], missions::end)
        .get("/missions", "What they were to pursue before", &[NOT_FOUND], missions::list)
        .get("/agent-override", "How an agent is prompted when it is idle", &[NOT_FOUND], missions::show_override)
        .post("/agent-override", "Says how", &[NOT_FOUND], missions::set_override)
        .delete("/agent-override", "Takes it back", &[NOT_FOUND], missions::remove_override)
        .get("/ask-user", "What agents ask people", &[], chat::questions)
        .post("/ask-user-response", "Answers what an agent asks", &[NOT_FOUND, CONFLICT, GONE], chat::respond)
        .get("/agents", "One's agents", &[], agents::list)
        .post("/agents", "Makes an agent before its gateway registers it", &[CONFLICT], agents::create)
        .post("/agents/spawn", "Has a gateway start an agent", &[NOT_FOUND], agents::spawn)
        .get("/agents/gateways/list", "One's gateways", &[], agents::gateways)
        .delete("/agents/gateways/{id}", "Removes a gateway with its agents", &[], agents::remove_gateway)
        .get("/agents/{id}", "An agent", &[], agents::show)
        .put("/agents/{id}", "Changes an agent, or who may know of it", &[], agents::change)
        .delete("/agents/{id}", "Removes an agent", &[], agents::remove)
        .get("/agents/{id}/rooms", "One's rooms that it is in", &[], agents::rooms)
        .get("/agents/{id}/runs", "What it did there lately", &[], runs::of_agent)
        .get("/agents/shared", "Agents that others share", &[], agents::shared)
        .finish()
        .fallback(not_found)
}

pub async fn not_found() -> Problem {
    Problem::Status(StatusCode::NOT_FOUND, "Not found")
}

pub async fn method_not_allowed() -> Problem {
    Problem::Status(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
}

/// `?limit=&offset=`
#[derive(Deserialize, IntoParams)]
struct Pages {
    /// 100 where it is left out, 500 at most.
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
