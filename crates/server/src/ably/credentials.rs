//! Credentials of Ably clients: keys, tokens of the hub and JWTs.
//!
//! Owns: which caller and which capability a credential proves. The engine decides about permissions, by the grants of
//! the caller and its key.

use super::jaibber::DerivedIds;
use super::nonces::Nonces;
use super::signing_keys::{self, SigningKeys};
use super::tokens::{AblyTokens, Claims, Issuer};
use crate::App;
use crate::auth::credentials;
use axum::http::HeaderMap;
use axum::http::header::AUTHORIZATION;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use parlor_model::query::GetAuthContext;
use parlor_model::{ApiKey, Caller, KeyId, Refusal, SigningKey, Time};
use parlor_wire::ably::auth::{self, Credential, DEFAULT_TTL, Identity, Jwt, Key, KeyName, TokenDetails};
use parlor_wire::ably::capability::Capability;
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::serial::ConnectionSecret;
use std::net::IpAddr;
use std::sync::Arc;

/// Capability of the token that a signed-in user gets: the channels of all rooms, and the global presence. It permits no
/// publication on paths.
const PERSON_CAPABILITY: &str =
    r#"{"jaibber:presence":["channel-metadata","history","presence","subscribe"],"jaibber:project:*":["*"]}"#;

/// Secrets that are derived from the hub's secret, and the nonces of used token requests.
pub struct AblySecrets {
    connections: ConnectionSecret,
    pub(super) keys: SigningKeys,
    pub(super) tokens: AblyTokens,
    pub(super) nonces: Nonces,
    pub(super) agent_ids: DerivedIds,
}

impl AblySecrets {
    pub fn new(hub_secret: &[u8], hub_started: Time) -> Self {
        Self {
            connections: ConnectionSecret::new(hub_secret),
            keys: SigningKeys::new(hub_secret),
            tokens: AblyTokens::new(hub_secret),
            nonces: Nonces::new(hub_started),
            agent_ids: DerivedIds::new(hub_secret),
        }
    }

    /// Generates and verifies keys.
    pub fn keys(&self) -> &SigningKeys {
        &self.keys
    }
}

/// Caller of a connection or request, with the capability of its credential.
pub struct AblyCaller {
    /// Caller, limited by the grant of a token. The grant of a key is stored with the key.
    pub caller: Caller,
    pub capability: Capability,
    pub identity: Identity,
    /// Expiry of the token; `None` for a key.
    pub expires_at: Option<Time>,
    /// Whether the credential is a token, which the client can renew.
    pub is_token: bool,
}

/// Verifies the credential in the URL of a connection, or in its AUTH frame.
pub async fn of_connection(
    app: &App,
    key: Option<&str>,
    token: Option<&str>,
    client_id: Option<&str>,
    address: IpAddr,
) -> Result<AblyCaller, ErrorInfo> {
    match (key, token) {
        (_, Some(token)) => of_token(app, token, client_id, address).await,
        (Some(key), None) => of_key(app, key, client_id, address).await,
        (None, None) => Err(ErrorInfo::new(codes::NO_CREDENTIALS, "No authentication information provided")),
    }
}

/// Verifies the credential of a request: the header `Authorization`, or the parameters `key` and `access_token`.
pub async fn of_request(
    app: &App,
    headers: &HeaderMap,
    query: &[(String, String)],
    address: IpAddr,
) -> Result<AblyCaller, ErrorInfo> {
    let given = |names: &[&str]| {
        let found = query.iter().find(|(name, _)| names.contains(&&**name));
        found.map(|(_, value)| &**value)
    };
    let header = client_id_header(headers)?;
    let client_id = header.as_deref().or(given(&["clientId"]));
    let Some(value) = headers.get(AUTHORIZATION) else {
        let (key, token) = (given(&["key"]), given(&["access_token", "accessToken"]));
        return of_connection(app, key, token, client_id, address).await;
    };
    let malformed = || ErrorInfo::new(codes::INVALID_CREDENTIAL, "Authorization header is malformed");
    match auth::authorization(value.to_str().map_err(|_| malformed())?)? {
        Credential::Key(key) => of_key(app, &key, client_id, address).await,
        Credential::Token(token) => of_token(app, &token, client_id, address).await,
    }
}

/// Client id in the header `X-Ably-ClientId`, in base64.
fn client_id_header(headers: &HeaderMap) -> Result<Option<String>, ErrorInfo> {
    let Some(value) = headers.get("x-ably-clientid") else { return Ok(None) };
    let id = BASE64_STANDARD.decode(value.as_bytes()).ok().and_then(|id| String::from_utf8(id).ok());
    let invalid = || ErrorInfo::new(codes::INVALID_CLIENT_ID, "X-Ably-ClientId is malformed");
    id.map(Some).ok_or_else(invalid)
}

async fn of_key(
    app: &App,
    text: &str,
    client_id: Option<&str>,
    address: IpAddr,
) -> Result<AblyCaller, ErrorInfo> {
    let name = Key::parse(text)?.name;
    let id = signing_keys::id_of(&name).ok_or_else(unknown_key)?;
    // Looks up the hash of the whole text, so that the duration does not reveal how much of a guessed secret is right.
    let found = credentials::key(&app.hub, signing_keys::hash(text)).await.map_err(refused)?;
    let key = found.filter(|key| key.id == id).ok_or_else(unknown_key)?;
    let capability = capability_of(&key)?;
    let identity = Identity::with_key(client_id)?;
    let caller = Caller::program(key.owner, key.id).at(address);
    // Fails if the owner of the key is no longer a site admin.
    app.hub.read(&caller, GetAuthContext).await.map_err(|refusal| gone(&refusal, unknown_key()))?;
    Ok(AblyCaller { caller, capability, identity, expires_at: None, is_token: false })
}

async fn of_token(
    app: &App,
    token: &str,
    client_id: Option<&str>,
    address: IpAddr,
) -> Result<AblyCaller, ErrorInfo> {
    let now = app.hub.now();
    let (caller, capability, granted, expires_at) = if Jwt::is_jwt(token) {
        let jwt = Jwt::parse(token)?;
        let (key, secret) = signing_key(app, &jwt.key).await?;
        let claims = jwt.verify(&secret, now)?;
        let of_key = capability_of(&key.key)?;
        let capability = match &claims.capability {
            Some(requested) => of_key.intersection(requested)?,
            None => of_key,
        };
        let properties = Properties {
            capability: &capability,
            client_id: claims.client_id.as_deref(),
            revocation_key: claims.revocation_key.as_deref(),
            issued_at: claims.issued_at,
        };
        properties.check(&key)?;
        let caller = Caller::program(key.key.owner, key.key.id);
        (caller, capability, claims.client_id, claims.expires_at)
    } else {
        let claims = app.ably.tokens.verify(token, now)?;
        let capability = Capability::parse(&claims.capability)?;
        let caller = issuer(app, &claims, &capability).await?;
        (caller, capability, claims.client_id, claims.expires_at)
    };
    let identity = Identity::with_token(granted.as_deref(), client_id)?;
    let caller = caller.limited(Arc::new(capability.grant())).at(address);
    let revoked = ErrorInfo::new(codes::TOKEN_REVOKED, "The credential of the token has ended");
    app.hub.read(&caller, GetAuthContext).await.map_err(|refusal| gone(&refusal, revoked))?;
    Ok(AblyCaller { caller, capability, identity, expires_at: Some(expires_at), is_token: true })
}

/// The caller to which the hub issued a token.
async fn issuer(app: &App, claims: &Claims, capability: &Capability) -> Result<Caller, ErrorInfo> {
    Ok(match &claims.issuer {
        Issuer::SignIn(user, sign_in) => Caller::person(user.clone(), sign_in.clone()),
        Issuer::ApiKey(user, key) => Caller::program(user.clone(), key.clone()),
        Issuer::Key(id) => {
            let found = credentials::signing_key(&app.hub, id).await.map_err(refused)?;
            let key = found.ok_or_else(unknown_key)?;
            let properties = Properties {
                capability,
                client_id: claims.client_id.as_deref(),
                revocation_key: None,
                issued_at: claims.issued_at,
            };
            properties.check(&key)?;
            Caller::program(key.key.owner, key.key.id)
        }
    })
}

/// Properties of a token that the target of a revocation can name.
struct Properties<'a> {
    capability: &'a Capability,
    client_id: Option<&'a str>,
    revocation_key: Option<&'a str>,
    issued_at: Time,
}

impl Properties<'_> {
    /// Requires that no revocation of the key matches the token.
    fn check(&self, key: &SigningKey) -> Result<(), ErrorInfo> {
        let names = |target: &str| match target.split_once(':') {
            Some(("clientId", id)) => self.client_id == Some(id),
            Some(("revocationKey", name)) => self.revocation_key == Some(name),
            Some(("channel", name)) => self.capability.names(name),
            _ => false,
        };
        let mut revocations = key.revocations.iter();
        if revocations.any(|revoked| self.issued_at < revoked.issued_before && names(&revoked.target)) {
            return Err(ErrorInfo::new(codes::TOKEN_REVOKED, "Token is revoked"));
        }
        Ok(())
    }
}

/// Capability of a stored key. An ordinary API key is no key of this protocol.
pub(super) fn capability_of(key: &ApiKey) -> Result<Capability, ErrorInfo> {
    let grant = key.grant.as_ref().ok_or_else(unknown_key)?;
    Capability::parse(&grant.notation)
}

/// The key with this name, and its secret.
pub(super) async fn signing_key(app: &App, name: &KeyName) -> Result<(SigningKey, String), ErrorInfo> {
    let unknown_app = || ErrorInfo::new(codes::NOT_FOUND, format!("No application with id {}", name.app()));
    let id = signing_keys::id_of(name).ok_or_else(unknown_app)?;
    let key = credentials::signing_key(&app.hub, &id).await.map_err(refused)?.ok_or_else(unknown_key)?;
    let secret = app.ably.keys.secret(&key);
    if secret.is_none() {
        tracing::warn!(key = %key.key.id, "the secret of an Ably key was encrypted with another token secret");
    }
    Ok((key, secret.ok_or_else(unknown_key)?))
}

pub(super) fn unknown_key() -> ErrorInfo {
    ErrorInfo::new(codes::WRONG_CREDENTIALS, "Invalid credentials")
}

fn refused(refusal: Refusal) -> ErrorInfo {
    codes::error(&refusal)
}

/// Error of a credential whose account, sign-in or key no longer exists.
fn gone(refusal: &Refusal, error: ErrorInfo) -> ErrorInfo {
    if *refusal == Refusal::NotSignedIn { error } else { codes::error(refusal) }
}

/// Issues a token of a key and returns its details for the client.
pub(super) fn issue_for_key(app: &App, key: &KeyId, grant: auth::Grant) -> TokenDetails {
    let issued_at = app.hub.now();
    let claims = Claims {
        issuer: Issuer::Key(key.clone()),
        capability: grant.capability.canonical().into(),
        client_id: grant.client_id,
        issued_at,
        expires_at: issued_at.plus(grant.ttl),
    };
    details(app, claims, signing_keys::name_of(key))
}

/// Issues a token for the rooms of a signed-in user, or of the owner of an API key with scopes. It ends with the
/// sign-in or key.
pub async fn token_for_person(app: &App, caller: &Caller) -> Result<TokenDetails, Refusal> {
    let auth = app.hub.read(caller, GetAuthContext).await?;
    let issuer = Issuer::of(caller).filter(|_| !auth.is_limited()).ok_or(Refusal::Forbidden)?;
    let issued_at = app.hub.now();
    let claims = Claims {
        issuer,
        capability: PERSON_CAPABILITY.into(),
        client_id: Some(auth.user.id.as_str().into()),
        issued_at,
        expires_at: issued_at.plus(DEFAULT_TTL),
    };
    Ok(details(app, claims, format!("{}.rooms", signing_keys::APP)))
}

fn details(app: &App, claims: Claims, key_name: String) -> TokenDetails {
    TokenDetails {
        token: app.ably.tokens.issue(&claims),
        key_name,
        issued: claims.issued_at.millis(),
        expires: claims.expires_at.millis(),
        capability: claims.capability.into(),
        client_id: claims.client_id.map(Into::into),
    }
}

/// Secret that signs the keys of connections.
pub fn connection_secret(app: &App) -> &ConnectionSecret {
    &app.ably.connections
}
