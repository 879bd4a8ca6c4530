//! Second factor (TOTP): setup, confirmation, removal, and signing in with a code.

use super::auth::{SignedIn, record_failed_sign_in, sign_in};
use crate::App;
use crate::auth::credentials;
use crate::auth::second_factor::{backup_codes, backup_hash, uri};
use crate::http::body::Body;
use crate::http::browser::NoForeignPage;
use crate::http::problem::Problem;
use crate::http::response::{Data, Done, data};
use crate::http::{Authenticated, Peer};
use axum::extract::State;
use http::HeaderMap;
use parlor_model::command::{ConfirmSecondFactor, OfferSecondFactor, RemoveSecondFactor};
use parlor_model::query::ListSignIns;
use parlor_model::{Caller, Refusal, SecondFactor, SecondProof, User};
use parlor_wire::agentim::rest;
use std::sync::Arc;

/// Completes a sign-in: exchanges the challenge token of the login and a valid code for tokens.
pub async fn verify(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    _: NoForeignPage,
    Body(body): Body<rest::TotpLogin>,
) -> SignedIn {
    app.logins.check(peer.0.ip())?;
    let (settings, now) = (credentials::settings(&app.hub).await?, app.hub.now());
    let challenged = app.tokens.verify_challenge(&body.totp_token, now).ok_or(Refusal::WrongCredentials)?;
    let found = credentials::second_factor(&app.hub, &challenged.user).await?;
    let Some((user, factor)) = found.filter(|(user, _)| challenged.matches(&user.password_hash)) else {
        return Err(Refusal::WrongCredentials.into());
    };
    let second = factor.and_then(|factor| app.second_factors.prove(&factor, &body.code, now));
    // The write pipeline rejects a code that was used before.
    let signed_in = match second {
        Some(_) => sign_in(&app, &user, second, peer, &headers).await,
        None => Err(Refusal::WrongCredentials.into()),
    };
    if let Err(Problem::Refused(Refusal::WrongCredentials)) = &signed_in {
        record_failed_sign_in(&app, &settings, Some(user), true, peer).await;
    }
    signed_in
}

pub async fn set_up(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Data<rest::TotpSetup<'static>>, Problem> {
    let (user, _) = own(&app, &caller).await?;
    let (secret, sealed) = app.second_factors.generate(&user.id);
    app.hub.execute(&caller, OfferSecondFactor { sealed }).await?;
    let uri = uri(credentials::settings(&app.hub).await?.name(), &user.username, &secret);
    Ok(data(rest::TotpSetup { secret: &secret, uri: &uri }))
}

pub async fn confirm(
    State(app): State<Arc<App>>,
    peer: Peer,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::TotpCode>,
) -> Result<Data<rest::BackupCodes>, Problem> {
    app.logins.check(peer.0.ip())?;
    let (_, factor) = own(&app, &caller).await?;
    let proof = factor.and_then(|factor| app.second_factors.prove(&factor, &body.code, app.hub.now()));
    let Some(SecondProof::Code { sealed, step }) = proof else {
        return Err(Refusal::WrongCredentials.into());
    };
    let codes = backup_codes();
    let backup_codes = codes.iter().map(|code| backup_hash(code)).collect();
    app.hub.execute(&caller, ConfirmSecondFactor { sealed, step, backup_codes }).await?;
    Ok(data(rest::BackupCodes { backup_codes: codes }))
}

pub async fn disable(
    State(app): State<Arc<App>>,
    peer: Peer,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::PasswordProof>,
) -> Result<Done, Problem> {
    // Rate-limited like a login: with a stolen session, an attacker could guess the password here.
    app.logins.check(peer.0.ip())?;
    let (user, _) = own(&app, &caller).await?;
    if !app.passwords.verify(&body.password, Some(&user.password_hash)).await? {
        return Err(Refusal::WrongCredentials.into());
    }
    let verified_password_hash = Some(user.password_hash.clone());
    app.hub.execute(&caller, RemoveSecondFactor { user: user.id, verified_password_hash }).await?;
    Ok(Done)
}

/// Returns the caller's account and its second factor, confirmed or not. The caller must have a valid
/// sign-in.
async fn own(app: &App, caller: &Caller) -> Result<(User, Option<SecondFactor>), Refusal> {
    // Rejects API keys here, before their response could reveal whether the code or the password is correct.
    app.hub.may(caller, ListSignIns).await?;
    let user = caller.user().ok_or(Refusal::NotSignedIn)?;
    credentials::second_factor(&app.hub, user).await?.ok_or(Refusal::NotSignedIn)
}
