//! A second factor: turning it on and off, and signing in with it.

use super::auth::{SignedIn, failed, sign_in};
use crate::App;
use crate::auth::second_factor::{backup_codes, backup_hash, uri};
use crate::http::body::Body;
use crate::http::browser::NoForeignPage;
use crate::http::problem::Problem;
use crate::http::response::{Data, Done, data};
use crate::http::{Authenticated, Peer};
use axum::extract::State;
use http::HeaderMap;
use parlor_model::{Caller, Command, Query, Refusal, SecondFactor, SecondProof, User};
use parlor_wire::agentim::rest;
use std::sync::Arc;

/// Answers a challenge of the sign-in.
pub async fn verify(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    _: NoForeignPage,
    Body(body): Body<rest::TotpLogin>,
) -> SignedIn {
    app.logins.check(peer.0.ip())?;
    let (settings, now) = (app.hub.settings().await?, app.hub.now());
    let challenged = app.tokens.challenged(&body.totp_token, now).ok_or(Refusal::WrongCredentials)?;
    let found = app.hub.second_factor(&challenged.user).await?;
    let Some((user, factor)) = found.filter(|(user, _)| challenged.is_of(&user.password_hash)) else {
        return Err(Refusal::WrongCredentials.into());
    };
    let second = factor.and_then(|factor| app.second_factors.prove(&factor, &body.code, now));
    // Whether it was used before is for the writer to say.
    let signed_in = match second {
        Some(_) => sign_in(&app, &user, second, peer, &headers).await,
        None => Err(Refusal::WrongCredentials.into()),
    };
    if let Err(Problem::Refused(Refusal::WrongCredentials)) = &signed_in {
        failed(&app, &settings, Some(user), true, peer).await;
    }
    signed_in
}

pub async fn set_up(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Data<rest::TotpSetup<'static>>, Problem> {
    let (user, _) = own(&app, &caller).await?;
    let (secret, sealed) = app.second_factors.make(&user.id);
    app.hub.execute(&caller, Command::OfferSecondFactor { sealed }).await?;
    let uri = uri(app.hub.settings().await?.name(), &user.username, &secret);
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
    let shown = factor.and_then(|factor| app.second_factors.prove(&factor, &body.code, app.hub.now()));
    let Some(SecondProof::Code { sealed, step }) = shown else {
        return Err(Refusal::WrongCredentials.into());
    };
    let codes = backup_codes();
    let backup_codes = codes.iter().map(|code| backup_hash(code)).collect();
    app.hub.execute(&caller, Command::ConfirmSecondFactor { sealed, step, backup_codes }).await?;
    Ok(data(rest::BackupCodes { backup_codes: codes }))
}

pub async fn disable(
    State(app): State<Arc<App>>,
    peer: Peer,
    Authenticated(caller): Authenticated,
    Body(body): Body<rest::PasswordProof>,
) -> Result<Done, Problem> {
    // Whoever took a session over could guess the password here as well as at the sign-in.
    app.logins.check(peer.0.ip())?;
    let (user, _) = own(&app, &caller).await?;
    if !app.passwords.verify(&body.password, Some(&user.password_hash)).await? {
        return Err(Refusal::WrongCredentials.into());
    }
    let proven = Some(user.password_hash.clone());
    app.hub
        .execute(&caller, Command::DropSecondFactor { user: user.id, verified_password_hash: proven })
        .await?;
    Ok(Done)
}

/// The account of a person whose sign-in still stands, and what second factor it has or was offered.
async fn own(app: &App, caller: &Caller) -> Result<(User, Option<SecondFactor>), Refusal> {
    // A program is told that it may not, and not whether the code or the password was right.
    app.hub.may(caller, Query::SignIns).await?;
    let user = caller.user().ok_or(Refusal::NotSignedIn)?;
    app.hub.second_factor(user).await?.ok_or(Refusal::NotSignedIn)
}
