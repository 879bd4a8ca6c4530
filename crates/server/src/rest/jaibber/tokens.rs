//! Tokens for the Ably connection of a signed-in user.

use crate::App;
use crate::ably::credentials::token_for_person;
use crate::http::Authenticated;
use crate::http::body::IgnoredBody;
use crate::http::problem::JaibberProblem;
use crate::http::response::{BareJson, bare_json};
use axum::extract::State;
use parlor_model::query::GetMe;
use parlor_wire::ably::auth::TokenDetails;
use parlor_wire::ably::jaibber::rest;
use std::sync::Arc;

/// Returns a token for the caller's rooms. The hub decides its content, so the parameters are ignored.
pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    _: IgnoredBody<rest::TokenParameters>,
) -> Result<BareJson<TokenDetails>, JaibberProblem> {
    // Refuses API keys without the scope to read, because a token would reveal rooms.
    app.hub.may(&caller, GetMe).await?;
    Ok(bare_json(token_for_person(&app, &caller).await?))
}
