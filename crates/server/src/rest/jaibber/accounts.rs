//! Sign-in of clients that cannot refresh a token, and the caller's account.

use crate::App;
use crate::auth::secrets;
use crate::http::body::Body;
use crate::http::problem::JaibberProblem;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, bare_json};
use crate::http::{Authenticated, Peer};
use crate::rest::auth::{create_sign_in, verify_password};
use axum::extract::State;
use http::{HeaderMap, StatusCode};
use parlor_model::SignIn;
use parlor_model::query::GetMe;
use parlor_wire::ably::jaibber::rest;
use std::sync::Arc;
use std::time::Duration;

/// Lifetime of a token that cannot be refreshed.
const LASTING: Duration = Duration::from_secs(7 * 86_400);

/// Creates a sign-in of seven days. It is listed with the other sign-ins of the account and ends with them.
pub async fn token(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    Body(body): Body<rest::Credentials>,
) -> Result<BareJson<rest::SignedIn<'static>>, JaibberProblem> {
    let user = verify_password(&app, peer, &body.username, &body.password).await?;
    if user.second_factor {
        let sentence = "This account has a second factor; use an API key instead of the password";
        return Err(Problem::Status(StatusCode::FORBIDDEN, sentence).into());
    }
    // The client does not receive the refresh token, so the sign-in ends after `LASTING`.
    let refresh = secrets::refresh_token();
    let signed_in = create_sign_in(&app, &user, None, &refresh, LASTING, peer, &headers).await?;
    let token = lasting_token(&app, &signed_in.sign_in);
    let (user_id, username) = (signed_in.user.id.as_str(), &*signed_in.user.username);
    Ok(bare_json(rest::SignedIn { token: &token, user_id, username }))
}

/// Issues an access token that expires with the sign-in, after at most seven days.
pub fn lasting_token(app: &App, sign_in: &SignIn) -> String {
    let now = app.hub.now();
    app.tokens.issue_until(&sign_in.user, &sign_in.id, now, sign_in.expires_at.min(now.plus(LASTING)))
}

pub async fn me(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<BareJson<rest::Me<'static>>, JaibberProblem> {
    let user = app.hub.read(&caller, GetMe).await?;
    Ok(bare_json(rest::Me { user_id: user.id.as_str(), username: &user.username }))
}
