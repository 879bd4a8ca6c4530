//! Credentials of a gateway: an API key, or a user name and password with tokens that are renewed
//! automatically.

use super::trust::{self, Trust};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use url::Url;

/// Minimum interval between two renewals.
const MIN_RENEWAL_INTERVAL: Duration = Duration::from_secs(5);
/// Timeout for an HTTP request to the hub.
const HTTP_TIMEOUT: Duration = Duration::from_secs(20);
/// Maximum interval between two renewals; also used if the lifetime of a token is unknown.
const MAX_RENEWAL_INTERVAL: Duration = Duration::from_secs(5 * 60);

#[derive(Clone)]
pub enum Credentials {
    Key(String),
    Password { user: String, password: String },
}

/// Hides the key and the password.
impl fmt::Debug for Credentials {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Key(_) => f.write_str("Key(…)"),
            Self::Password { user, .. } => write!(f, "Password({user})"),
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ConnectError {
    /// Permanent: the hub rejected the credentials or the request, or its certificate is not trusted.
    Wrong(String),
    /// Transient: the attempt can be repeated.
    NotNow(String),
}

impl fmt::Display for ConnectError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wrong(why) | Self::NotNow(why) => f.write_str(why),
        }
    }
}

pub struct SignIn {
    http: Client,
    trust: Trust,
    server: Url,
    credentials: Credentials,
    tokens: Option<Tokens>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Tokens {
    access_token: String,
    refresh_token: String,
}

impl SignIn {
    pub fn new(server: Url, trust: Trust, credentials: Credentials) -> Result<Self, ConnectError> {
        Ok(Self { http: client(&trust)?, trust, server, credentials, tokens: None })
    }

    pub fn trust(&self) -> &Trust {
        &self.trust
    }

    /// Returns a token for the hub. Requests a new one if `rejected` is set: the hub did not accept the
    /// last one.
    pub async fn token(&mut self, rejected: bool) -> Result<String, ConnectError> {
        let (user, password) = match &self.credentials {
            Credentials::Key(key) if rejected => {
                let _ = key;
                return Err(ConnectError::Wrong("the hub does not accept this key: was it revoked?".into()));
            }
            Credentials::Key(key) => return Ok(key.clone()),
            Credentials::Password { user, password } => (user, password),
        };
        if let Some(tokens) = self.tokens.as_ref().filter(|_| !rejected) {
            return Ok(tokens.access_token.clone());
        }
        let renewed = match self.tokens.take() {
            Some(tokens) => {
                let body = json!({ "refreshToken": tokens.refresh_token });
                post(&self.http, &self.server, "api/auth/refresh", &body).await
            }
            None => Err(ConnectError::Wrong(String::new())),
        };
        let data = match renewed {
            Ok(data) => data,
            Err(ConnectError::NotNow(why)) => return Err(ConnectError::NotNow(why)),
            Err(ConnectError::Wrong(_)) => {
                let body = json!({ "username": user, "password": password });
                post(&self.http, &self.server, "api/auth/login", &body).await?
            }
        };
        if data["totpRequired"] == true {
            let why =
                format!("{user} has a second factor: use an API key (parlor join, or Settings → API keys)");
            return Err(ConnectError::Wrong(why));
        }
        let tokens: Tokens = serde_json::from_value(data)
            .map_err(|_| ConnectError::NotNow("the hub sent an unexpected answer".into()))?;
        Ok(self.tokens.insert(tokens).access_token.clone())
    }

    /// Time until the next renewal, a third of the token's lifetime; `None` for an API key.
    pub fn renewal(&self) -> Option<Duration> {
        match self.credentials {
            Credentials::Key(_) => None,
            Credentials::Password { .. } => {
                let lifetime = self.tokens.as_ref().and_then(|tokens| token_lifetime(&tokens.access_token));
                Some(lifetime.map_or(MAX_RENEWAL_INTERVAL, |lifetime| {
                    (lifetime / 3).clamp(MIN_RENEWAL_INTERVAL, MAX_RENEWAL_INTERVAL)
                }))
            }
        }
    }
}

/// Lifetime of a fresh token, from the claims in its payload.
fn token_lifetime(token: &str) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Claims {
        iat: u64,
        exp: u64,
    }
    let content = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let Claims { iat, exp } = serde_json::from_slice(&content).ok()?;
    // The difference of the hub's own times; the clock of this machine may be wrong.
    Some(Duration::from_secs(exp.checked_sub(iat)?))
}

fn client(trust: &Trust) -> Result<Client, ConnectError> {
    let client = Client::builder().timeout(HTTP_TIMEOUT).redirect(reqwest::redirect::Policy::none());
    let config = trust.config().as_ref().clone();
    client
        .tls_backend_preconfigured(config)
        .build()
        .map_err(|error| ConnectError::NotNow(format!("cannot create an HTTP client: {error}")))
}

/// Exchanges a pairing code for an API key.
pub async fn pair(server: &Url, trust: &Trust, code: &str, name: &str) -> Result<String, ConnectError> {
    let body = json!({ "code": code, "name": name });
    let data = post(&client(trust)?, server, "api/pairing/exchange", &body).await?;
    match data["key"].as_str() {
        Some(key) => Ok(key.to_owned()),
        None => Err(ConnectError::NotNow("the hub sent an unexpected answer".into())),
    }
}

async fn post(http: &Client, server: &Url, path: &str, body: &Value) -> Result<Value, ConnectError> {
    let url = server.join(path).map_err(|error| ConnectError::Wrong(error.to_string()))?;
    let sent = http.post(url).json(body).send().await;
    // The URL is left out because the user knows it; the body is secret.
    let response = sent.map_err(|error| trust::failed("the hub cannot be reached", &error.without_url()))?;
    let status = response.status();
    let answer: Value = response.json().await.unwrap_or_default();
    if status.is_success() && answer["ok"] == true {
        return Ok(answer["data"].clone());
    }
    let message = answer["error"]
        .as_str()
        .map_or_else(|| format!("the hub answered with status {status}"), str::to_owned);
    Err(match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => ConnectError::NotNow(message),
        status if status.is_client_error() => ConnectError::Wrong(message),
        _ => ConnectError::NotNow(message),
    })
}
