//! Signing in and out.

use crate::App;
use crate::auth::{origin, secrets};
use crate::http::body::{Body, MaybeBody, data, done};
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::{Peer, Signed};
use axum::extract::State;
use axum::response::Response;
use http::header::{COOKIE, ORIGIN, SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use parlor_engine::password_flaws;
use parlor_model::command::{NewSignIn, NewUser};
use parlor_model::{
    Answer, Caller, Command, Principal, Query, Receipt, Refusal, SignIn, SignInId, SiteRole, User,
};
use parlor_wire::agentim::rest;
use serde_json::{Value, json};
use std::sync::Arc;

const COOKIE_NAME: &str = "parlor_rt";

pub async fn login(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    Body(body): Body<rest::Login>,
) -> Result<Response, Problem> {
    app.logins.check(peer.0.ip())?;
    no_foreign_page(&headers, &app)?;
    let account = app.hub.account(&body.username).await?;
    let now = app.hub.now();
    let locked = account.as_ref().is_some_and(|user| user.locked_until.is_some_and(|until| until > now));
    let hash = account.as_ref().map(|user| &*user.password_hash);
    let proven = app.passwords.verify(&body.password, hash).await?;
    let Some(user) = account.filter(|_| proven && !locked) else {
        if let (Some(user), false) = (app.hub.account(&body.username).await?, locked) {
            let lock_until = now.plus(app.config.lockout);
            let lock_after = app.config.lockout_failures;
            let failed = Command::SignInFailed { user: user.id, lock_after, lock_until };
            // Not waited for: the time of a commit would tell that there is such an account.
            drop(app.hub.submit(&Caller::OUTSIDER, failed).await);
        }
        return Err(Refusal::WrongCredentials.into());
    };
    sign_in(&app, &user, peer, &headers).await
}

pub async fn set_up(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    Body(body): Body<rest::SetUp>,
) -> Result<Response, Problem> {
    app.logins.check(peer.0.ip())?;
    no_foreign_page(&headers, &app)?;
    let password_hash = new_password(&app, &body.password).await?;
    let account = NewUser {
        username: body.username.into(),
        display_name: body.display_name,
        role: SiteRole::Admin,
        password_hash,
    };
    let command = Command::SetUp { token: secrets::hash(&body.token), account };
    let Receipt::User(user) = app.hub.call(&Caller::OUTSIDER, command).await? else {
        return Err(Refusal::Unavailable.into());
    };
    sign_in(&app, &user, peer, &headers).await
}

/// Somebody else's web page must not sign a visitor in, as whomever it likes.
fn no_foreign_page(headers: &HeaderMap, app: &App) -> Result<(), Problem> {
    if headers.contains_key(ORIGIN) && !origin::is_allowed(headers, &app.config) {
        return Err(Problem::Status(StatusCode::FORBIDDEN, "This origin may not sign in"));
    }
    Ok(())
}

/// Holds a new password to the rules and hashes it.
pub async fn new_password(app: &App, password: &str) -> Result<Box<str>, Problem> {
    let flaws = password_flaws(password);
    if !flaws.is_empty() {
        return Err(Refusal::Invalid(flaws).into());
    }
    Ok(app.passwords.hash(password).await?)
}

async fn sign_in(app: &App, user: &User, peer: Peer, headers: &HeaderMap) -> Result<Response, Problem> {
    let refresh = secrets::refresh_token();
    let device = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("unknown");
    let command = Command::SignIn(NewSignIn {
        user: user.id.clone(),
        proven: user.password_hash.clone(),
        refresh: secrets::hash(&refresh),
        device: device.chars().take(200).collect::<String>().into(),
        address: peer.0.ip().to_string().into(),
        expires_at: app.hub.now().plus(app.config.refresh_token_ttl),
    });
    let Receipt::SignedIn { user, sign_in } = app.hub.call(&Caller::OUTSIDER, command).await? else {
        return Err(Refusal::Unavailable.into());
    };
    let mut body = tokens(app, &sign_in, Some(&refresh));
    body["user"] = rest::user(&user);
    Ok(with_cookie(app, data(body), Some(&refresh)))
}

fn tokens(app: &App, sign_in: &SignIn, refresh: Option<&str>) -> Value {
    let access = app.tokens.issue(&sign_in.user, &sign_in.id, app.hub.now());
    match refresh {
        Some(refresh) => json!({ "accessToken": access, "refreshToken": refresh }),
        None => json!({ "accessToken": access }),
    }
}

pub async fn refresh(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    MaybeBody(body): MaybeBody<rest::RefreshBody>,
) -> Result<Response, Problem> {
    app.refreshes.check(peer.0.ip())?;
    let cookie = cookie(&headers);
    if cookie.is_some() && !origin::is_allowed(&headers, &app.config) {
        return Err(Problem::Status(StatusCode::FORBIDDEN, "This origin may not use the cookie"));
    }
    let by_cookie = cookie.is_some();
    let given = cookie.or_else(|| body.and_then(|body| body.refresh_token));
    let Some(given) = given else {
        return Err(Problem::Status(StatusCode::UNAUTHORIZED, "Refresh token required"));
    };
    let next = secrets::refresh_token();
    let command = Command::Refresh {
        token: secrets::hash(&given),
        next: secrets::hash(&next),
        expires_at: app.hub.now().plus(app.config.refresh_token_ttl),
    };
    match app.hub.call(&Caller::OUTSIDER, command).await? {
        Receipt::SignedIn { sign_in, .. } => {
            // A page whose cookie was renewed has no use for the token, and a script in it should not see it.
            let body = tokens(&app, &sign_in, (!by_cookie).then_some(&*next));
            Ok(with_cookie(&app, data(body), Some(&next)))
        }
        _ => Err(Refusal::TokenRevoked.into()),
    }
}

pub async fn logout(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Signed(caller): Signed,
) -> Result<Response, Problem> {
    if cookie(&headers).is_some() && !origin::is_allowed(&headers, &app.config) {
        return Err(Problem::Status(StatusCode::FORBIDDEN, "This origin may not use the cookie"));
    }
    let Principal::Person { sign_in, .. } = &caller.principal else { return Err(Refusal::Forbidden.into()) };
    app.hub.call(&caller, Command::EndSignIn { sign_in: sign_in.clone() }).await?;
    Ok(with_cookie(&app, done(), None))
}

pub async fn oauth_providers() -> Response {
    data(json!([]))
}

pub async fn sessions(State(app): State<Arc<App>>, Signed(caller): Signed) -> Result<Response, Problem> {
    let current = match &caller.principal {
        Principal::Person { sign_in, .. } => Some(sign_in),
        _ => None,
    };
    let Answer::SignIns(found) = app.hub.read(&caller, Query::SignIns).await? else {
        return Err(Refusal::Unavailable.into());
    };
    Ok(data(found.iter().map(|sign_in| rest::sign_in(sign_in, current)).collect()))
}

pub async fn end_session(
    State(app): State<Arc<App>>,
    Signed(caller): Signed,
    Path(id): Path<String>,
) -> Result<Response, Problem> {
    let sign_in = SignInId::parse(&id).map_err(|_| Problem::not_an_id())?;
    app.hub.call(&caller, Command::EndSignIn { sign_in }).await?;
    Ok(done())
}

fn cookie(headers: &HeaderMap) -> Option<String> {
    let pairs = headers.get_all(COOKIE).into_iter().filter_map(|value| value.to_str().ok());
    let mut pairs = pairs.flat_map(|value| value.split(';')).filter_map(|pair| pair.trim().split_once('='));
    pairs
        .find(|(name, _)| *name == COOKIE_NAME)
        .map(|(_, value)| value.to_owned())
        .filter(|value| !value.is_empty())
}

/// Sets the cookie, or takes it away. Scripts cannot read it, and it goes nowhere but to `/api/auth`.
fn with_cookie(app: &App, mut response: Response, token: Option<&str>) -> Response {
    let secure = if app.config.secure_cookies { "; Secure" } else { "" };
    let age = token.map_or(0, |_| app.config.refresh_token_ttl.as_secs());
    let token = token.unwrap_or_default();
    let cookie =
        format!("{COOKIE_NAME}={token}; Max-Age={age}; Path=/api/auth; HttpOnly; SameSite=Strict{secure}");
    if let Ok(cookie) = HeaderValue::from_str(&cookie) {
        response.headers_mut().append(SET_COOKIE, cookie);
    }
    response
}
