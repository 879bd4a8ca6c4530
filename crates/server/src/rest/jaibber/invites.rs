//! Invitations to projects: links with which one user joins a room.

use super::{invalid, project_id};
use crate::App;
use crate::auth::secrets;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Path;
use crate::http::problem::{JaibberProblem, Problem};
use crate::http::response::{BareCreated, BareJson, Done, bare_created, bare_json};
use axum::extract::State;
use parlor_model::command::{AcceptRoomInvitation, InviteToRoom, JoinedRoom, RevokeRoomInvitation};
use parlor_model::query::{GetRoomInvitation, ListRoomInvitations, OpenRoomInvitation};
use parlor_model::{InvitationId, RoomInvitation, RoomRole, SealedKey, SecretHash};
use parlor_wire::ably::jaibber::rest;
use std::sync::Arc;
use std::time::Duration;

/// Lifetime of an invitation without `expiresInHours`: seven days.
const DEFAULT_HOURS: u32 = 7 * 24;
const HOUR: Duration = Duration::from_secs(3600);

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<BareJson<rest::InviteList>, JaibberProblem> {
    let found = app.hub.read(&caller, ListRoomInvitations { room: project_id(&id)? }).await?;
    let invites = found.iter().map(|invitation| rest::Invite::of(invitation, token(&app, invitation)));
    Ok(bare_json(rest::InviteList { invites: invites.collect() }))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewInvite>,
) -> Result<BareCreated<rest::InviteAnswer>, JaibberProblem> {
    let room = project_id(&id)?;
    let role = match body.role.as_deref() {
        None => RoomRole::Member,
        Some(role) => rest::parse_role(role).ok_or_else(|| invalid("role", "must be admin or member"))?,
    };
    let hours = body.expires_in_hours.unwrap_or(DEFAULT_HOURS);
    let (expires_at, token) = (app.hub.now().plus(HOUR * hours), secrets::invitation_token());
    let sealed = SealedKey(app.invitation_tokens.close(room.as_str(), token.as_bytes()));
    let command = InviteToRoom { room, role, expires_at, secret: secrets::hash(&token), sealed };
    let invitation = app.hub.execute(&caller, command).await?;
    let invite = rest::Invite::of(&invitation, Some(token));
    Ok(bare_created(rest::InviteAnswer { invites: vec![invite.clone()], invite }))
}

/// Decrypts the token of a stored invitation. `None` if it was encrypted with another secret of the hub.
fn token(app: &App, invitation: &RoomInvitation) -> Option<String> {
    let token = app.invitation_tokens.open(invitation.room.as_str(), &invitation.token.0)?;
    String::from_utf8(token).ok()
}

pub async fn revoke(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path((id, invitation)): Path<(String, String)>,
) -> Result<Done, JaibberProblem> {
    let room = project_id(&id)?;
    let invitation = InvitationId::parse(&invitation).map_err(|_| Problem::not_an_id())?;
    app.hub.execute(&caller, RevokeRoomInvitation { room, invitation }).await?;
    Ok(Done)
}

/// Hash by which an invitation is found; an error for text that cannot be a token.
fn hash(token: &str) -> Result<SecretHash, JaibberProblem> {
    let is_token = token.bytes().all(|byte| byte.is_ascii_alphanumeric() || matches!(byte, b'_' | b'-'));
    if is_token { Ok(secrets::hash(token)) } else { Err(Problem::not_an_id().into()) }
}

pub async fn show(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(token): Path<String>,
) -> Result<BareJson<rest::InvitedProject>, JaibberProblem> {
    let query = GetRoomInvitation { token: hash(&token)? };
    let OpenRoomInvitation { invitation, room } = app.hub.read(&caller, query).await?;
    Ok(bare_json(rest::InvitedProject::of(&invitation, &room)))
}

pub async fn accept(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(token): Path<String>,
) -> Result<BareJson<rest::JoinedProject<'static>>, JaibberProblem> {
    let command = AcceptRoomInvitation { token: hash(&token)? };
    let JoinedRoom { room, member } = app.hub.execute(&caller, command).await?;
    Ok(bare_json(rest::JoinedProject::of(&room, member.role)))
}
