//! Authentication: access tokens, API keys, passwords, second factors, tickets, and rate limiting.

pub mod credentials;
mod low_priority;
pub mod origin;
pub mod passwords;
pub mod rate_limiter;
pub mod seal;
pub mod second_factor;
pub mod secrets;
pub mod tickets;
pub mod tokens;

use crate::App;
use parlor_model::{Caller, Refusal};
use std::sync::Arc;

/// Resolves a bearer token, which is an access token or an API key, to a caller. The engine checks per
/// request whether the account and the sign-in are still valid.
pub async fn caller(app: &App, token: &str) -> Result<Caller, Refusal> {
    if token.starts_with(secrets::KEY_PREFIX) {
        let key = credentials::key(&app.hub, secrets::hash(token)).await?;
        // Only the Ably protocol accepts keys with a grant.
        let key = key.filter(|key| key.grant.is_none());
        return key.map(|key| Caller::program(key.owner, key.id)).ok_or(Refusal::NotSignedIn);
    }
    let claims = app.tokens.verify(token, app.hub.now()).ok_or(Refusal::NotSignedIn)?;
    Ok(Caller::person(claims.user, claims.sign_in))
}

/// As [`caller`], and accepts the token of a program that works for an agent. Only the broker does: every other protocol
/// serves users and their programs.
pub async fn caller_or_agent(app: &App, token: &str) -> Result<Caller, Refusal> {
    match app.tokens.verify_agent(token, app.hub.now()) {
        Some(credential) => Ok(Caller::agent(Arc::new(credential))),
        None => caller(app, token).await,
    }
}
