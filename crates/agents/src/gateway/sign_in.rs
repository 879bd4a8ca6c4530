//! How a gateway proves whose it is: with an API key, or with a name and a password that it renews by itself.

use super::trust::{self, Trust};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use reqwest::{Client, StatusCode};
use serde::Deserialize;
use serde_json::{Value, json};
use std::fmt;
use std::time::Duration;
use url::Url;

/// Between two renewals, at the least.
const SHORTEST: Duration = Duration::from_secs(5);
/// An answer that takes longer is none.
const HTTP_TIMEOUT: Duration = Duration::from_secs(20);
/// A sign-in lives while it is renewed; this often if the hub does not say how long a token is good.
const RENEW: Duration = Duration::from_secs(5 * 60);

#[derive(Clone)]
pub enum Credentials {
    Key(String),
    Password { user: String, password: String },
}

/// Never shows what is secret.
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
    /// The hub does not know this key, name or password.
    Wrong(String),
    /// It may be tried again.
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

    /// What to show the hub; asks it for something newer if it did not take the last one.
    pub async fn token(&mut self, refused: bool) -> Result<String, ConnectError> {
        let (user, password) = match &self.credentials {
            Credentials::Key(key) if refused => {
                let _ = key;
                return Err(ConnectError::Wrong("the hub does not take this key: was it revoked?".into()));
            }
            Credentials::Key(key) => return Ok(key.clone()),
            Credentials::Password { user, password } => (user, password),
        };
        if let Some(tokens) = self.tokens.as_ref().filter(|_| !refused) {
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
            let why = format!("{user} has a second factor: use a key (parlor join, or Settings → API keys)");
            return Err(ConnectError::Wrong(why));
        }
        let tokens: Tokens =
            serde_json::from_value(data).map_err(|_| ConnectError::NotNow("the hub answers oddly".into()))?;
        Ok(self.tokens.insert(tokens).access_token.clone())
    }

    /// When to ask for something newer, if ever: long before what there is gets too old.
    pub fn renewal(&self) -> Option<Duration> {
        match self.credentials {
            Credentials::Key(_) => None,
            Credentials::Password { .. } => {
                let good = self.tokens.as_ref().and_then(|tokens| good_for(&tokens.access_token));
                Some(good.map_or(RENEW, |good| (good / 3).clamp(SHORTEST, RENEW)))
            }
        }
    }
}

/// How long a token is good from now on: what is between its dots is its content.
fn good_for(token: &str) -> Option<Duration> {
    #[derive(Deserialize)]
    struct Claims {
        iat: u64,
        exp: u64,
    }
    let content = URL_SAFE_NO_PAD.decode(token.split('.').nth(1)?).ok()?;
    let Claims { iat, exp } = serde_json::from_slice(&content).ok()?;
    // Not by this clock, which may be another one than the hub's.
    Some(Duration::from_secs(exp.checked_sub(iat)?))
}

fn client(trust: &Trust) -> Result<Client, ConnectError> {
    let client = Client::builder().timeout(HTTP_TIMEOUT).redirect(reqwest::redirect::Policy::none());
    let config = trust.config().as_ref().clone();
    client
        .tls_backend_preconfigured(config)
        .build()
        .map_err(|error| ConnectError::NotNow(format!("no HTTP here: {error}")))
}

/// Gives a pairing code for the key it stands for.
pub async fn pair(server: &Url, trust: &Trust, code: &str, name: &str) -> Result<String, ConnectError> {
    let body = json!({ "code": code, "name": name });
    let data = post(&client(trust)?, server, "api/pairing/exchange", &body).await?;
    match data["key"].as_str() {
        Some(key) => Ok(key.to_owned()),
        None => Err(ConnectError::NotNow("the hub answers oddly".into())),
    }
}

async fn post(http: &Client, server: &Url, path: &str, body: &Value) -> Result<Value, ConnectError> {
    let url = server.join(path).map_err(|error| ConnectError::Wrong(error.to_string()))?;
    let asked = http.post(url).json(body).send().await;
    // Without the URL, which the reader knows, and without the body, which is secret.
    let answered = asked.map_err(|error| trust::failed("the hub cannot be reached", &error.without_url()))?;
    let status = answered.status();
    let answer: Value = answered.json().await.unwrap_or_default();
    if status.is_success() && answer["ok"] == true {
        return Ok(answer["data"].clone());
    }
    let said = answer["error"].as_str().map_or_else(|| format!("the hub answered {status}"), str::to_owned);
    Err(match status {
        StatusCode::TOO_MANY_REQUESTS | StatusCode::REQUEST_TIMEOUT => ConnectError::NotNow(said),
        status if status.is_client_error() => ConnectError::Wrong(said),
        _ => ConnectError::NotNow(said),
    })
}
