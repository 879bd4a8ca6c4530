//! Pairing: a user types a short-lived code on another machine, which exchanges it for an API key to host
//! agents.

use super::invitations::address;
use crate::App;
use crate::auth::secrets;
use crate::http::body::Body;
use crate::http::browser::NoForeignPage;
use crate::http::problem::Problem;
use crate::http::response::{Created, created};
use crate::http::{Authenticated, Peer};
use axum::extract::State;
use http::HeaderMap;
use parlor_model::command::{OfferPairing, RedeemPairingCode};
use parlor_wire::agentim::rest;
use parlor_wire::time::iso;
use std::sync::Arc;
use std::time::Duration;

/// Lifetime of a pairing code.
const CODE_TTL: Duration = Duration::from_secs(10 * 60);

pub async fn offer(
    State(app): State<Arc<App>>,
    headers: HeaderMap,
    Authenticated(caller): Authenticated,
) -> Result<Created<rest::PairingCode<'static>>, Problem> {
    let code = secrets::pairing_code();
    let expires_at = app.hub.now().plus(CODE_TTL);
    let offer = OfferPairing { code: secrets::typed_code(&code), expires_at };
    app.hub.execute(&caller, offer).await?;
    let command = format!("parlor join {code} --server {}", address(&app, &headers));
    Ok(created(rest::PairingCode { code: &code, expires_at: iso(expires_at), command: &command }))
}

pub async fn exchange(
    State(app): State<Arc<App>>,
    peer: Peer,
    _: NoForeignPage,
    Body(body): Body<rest::PairingExchange>,
) -> Result<Created<rest::CreatedKey<'static>>, Problem> {
    // Rate-limited like a login, so that codes cannot be guessed.
    app.logins.check(peer.0.ip())?;
    let key = secrets::api_key();
    let name = body.name.filter(|name| !name.trim().is_empty()).unwrap_or_else(|| "gateway".into());
    let (code, secret) = (secrets::typed_code(&body.code), secrets::hash(&key));
    let paired = app.hub.execute(&peer.anonymous(), RedeemPairingCode { code, name, secret }).await?;
    Ok(created(rest::CreatedKey { about: (&*paired).into(), key: &key }))
}
