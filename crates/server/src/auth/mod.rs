//! Who is calling: tokens, keys, passwords, and how often one may try.

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

/// Turns a bearer token into a caller. Whether the account behind it still stands is asked by the engine.
pub async fn caller(app: &App, token: &str) -> Result<Caller, Refusal> {
    if token.starts_with(secrets::KEY_PREFIX) {
        let key = app.hub.key(secrets::hash(token)).await?;
        return key.map(|key| Caller::program(key.owner, key.id)).ok_or(Refusal::NotSignedIn);
    }
    let claims = app.tokens.verify(token, app.hub.now()).ok_or(Refusal::NotSignedIn)?;
    Ok(Caller::person(claims.user, claims.sign_in))
}
