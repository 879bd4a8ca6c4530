//! User accounts: the caller's own profile and password, user search, and account management by admins.

use super::Pages;
use super::auth::new_password;
use crate::App;
use crate::http::body::Body;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Data, Done, List, bare_json, data, list as all};
use crate::http::{Authenticated, Peer};
use axum::extract::State;
use parlor_model::command::{
    ChangePassword, ChangeProfile, ChangeUser, CreateUser, NewUser, RemoveUser, UserChanges,
};
use parlor_model::query::{GetMe, ListUsers, SearchUsers, UserPage};
use parlor_model::{Caller, Pattern, Refusal, SiteRole, UserId};
use parlor_wire::agentim::rest;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

pub async fn me(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Data<rest::User<'static>>, Problem> {
    let user = app.hub.read(&caller, GetMe).await?;
    Ok(data(rest::User::from(&*user)))
}

pub async fn change_me(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::Profile>,
) -> Result<Data<rest::User<'static>>, Problem> {
    let change = ChangeProfile { display_name: body.display_name, avatar_url: body.avatar_url.into() };
    let changed = app.hub.execute(&caller, change).await?;
    Ok(data(rest::User::from(&*changed)))
}

/// Always empty: Parlor supports no external sign-in providers.
pub async fn oauth_accounts(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<rest::OauthProvider<'static>>, Problem> {
    app.hub.may(&caller, GetMe).await?;
    Ok(all([]))
}

pub async fn change_password(
    State(app): State<Arc<App>>,
    peer: Peer,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::PasswordChange>,
) -> Result<Done, Problem> {
    // Rate-limited like a login: with a stolen session, an attacker could guess the password here.
    app.logins.check(peer.0.ip())?;
    let user = app.hub.read(&caller, GetMe).await?;
    if !app.passwords.verify(&body.current_password, Some(&user.password_hash)).await? {
        return Err(Refusal::WrongCredentials.into());
    }
    let password_hash = new_password(&app, &body.new_password).await?;
    let verified_password_hash = user.password_hash.clone();
    app.hub.execute(&caller, ChangePassword { verified_password_hash, password_hash }).await?;
    Ok(Done)
}

#[derive(Deserialize, IntoParams)]
pub struct UserSearchQuery {
    /// Part of a username or display name, 2 to 100 characters.
    #[param(required = true)]
    q: Option<String>,
}

pub async fn search(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(search): Parameters<UserSearchQuery>,
) -> Result<List<rest::Person<'static>>, Problem> {
    let text = search.q.unwrap_or_default();
    if !(2..=100).contains(&text.trim().chars().count()) {
        return Err(Problem::invalid("q", "must have 2 to 100 characters"));
    }
    let users = app.hub.read(&caller, SearchUsers { text: text.trim().into() }).await?;
    Ok(all(users.iter().map(rest::Person::from)))
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(pages): Parameters<Pages>,
) -> Result<BareJson<rest::Users<'static>>, Problem> {
    let query = ListUsers { limit: pages.limit(), offset: pages.offset() };
    let UserPage { users, total } = app.hub.read(&caller, query).await?;
    let now = app.hub.now();
    let data = users.iter().map(|user| rest::ManagedUser::new(user, now)).collect();
    Ok(bare_json(rest::Users { ok: rest::True, data, total }))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::NewUser>,
) -> Result<Data<rest::User<'static>>, Problem> {
    let role = site_role(body.role.as_deref())?.unwrap_or(SiteRole::User);
    // Checked first, so that only admins can make the hub compute an expensive password hash.
    admins_only(&app, &caller).await?;
    let password_hash = new_password(&app, &body.password).await?;
    let account = NewUser { username: body.username, display_name: body.display_name, role, password_hash };
    let created = app.hub.execute(&caller, CreateUser { account }).await?;
    Ok(data(rest::User::from(&*created)))
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::UserChanges>,
) -> Result<Data<rest::ManagedUser<'static>>, Problem> {
    let id = UserId::parse(&id).map_err(|_| Problem::not_an_id())?;
    let role = site_role(body.role.as_deref())?;
    admins_only(&app, &caller).await?;
    let password_hash = match body.password {
        Some(password) => Some(new_password(&app, &password).await?),
        None => None,
    };
    let changes = UserChanges {
        display_name: body.display_name,
        role,
        password_hash,
        max_connections: body.max_connections.into(),
        hears: body.hears.map(|patterns| parse_patterns(&patterns)).transpose()?,
    };
    let changed = app.hub.execute(&caller, ChangeUser { user: id, changes }).await?;
    Ok(data(rest::ManagedUser::new(&changed, app.hub.now())))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    let user = UserId::parse(&id).map_err(|_| Problem::not_an_id())?;
    app.hub.execute(&caller, RemoveUser { user }).await?;
    Ok(Done)
}

pub async fn admins_only(app: &App, caller: &Caller) -> Result<(), Refusal> {
    app.hub.may(caller, ListUsers { limit: 1, offset: 0 }).await
}

pub fn site_role(role: Option<&str>) -> Result<Option<SiteRole>, Problem> {
    match role {
        None => Ok(None),
        Some(role) => {
            SiteRole::parse(role).map(Some).ok_or(Problem::invalid("role", "must be admin or user"))
        }
    }
}

fn parse_patterns(texts: &[Box<str>]) -> Result<Vec<Pattern>, Problem> {
    let patterns = texts.iter().map(|text| Pattern::parse(text));
    patterns.collect::<Result<_, _>>().map_err(|_| Problem::invalid("hears", "must be path patterns"))
}
