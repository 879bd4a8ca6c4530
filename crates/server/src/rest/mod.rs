//! The REST API under `/api`: the route table, and one file of handlers per resource.
//!
//! A handler decodes the request, calls the hub and encodes the response. Permissions, limits and business
//! rules belong in the engine.

mod agents;
mod annotations;
mod api;
mod approvals;
mod audit;
mod auth;
mod chat;
mod health;
mod invitations;
mod jaibber;
mod keys;
mod mail;
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
mod turns;
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
const FORBIDDEN: StatusCode = StatusCode::FORBIDDEN;
const NOT_FOUND: StatusCode = StatusCode::NOT_FOUND;
const CONFLICT: StatusCode = StatusCode::CONFLICT;
const GONE: StatusCode = StatusCode::GONE;
const UNAVAILABLE: StatusCode = StatusCode::SERVICE_UNAVAILABLE;

/// All REST routes, each with its OpenAPI summary and the error statuses that its argument types do not
/// declare.
#[rustfmt::skip]
pub fn router() -> Router<Arc<App>> {
    Api::default()
        .get("/health", "Get the health of the hub", &[], health::health)
        .post("/setup", "Create the first admin", &[NOT_FOUND, UNAVAILABLE], auth::set_up)
        .post("/auth/login", "Sign in with a password", &[UNAUTHORIZED, UNAVAILABLE], auth::login)
        .post("/auth/register", "Register with an invitation, or without one", &[NOT_FOUND, CONFLICT, UNAVAILABLE], invitations::register)
        .post("/auth/token", "Sign in for seven days (Jaibber)", &[UNAUTHORIZED, FORBIDDEN, UNAVAILABLE], jaibber::accounts::token)
        .get("/auth/me", "Get the caller's id and username (Jaibber)", &[], jaibber::accounts::me)
        .post("/ably/token", "Create a token for an Ably connection of the caller (Jaibber)", &[], jaibber::tokens::create)
        .post("/auth/change-password", "Change the caller's password (Jaibber)", &[], users::change_password)
        .post("/auth/verify-totp", "Complete a sign-in with a second factor", &[UNAUTHORIZED, UNAVAILABLE], second_factor::verify)
        .post("/auth/setup-totp", "Start the setup of a second factor", &[CONFLICT], second_factor::set_up)
        .post("/auth/verify-totp-setup", "Confirm and enable a second factor", &[CONFLICT], second_factor::confirm)
        .post("/auth/disable-totp", "Disable the second factor", &[NOT_FOUND], second_factor::disable)
        .post("/auth/refresh", "Exchange a refresh token for a new access token", &[UNAUTHORIZED, UNAVAILABLE], auth::refresh)
        .post("/auth/logout", "End the current sign-in", &[], auth::logout)
        .get("/auth/oauth/providers", "List OAuth providers (always empty)", &[], auth::oauth_providers)
        .get("/auth/sessions", "List the caller's sign-ins", &[], auth::sessions)
        .delete("/auth/sessions", "End all sign-ins of the caller except the current one", &[], auth::end_other_sessions)
        .delete("/auth/sessions/{id}", "End one of the caller's sign-ins", &[], auth::end_session)
        .get("/keys", "List the caller's API keys", &[], keys::list)
        .post("/keys", "Create an API key", &[], keys::create)
        .delete("/keys/{id}", "Revoke an API key", &[], keys::revoke)
        .post("/pairing", "Create a pairing code for another machine", &[], pairing::offer)
        .post("/pairing/exchange", "Exchange a pairing code for an API key", &[NOT_FOUND, UNAVAILABLE], pairing::exchange)
        .get("/settings", "Get the runtime settings", &[], settings::show)
        .post("/settings", "Change runtime settings", &[], settings::change)
        .get("/admin/settings", "Get the runtime settings (AgentIM)", &[], settings::show_to_admin)
        .put("/admin/settings", "Change runtime settings (AgentIM)", &[], settings::change_by_admin)
        .get("/limits", "List the configured limits", &[], settings::limits)
        .get("/audit", "List audit log entries", &[], audit::list)
        .get("/invites", "List invitations that have not expired", &[], invitations::list)
        .post("/invites", "Create an invitation", &[], invitations::create)
        .delete("/invites/{id}", "Revoke an invitation", &[], invitations::revoke)
        .get("/users", "List all accounts", &[], users::list)
        .post("/users", "Create an account", &[CONFLICT], users::create)
        .get("/users/me", "Get the caller's account", &[], users::me)
        .put("/users/me", "Change the caller's profile", &[], users::change_me)
        .get("/users/me/oauth-accounts", "List the caller's OAuth accounts (always empty)", &[], users::oauth_accounts)
        .put("/users/me/password", "Change the caller's password", &[], users::change_password)
        .get("/users/search", "Search users by name", &[], users::search)
        .put("/users/{id}", "Change an account", &[CONFLICT], users::change)
        .delete("/users/{id}", "Delete an account", &[CONFLICT], users::remove)
        .get("/rooms", "List the caller's rooms", &[], rooms::list)
        .post("/rooms", "Create a room", &[NOT_FOUND], rooms::create)
        .get("/rooms/{id}", "Get a room and its first members", &[], rooms::show)
        .put("/rooms/{id}", "Change a room", &[], rooms::change)
        .delete("/rooms/{id}", "Delete a room and its messages", &[], rooms::remove)
        .post("/rooms/{id}/freeze", "Freeze the agents of a room", &[], rooms::freeze)
        .delete("/rooms/{id}/freeze", "Unfreeze a room", &[], rooms::thaw)
        .get("/project-roots", "List the project roots that rooms may use", &[], roots::list)
        .put("/rooms/{id}/project-root", "Set or clear the project root of a room", &[], roots::set)
        .get("/workspace/tree", "List the files in a room's project root", &[NOT_FOUND], workspace::tree)
        .get("/rooms/{id}/members", "List the members of a room", &[], rooms::members)
        .post("/rooms/{id}/members", "Add a member to a room", &[CONFLICT], rooms::add_member)
        .put("/rooms/{id}/members/{member}", "Change a member's role or role description", &[CONFLICT], rooms::change_member)
        .delete("/rooms/{id}/members/{member}", "Remove a member from a room", &[CONFLICT], rooms::remove_member)
        .put("/rooms/{id}/pin", "Pin or unpin a room for the caller", &[], room_preferences::pin)
        .put("/rooms/{id}/archive", "Archive or unarchive a room for the caller", &[], room_preferences::archive)
        .put("/rooms/{id}/clear", "Clear a room's history for the caller only", &[], room_preferences::clear)
        .put("/rooms/{id}/notification-pref", "Set the caller's notification preference for a room", &[], room_preferences::notify)
        .get("/rooms/{id}/approvals", "List the pending tool approvals of a room", &[], approvals::open)
        .post("/approvals/{id}", "Allow or deny a tool approval", &[CONFLICT], approvals::decide)
        .get("/rooms/{id}/approval-rules", "List the approval rules of a room", &[], approvals::rules)
        .delete("/rooms/{id}/approval-rules", "Revoke an approval rule", &[], approvals::revoke)
        .get("/rooms/{id}/pins", "List the pinned messages of a room", &[], annotations::pins)
        .post("/rooms/{id}/messages", "Post a message", &[CONFLICT], messages::create)
        .get("/rooms/{id}/messages", "List the messages of a room", &[GONE], messages::history)
        .get("/messages/recent", "List the newest message of each room", &[], messages::recent)
        .get("/messages/search", "Search messages", &[NOT_FOUND, GONE], search::search)
        .post("/messages/mark-all-read", "Mark all rooms as read", &[], messages::mark_all_read)
        .post("/messages/batch-delete", "Delete several messages, all or none", &[NOT_FOUND], messages::remove_many)
        .get("/messages/rooms/{id}", "List the messages of a room", &[GONE], messages::history)
        .post("/messages/rooms/{id}/read", "Mark a room as read", &[], messages::mark_read)
        .get("/messages/{id}", "Get a message", &[], messages::show)
        .put("/messages/{id}", "Edit a message", &[], messages::edit)
        .delete("/messages/{id}", "Delete a message", &[], messages::remove)
        .get("/messages/{id}/history", "List the earlier versions of a message", &[], messages::revisions)
        .get("/messages/{id}/deliveries", "List the runs that a message triggered, with their outcomes", &[], runs::deliveries)
        .get("/messages/{id}/thread", "List the replies to a message", &[GONE], messages::thread)
        .get("/messages/{id}/replies/count", "Count the replies to a message", &[], messages::reply_count)
        .post("/messages/{id}/forward", "Forward a message to another room", &[CONFLICT], messages::forward)
        .post("/messages/{id}/reactions", "Add or remove a reaction", &[], annotations::react)
        .post("/messages/{id}/pin", "Pin a message in its room", &[], annotations::pin)
        .delete("/messages/{id}/pin", "Unpin a message", &[], annotations::unpin)
        .get("/bookmarks", "List the caller's bookmarks", &[GONE], annotations::bookmarks)
        .post("/bookmarks", "Bookmark a message", &[NOT_FOUND], annotations::bookmark)
        .delete("/bookmarks/{id}", "Remove a bookmark by message id", &[], annotations::remove_bookmark)
        .post("/upload", "Upload a file", &[], uploads::create)
        .post("/upload/avatar", "Upload an avatar", &[], uploads::create_avatar)
        .post("/upload/{id}/link", "Create a short-lived link to a file", &[], uploads::link)
        .get("/routers", "List routers, the models that pick which agents answer", &[], routers::list)
        .post("/routers", "Create a router", &[], routers::create)
        .get("/routers/{id}", "Get a router", &[], routers::show)
        .put("/routers/{id}", "Change a router", &[], routers::change)
        .delete("/routers/{id}", "Delete a router and remove it from its rooms", &[], routers::remove)
        .post("/routers/{id}/test", "Test a router's model with a short request", &[], routers::test)
        .get("/service-agents", "List service agents, the models that the hub hosts", &[], services::list)
        .post("/service-agents", "Create a service agent", &[], services::create)
        .get("/service-agents/providers", "List the supported service agent providers", &[], services::providers)
        .get("/service-agents/{id}", "Get a service agent", &[], services::show)
        .put("/service-agents/{id}", "Change a service agent, effective with its next run", &[], services::change)
        .delete("/service-agents/{id}", "Delete a service agent and remove it from its rooms", &[], services::remove)
        .post("/service-agents/{id}/validate", "Test a service agent's model with a short request", &[], services::validate)
        .get("/turns", "List decisions about automatic turns, newest first, with statistics", &[NOT_FOUND], turns::list)
        .post("/turns", "Start a turn of an agent in a session, without triage", &[NOT_FOUND, UNAVAILABLE], turns::start)
        .get("/tasks", "List the caller's tasks", &[], tasks::own)
        .get("/tasks/rooms/{id}", "List the tasks of a room", &[], tasks::list)
        .post("/tasks/rooms/{id}", "Create a task in a room", &[], tasks::create)
        .put("/tasks/{id}", "Change a task", &[CONFLICT], tasks::change)
        .patch("/tasks/{id}", "Change a task", &[CONFLICT], jaibber::tasks::patch)
        .delete("/tasks/{id}", "Delete a task", &[], tasks::remove)
        .get("/projects", "List the caller's rooms as projects (Jaibber)", &[], jaibber::projects::list)
        .post("/projects", "Create a room as a project (Jaibber)", &[], jaibber::projects::create)
        .get("/projects/{id}", "Get a room as a project (Jaibber)", &[], jaibber::projects::show)
        .patch("/projects/{id}", "Rename a project (Jaibber)", &[], jaibber::projects::change)
        .delete("/projects/{id}", "Delete a project and its messages (Jaibber)", &[], jaibber::projects::remove)
        .get("/projects/{id}/members", "List the users of a project (Jaibber)", &[], jaibber::projects::members)
        .post("/projects/{id}/members", "Add a user to a project by username (Jaibber)", &[CONFLICT], jaibber::projects::add_member)
        .delete("/projects/{id}/members/{member}", "Remove a user from a project (Jaibber)", &[CONFLICT], jaibber::projects::remove_member)
        .get("/projects/{id}/invites", "List the invitations to a project (Jaibber)", &[], jaibber::invites::list)
        .post("/projects/{id}/invites", "Create an invitation to a project (Jaibber)", &[], jaibber::invites::create)
        .delete("/projects/{id}/invites/{invitation}", "Revoke an invitation to a project (Jaibber)", &[], jaibber::invites::revoke)
        .get("/invites/project/{token}", "Get the project of an invitation (Jaibber)", &[], jaibber::invites::show)
        .post("/invites/project/{token}/accept", "Join a project with an invitation (Jaibber)", &[CONFLICT], jaibber::invites::accept)
        .get("/projects/{id}/messages", "List the messages of a project (Jaibber)", &[GONE], jaibber::messages::list)
        .post("/projects/{id}/messages", "Store a message, once for each id (Jaibber)", &[CONFLICT], jaibber::messages::create)
        .delete("/projects/{id}/messages/{message}", "Delete a message of a project (Jaibber)", &[], jaibber::messages::remove)
        .get("/projects/{id}/tasks", "List the tasks of a project (Jaibber)", &[], jaibber::tasks::list)
        .post("/projects/{id}/tasks", "Create a task in a project (Jaibber)", &[], jaibber::tasks::create)
        .get("/projects/{id}/attachments", "List the files of a project's newest messages (Jaibber)", &[], jaibber::files::list)
        .post("/projects/{id}/attachments", "Register an uploaded file (Jaibber)", &[], jaibber::files::register)
        .get("/agent-registrations", "List the caller's agents in projects (Jaibber)", &[], jaibber::agents::list)
        .put("/agent-registrations", "Create or change an agent in a project (Jaibber)", &[NOT_FOUND], jaibber::agents::put)
        .delete("/agent-registrations", "Remove an agent from a project (Jaibber)", &[NOT_FOUND], jaibber::agents::remove)
        .post("/events/ticket", "Create a ticket for one event stream", &[], chat::ticket)
        .post("/chat", "Send a message to an agent", &[NOT_FOUND], chat::chat)
        .get("/queue", "List queued runs", &[NOT_FOUND], chat::queue)
        .delete("/queue", "Remove queued runs", &[NOT_FOUND], chat::unqueue)
        .get("/agent-runs", "List the newest agent runs", &[NOT_FOUND], chat::runs)
        .get("/agent-children", "List the runs that a run triggered", &[NOT_FOUND], chat::children)
        .get("/agent-context", "Get a run with its trigger and its messages", &[NOT_FOUND], chat::context)
        .post("/agent-cancel", "Cancel a run and the runs it triggered", &[NOT_FOUND], chat::cancel)
        .get("/plan", "List the current plans of agents", &[NOT_FOUND], plans::list)
        .post("/plan/approve", "Approve an agent's plan", &[NOT_FOUND], plans::approve)
        .post("/plan/reject", "Reject an agent's plan", &[NOT_FOUND], plans::reject)
        .post("/plan/edit", "Edit an agent's plan", &[NOT_FOUND], plans::edit)
        .get("/mission", "Get the active mission", &[NOT_FOUND], missions::show)
        .post("/mission", "Set the mission", &[NOT_FOUND], missions::set)
        .delete("/mission", "End the mission", &[NOT_FOUND], missions::end)
        .get("/missions", "List missions, newest first", &[NOT_FOUND], missions::list)
        .get("/agent-override", "Get the idle prompt settings of an agent", &[NOT_FOUND], missions::show_override)
        .post("/agent-override", "Set the idle prompt settings of an agent", &[NOT_FOUND], missions::set_override)
        .delete("/agent-override", "Remove the idle prompt settings of an agent", &[NOT_FOUND], missions::remove_override)
        .get("/ask-user", "List the open questions of agents", &[], chat::questions)
        .post("/ask-user-response", "Answer an agent's questions", &[NOT_FOUND, CONFLICT, GONE], chat::respond)
        .get("/agents", "List the caller's agents", &[], agents::list)
        .post("/agents", "Create an agent before its gateway registers it", &[CONFLICT], agents::create)
        .post("/agents/spawn", "Create an agent on a gateway", &[NOT_FOUND], agents::spawn)
        .get("/agents/gateways/list", "List the caller's gateways", &[], agents::gateways)
        .delete("/agents/gateways/{id}", "Remove a gateway and its agents", &[], agents::remove_gateway)
        .get("/agents/{id}", "Get an agent", &[], agents::show)
        .put("/agents/{id}", "Change an agent or its visibility", &[], agents::change)
        .delete("/agents/{id}", "Delete an agent", &[], agents::remove)
        .get("/agents/{id}/rooms", "List the caller's rooms that an agent is in", &[], agents::rooms)
        .get("/agents/{id}/runs", "List the newest runs of an agent in the caller's rooms", &[], runs::of_agent)
        .get("/agents/{id}/sessions", "List the mailboxes of an agent and its sessions", &[], mail::sessions)
        .put("/agents/{id}/sessions/{session}", "Create or change a session of an agent", &[], mail::change_session)
        .get("/agents/{id}/sessions/{session}/log", "List the conversation log of a session", &[], mail::log)
        .get("/agents/{id}/mail", "List the messages in a mailbox of an agent", &[], mail::list)
        .get("/dead-letters", "List messages that could not be delivered", &[], mail::dead_letters)
        .post("/dead-letters/{id}/resend", "Deliver a dead letter again", &[CONFLICT], mail::resend)
        .delete("/dead-letters", "Remove all dead letters", &[], mail::clear)
        .get("/agents/shared", "List agents that other users share with the caller", &[], agents::shared)
        .finish()
        .fallback(not_found)
}

pub async fn not_found() -> Problem {
    Problem::Status(StatusCode::NOT_FOUND, "Not found")
}

pub async fn method_not_allowed() -> Problem {
    Problem::Status(StatusCode::METHOD_NOT_ALLOWED, "Method not allowed")
}

/// Query parameters: `?limit=&offset=`.
#[derive(Deserialize, IntoParams)]
struct Pages {
    /// Default 100, maximum 500.
    limit: Option<usize>,
    /// Number of items to skip, default 0.
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
