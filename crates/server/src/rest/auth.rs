//! Sign-in and sign-out: password login, the first admin, refresh tokens, and the list of a user's sign-ins.

use crate::App;
use crate::auth::{credentials, secrets};
use crate::http::body::{Body, MaybeBody};
use crate::http::browser::{COOKIE_NAME, NoForeignPage, RefreshCookie};
use crate::http::parameters::Path;
use crate::http::problem::Problem;
use crate::http::response::{Data, Done, Either, Header, List, data, list};
use crate::http::{Authenticated, Peer};
use axum::extract::State;
use http::header::{SET_COOKIE, USER_AGENT};
use http::{HeaderMap, HeaderValue, StatusCode};
use parlor_engine::password_errors;
use parlor_model::command::{
    self, CreateSignIn, EndOtherSignIns, EndSignIn, NewUser, RecordFailedSignIn, RefreshSignIn, Refreshed,
    SetUp,
};
use parlor_model::query::ListSignIns;
use parlor_model::{HubSettings, Principal, Refusal, SecondProof, SignIn, SignInId, SiteRole, User};
use parlor_wire::agentim::rest;
use std::sync::Arc;
use std::time::Duration;

pub type SignedIn = Result<(Header, Data<rest::SignedIn<'static>>), Problem>;

/// Response to a login: tokens with the refresh cookie, or a challenge for the second factor.
type LoginResponse = Either<(Header, Data<rest::LoginAnswer<'static>>), Data<rest::LoginAnswer<'static>>>;

pub async fn login(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    _: NoForeignPage,
    Body(body): Body<rest::Login>,
) -> Result<LoginResponse, Problem> {
    let user = verify_password(&app, peer, &body.username, &body.password).await?;
    let now = app.hub.now();
    if user.second_factor {
        let totp_token = &*app.tokens.challenge(&user.id, &user.password_hash, now);
        let challenge = rest::TotpRequired { totp_required: true, totp_token };
        return Ok(Either::That(data(rest::LoginAnswer::TotpRequired(challenge))));
    }
    let (cookie, signed_in) = sign_in(&app, &user, None, peer, &headers).await?;
    Ok(Either::This((cookie, signed_in.one_of())))
}

/// The account with this name and password. Counts a failure towards the account's lockout.
pub async fn verify_password(app: &App, peer: Peer, username: &str, password: &str) -> Result<User, Problem> {
    app.logins.check(peer.0.ip())?;
    let account = credentials::account(&app.hub, username).await?;
    let hash = account.as_ref().map(|user| &*user.password_hash);
    let verified = app.passwords.verify(password, hash).await?;
    let now = app.hub.now();
    let Some(user) = account.filter(|user| verified && !user.is_locked(now)) else {
        let account = credentials::account(&app.hub, username).await?;
        record_failed_sign_in(app, &credentials::settings(&app.hub).await?, account, false, peer).await;
        return Err(Refusal::WrongCredentials.into());
    };
    Ok(user)
}

/// Records a failed sign-in in the audit log and, if the account exists, counts it towards the account's
/// lockout.
pub async fn record_failed_sign_in(
    app: &App,
    settings: &HubSettings,
    account: Option<User>,
    second_factor: bool,
    peer: Peer,
) {
    let lockout = settings.lockout_seconds.map(|seconds| Duration::from_secs(seconds.into()));
    let failed = RecordFailedSignIn {
        user: account.map(|user| user.id),
        second_factor,
        lock_after: settings.lockout_failures.unwrap_or(app.config.lockout_failures),
        lock_until: app.hub.now().plus(lockout.unwrap_or(app.config.lockout)),
    };
    // Not awaited: the duration of the commit would reveal that the account exists.
    drop(app.hub.submit(&peer.anonymous(), failed).await);
}

pub async fn set_up(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    _: NoForeignPage,
    Body(body): Body<rest::SetUp>,
) -> SignedIn {
    app.logins.check(peer.0.ip())?;
    let password_hash = new_password(&app, &body.password).await?;
    let account = NewUser {
        username: body.username.into(),
        display_name: body.display_name,
        role: SiteRole::Admin,
        password_hash,
    };
    let command = SetUp { token: secrets::hash(&body.token), account };
    let user = app.hub.execute(&peer.anonymous(), command).await?;
    sign_in(&app, &user, None, peer, &headers).await
}

/// Checks a new password against the password rules and hashes it.
pub async fn new_password(app: &App, password: &str) -> Result<Box<str>, Problem> {
    let errors = password_errors(password);
    if !errors.is_empty() {
        return Err(Refusal::Invalid(errors).into());
    }
    Ok(app.passwords.hash(password).await?)
}

/// Creates a sign-in for an account whose password, and second factor if it has one, were verified. Returns
/// the tokens and sets the refresh cookie.
pub async fn sign_in(
    app: &App,
    user: &User,
    second: Option<SecondProof>,
    peer: Peer,
    headers: &HeaderMap,
) -> SignedIn {
    let (refresh, ttl) = (secrets::refresh_token(), app.config.refresh_token_ttl);
    let signed_in = create_sign_in(app, user, second, &refresh, ttl, peer, headers).await?;
    let access = access_token(app, &signed_in.sign_in);
    let user = (&*signed_in.user).into();
    let body = rest::SignedIn { access_token: &access, refresh_token: &refresh, user };
    Ok((cookie(app, Some(&refresh)), data(body)))
}

/// Stores a sign-in that lasts for `ttl` unless it is refreshed.
pub async fn create_sign_in(
    app: &App,
    user: &User,
    second: Option<SecondProof>,
    refresh: &str,
    ttl: Duration,
    peer: Peer,
    headers: &HeaderMap,
) -> Result<command::SignedIn, Refusal> {
    let device = headers.get(USER_AGENT).and_then(|agent| agent.to_str().ok()).unwrap_or("unknown");
    let command = CreateSignIn {
        user: user.id.clone(),
        verified_password_hash: user.password_hash.clone(),
        second,
        refresh: secrets::hash(refresh),
        device: device.chars().take(200).collect::<String>().into(),
        address: peer.0.ip().to_string().into(),
        expires_at: app.hub.now().plus(ttl),
    };
    app.hub.execute(&peer.anonymous(), command).await
}

pub fn access_token(app: &App, sign_in: &SignIn) -> String {
    app.tokens.issue(&sign_in.user, &sign_in.id, app.hub.now())
}

pub async fn refresh(
    State(app): State<Arc<App>>,
    peer: Peer,
    RefreshCookie(sent): RefreshCookie,
    MaybeBody(body): MaybeBody<rest::RefreshBody>,
) -> Result<(Header, Data<rest::Tokens<'static>>), Problem> {
    app.refreshes.check(peer.0.ip())?;
    let by_cookie = sent.is_some();
    let token = sent.or_else(|| body.and_then(|body| body.refresh_token));
    let Some(token) = token else {
        return Err(Problem::Status(StatusCode::UNAUTHORIZED, "Refresh token required"));
    };
    let next = secrets::refresh_token();
    let command = RefreshSignIn {
        token: secrets::hash(&token),
        next: secrets::hash(&next),
        expires_at: app.hub.now().plus(app.config.refresh_token_ttl),
        grace: app.config.refresh_grace,
    };
    match app.hub.execute(&peer.anonymous(), command).await? {
        Refreshed::SignedIn(command::SignedIn { sign_in, .. }) => {
            // A page that sent the cookie gets the new refresh token in the cookie only, out of reach of
            // scripts.
            let shown = (!by_cookie).then_some(&*next);
            let access = access_token(&app, &sign_in);
            let body = rest::Tokens { access_token: &access, refresh_token: shown };
            Ok((cookie(&app, Some(&next)), data(body)))
        }
        Refreshed::FamilyRevoked => Err(Refusal::TokenRevoked.into()),
    }
}

pub async fn logout(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    _: RefreshCookie,
) -> Result<(Header, Done), Problem> {
    let Principal::Person { sign_in, .. } = &caller.principal else { return Err(Refusal::Forbidden.into()) };
    app.hub.execute(&caller, EndSignIn { sign_in: sign_in.clone() }).await?;
    Ok((cookie(&app, None), Done))
}

pub async fn oauth_providers() -> List<rest::OauthProvider<'static>> {
    list([])
}

pub async fn sessions(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<List<rest::Session<'static>>, Problem> {
    let current = match &caller.principal {
        Principal::Person { sign_in, .. } => Some(sign_in),
        _ => None,
    };
    let found = app.hub.read(&caller, ListSignIns).await?;
    Ok(list(found.iter().map(|sign_in| rest::Session::new(sign_in, current))))
}

pub async fn end_other_sessions(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, EndOtherSignIns).await?;
    Ok(Done)
}

pub async fn end_session(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    let sign_in = SignInId::parse(&id).map_err(|_| Problem::not_an_id())?;
    app.hub.execute(&caller, EndSignIn { sign_in }).await?;
    Ok(Done)
}

/// Sets the refresh cookie, or clears it if `token` is `None`. Scripts cannot read the cookie, and browsers
/// send it to `/api/auth` only.
pub fn cookie(app: &App, token: Option<&str>) -> Header {
    let secure = if app.config.secure_cookies { "; Secure" } else { "" };
    let age = token.map_or(0, |_| app.config.refresh_token_ttl.as_secs());
    let token = token.unwrap_or_default();
    let cookie =
        format!("{COOKIE_NAME}={token}; Max-Age={age}; Path=/api/auth; HttpOnly; SameSite=Strict{secure}");
    [(SET_COOKIE, HeaderValue::from_str(&cookie).expect("refresh tokens contain no control characters"))]
}
