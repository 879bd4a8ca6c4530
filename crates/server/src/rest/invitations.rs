//! Invitations, and registration of accounts with them.

use super::auth::{access_token, cookie, create_sign_in, new_password};
use super::jaibber::accounts::lasting_token;
use super::users::{admins_only, site_role};
use crate::App;
use crate::auth::secrets;
use crate::http::body::Body;
use crate::http::browser::NoForeignPage;
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Created, Done, Header, List, bare_json, created, list as all};
use crate::http::{Authenticated, Peer};
use axum::extract::State;
use http::header::HOST;
use http::{HeaderMap, StatusCode};
use parlor_model::command::{CreateInvitation, NewUser, Register, RevokeInvitation};
use parlor_model::query::{ListInvitations, MayRegister};
use parlor_model::{InvitationId, Refusal, SiteRole, Time};
use parlor_wire::agentim::rest;
use parlor_wire::time;
use std::sync::Arc;
use std::time::Duration;

/// Lifetime of an invitation that sets neither `expiresIn` nor `expiresAt`.
const DEFAULT_LIFETIME: Duration = Duration::from_secs(7 * 24 * 60 * 60);

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<rest::Invitation<'static>>, Problem> {
    let found = app.hub.read(&caller, ListInvitations).await?;
    Ok(all(found.iter().map(rest::Invitation::from)))
}

pub async fn create(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::NewInvitation>,
) -> Result<Created<rest::CreatedInvitation<'static>>, Problem> {
    admins_only(&app, &caller).await?;
    let secret = secrets::invitation_token();
    let command = CreateInvitation {
        role: site_role(body.role.as_deref())?.unwrap_or(SiteRole::User),
        uses: body.uses.unwrap_or(1),
        expires_at: expiry(&body, app.hub.now())?,
        note: body.note,
        secret: secrets::hash(&secret),
    };
    let invitation = app.hub.execute(&caller, command).await?;
    let url = format!("{}/register#token={secret}", address(&app, &headers));
    Ok(created(rest::CreatedInvitation { about: (&*invitation).into(), token: &secret, url: &url }))
}

fn expiry(body: &rest::NewInvitation, now: Time) -> Result<Time, Problem> {
    match (body.expires_in, &body.expires_at) {
        (None, None) => Ok(now.plus(DEFAULT_LIFETIME)),
        (Some(seconds), None) => Ok(now.plus(Duration::from_secs(seconds))),
        (None, Some(text)) => time::parse(text).ok_or(Problem::invalid("expiresAt", "must be a time")),
        (Some(_), Some(_)) => Err(Problem::invalid("expiresAt", "must not be given with expiresIn")),
    }
}

/// Base URL for links to this hub: `public_url` if configured, otherwise built from the request's `Host`
/// header.
pub fn address(app: &App, headers: &HeaderMap) -> String {
    let scheme = if app.config.secure_cookies { "https" } else { "http" };
    let from_host =
        || headers.get(HOST).and_then(|host| host.to_str().ok()).map(|host| format!("{scheme}://{host}"));
    app.config.public_url.clone().or_else(from_host).unwrap_or_default()
}

pub async fn revoke(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    let invitation = InvitationId::parse(&id).map_err(|_| Problem::not_an_id())?;
    app.hub.execute(&caller, RevokeInvitation { invitation }).await?;
    Ok(Done)
}

/// Registers with an invitation, or without one if registration is open.
pub async fn register(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    _: NoForeignPage,
    Body(body): Body<rest::Registration>,
) -> Result<(Header, BareJson<rest::Registered<'static>>), Problem> {
    app.logins.check(peer.0.ip())?;
    let token = body.token.as_deref().map(secrets::hash);
    // Checks the permission before the hub computes an expensive password hash.
    app.hub.may(&peer.anonymous(), MayRegister { token }).await.map_err(|refusal| match refusal {
        Refusal::Forbidden => Problem::Status(StatusCode::FORBIDDEN, "Registration requires an invitation"),
        refusal => refusal.into(),
    })?;
    let password_hash = new_password(&app, &body.password).await?;
    let (username, display_name) = (body.username, body.display_name);
    let account = NewUser { username, display_name, role: SiteRole::User, password_hash };
    let user = app.hub.execute(&peer.anonymous(), Register { token, account }).await?;
    let (refresh, ttl) = (secrets::refresh_token(), app.config.refresh_token_ttl);
    let signed_in = create_sign_in(&app, &user, None, &refresh, ttl, peer, &headers).await?;
    let token = lasting_token(&app, &signed_in.sign_in);
    let access = access_token(&app, &signed_in.sign_in);
    let user = &*signed_in.user;
    let data = rest::SignedIn { access_token: &access, refresh_token: &refresh, user: user.into() };
    let (user_id, username) = (user.id.as_str(), &*user.username);
    let body = rest::Registered { ok: rest::True, data, token: &token, user_id, username };
    Ok((cookie(&app, Some(&refresh)), bare_json(body)))
}
