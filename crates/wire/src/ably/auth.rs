//! Keys, token requests, JWTs, and the rules about client ids.

use super::capability::Capability;
use super::codes::{self, ErrorInfo};
use super::data::BASE64;
use crate::json::{self, JsonLimits};
use base64::Engine;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use hmac::{Hmac, KeyInit, Mac};
use parlor_model::Time;
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::time::Duration;
use utoipa::ToSchema;

/// Maximum and default life of a token.
pub const MAX_TTL: Duration = Duration::from_secs(24 * 3600);
pub const DEFAULT_TTL: Duration = Duration::from_secs(3600);
const MAX_TOKEN_BYTES: usize = 128 * 1024;

/// Name of a key: `<app>.<key>`.
#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct KeyName(Box<str>);

impl KeyName {
    pub fn parse(text: &str) -> Option<Self> {
        let part = |part: &str| {
            (1..=64).contains(&part.len())
                && part.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
        };
        let (app, key) = text.split_once('.')?;
        (part(app) && part(key)).then(|| Self(text.into()))
    }

    pub fn as_str(&self) -> &str {
        &self.0
    }

    pub fn app(&self) -> &str {
        self.0.split_once('.').map_or(&self.0, |(app, _)| app)
    }
}

/// A key with its secret: `<app>.<key>:<secret>`.
pub struct Key {
    pub name: KeyName,
    pub secret: Box<str>,
}

impl Key {
    pub fn parse(text: &str) -> Result<Self, ErrorInfo> {
        let parsed = || {
            let (name, secret) = text.split_once(':')?;
            let valid = (1..=256).contains(&secret.len()) && !secret.chars().any(char::is_control);
            valid.then_some(())?;
            Some(Self { name: KeyName::parse(name)?, secret: secret.into() })
        };
        parsed().ok_or_else(|| {
            ErrorInfo::new(codes::INVALID_CREDENTIAL, "Key does not have the form app.key:secret")
        })
    }
}

/// Credential of a REST request.
#[derive(PartialEq, Eq)]
pub enum Credential {
    Key(Box<str>),
    Token(Box<str>),
}

/// Parses the header `Authorization`. The client library sends tokens in base64; other programs send them as they
/// are.
pub fn authorization(header: &str) -> Result<Credential, ErrorInfo> {
    let error = || ErrorInfo::new(codes::INVALID_CREDENTIAL, "Authorization header is malformed");
    let (scheme, value) = header.split_once(' ').ok_or_else(error)?;
    let decoded = BASE64.decode(value.trim()).ok().and_then(|bytes| String::from_utf8(bytes).ok());
    if scheme.eq_ignore_ascii_case("basic") {
        return decoded.map(|key| Credential::Key(key.into())).ok_or_else(error);
    }
    if scheme.eq_ignore_ascii_case("bearer") {
        let is_token = |text: &String| text.contains('.') && text.bytes().all(|b| b.is_ascii_graphic());
        return Ok(Credential::Token(
            decoded.filter(is_token).map_or_else(|| value.trim().into(), Into::into),
        ));
    }
    Err(error())
}

/// Request for a token, signed with the secret of a key.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenRequest {
    pub key_name: String,
    /// Milliseconds.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub ttl: Option<i64>,
    /// JSON text of a capability.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capability: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
    /// Milliseconds since 1970-01-01 UTC.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub timestamp: Option<i64>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub nonce: Option<String>,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub mac: Option<String>,
}

/// A token that the hub grants. The caller must still reject a repeated nonce of a signed request.
#[derive(Debug, PartialEq)]
pub struct Grant {
    pub ttl: Duration,
    pub capability: Capability,
    pub client_id: Option<Box<str>>,
}

impl TokenRequest {
    /// Text that the MAC covers: one line per field, empty lines for absent fields.
    fn signed_text(&self) -> String {
        let number = |value: Option<i64>| value.map_or_else(String::new, |value| value.to_string());
        let text = |value: &Option<String>| value.clone().unwrap_or_default();
        let lines = [
            self.key_name.clone(),
            number(self.ttl),
            text(&self.capability),
            text(&self.client_id),
            number(self.timestamp),
            text(&self.nonce),
        ];
        lines.map(|line| line + "\n").concat()
    }

    pub fn sign(&self, secret: &str) -> String {
        BASE64.encode(mac(secret, self.signed_text().as_bytes()).finalize().into_bytes())
    }

    /// Checks the MAC and that the timestamp is within `window` of `now`.
    pub fn verify(&self, secret: &str, now: Time, window: Duration) -> Result<(), ErrorInfo> {
        let wrong = || ErrorInfo::new(codes::WRONG_CREDENTIALS, "Token request has a wrong MAC");
        let tag = self.mac.as_deref().and_then(|mac| BASE64.decode(mac).ok()).ok_or_else(wrong)?;
        mac(secret, self.signed_text().as_bytes()).verify_slice(&tag).map_err(|_| wrong())?;
        let timestamp = self
            .timestamp
            .ok_or_else(|| ErrorInfo::new(codes::INVALID_PARAMETER, "Token request has no timestamp"))?;
        if timestamp.abs_diff(now.millis()) > window.as_millis() as u64 {
            return Err(ErrorInfo::new(
                codes::TIMESTAMP_OUT_OF_RANGE,
                "Timestamp of the token request is out of range",
            ));
        }
        match self.nonce.as_deref() {
            Some(nonce) if (16..=128).contains(&nonce.len()) => Ok(()),
            _ => Err(ErrorInfo::new(
                codes::INVALID_PARAMETER,
                "Token request needs a nonce of 16 to 128 bytes",
            )),
        }
    }

    /// Returns the token to grant with a key that permits `key`.
    pub fn grant(&self, key: &Capability) -> Result<Grant, ErrorInfo> {
        let ttl = match self.ttl {
            None => DEFAULT_TTL,
            Some(ttl) => match u64::try_from(ttl).map(Duration::from_millis) {
                Ok(ttl) if !ttl.is_zero() && ttl <= MAX_TTL => ttl,
                _ => {
                    return Err(ErrorInfo::new(
                        codes::INVALID_PARAMETER,
                        "ttl must be between 1 ms and 24 hours",
                    ));
                }
            },
        };
        let capability = match self.capability.as_deref().filter(|text| !text.is_empty()) {
            None => key.clone(),
            Some(text) => key.intersection(&Capability::parse(text)?)?,
        };
        let client_id = self.client_id.as_deref().filter(|id| !id.is_empty());
        if let Some(id) = client_id.filter(|id| *id != "*") {
            check_client_id(id)?;
        }
        Ok(Grant { ttl, capability, client_id: client_id.map(Into::into) })
    }
}

fn mac(secret: &str, text: &[u8]) -> Hmac<Sha256> {
    let mac = <Hmac<Sha256> as KeyInit>::new_from_slice(secret.as_bytes());
    mac.expect("HMAC takes keys of any length").chain_update(text)
}

/// A token, as `requestToken` and `/api/ably/token` return it.
#[derive(Clone, PartialEq, Serialize, Deserialize, ToSchema)]
#[serde(rename_all = "camelCase")]
pub struct TokenDetails {
    pub token: String,
    pub key_name: String,
    /// Milliseconds since 1970-01-01 UTC.
    pub issued: i64,
    pub expires: i64,
    /// Canonical JSON text of the capability.
    pub capability: String,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<String>,
}

/// A JWT whose signature is not yet verified.
pub struct Jwt<'a> {
    pub key: KeyName,
    signed: &'a str,
    claims: &'a str,
    signature: Vec<u8>,
}

/// Verified claims of a JWT.
#[derive(Debug, PartialEq)]
pub struct Claims {
    pub capability: Option<Capability>,
    pub client_id: Option<Box<str>>,
    pub issued_at: Time,
    pub expires_at: Time,
    pub revocation_key: Option<Box<str>>,
}

impl<'a> Jwt<'a> {
    /// Returns whether a token has the form of a JWT. Tokens of the hub have one dot.
    pub fn is_jwt(token: &str) -> bool {
        token.bytes().filter(|b| *b == b'.').count() == 2
    }

    pub fn parse(token: &'a str) -> Result<Self, ErrorInfo> {
        #[derive(Deserialize)]
        struct Header {
            alg: String,
            kid: String,
        }
        let (signed, signature) = token.rsplit_once('.').ok_or_else(bad_jwt)?;
        let (header, claims) = signed.split_once('.').ok_or_else(bad_jwt)?;
        let header: Header = decode_part(header)?;
        // Other algorithms, above all `none`, would let the client choose how it is verified.
        if header.alg != "HS256" || token.len() > MAX_TOKEN_BYTES {
            return Err(bad_jwt());
        }
        let key = KeyName::parse(&header.kid).ok_or_else(bad_jwt)?;
        let signature = URL_SAFE_NO_PAD.decode(signature).map_err(|_| bad_jwt())?;
        Ok(Self { key, signed, claims, signature })
    }

    pub fn verify(&self, secret: &str, now: Time) -> Result<Claims, ErrorInfo> {
        #[derive(Deserialize)]
        struct Given {
            iat: f64,
            exp: f64,
            #[serde(rename = "x-ably-capability")]
            capability: Option<String>,
            #[serde(rename = "x-ably-clientId")]
            client_id: Option<String>,
            #[serde(rename = "x-ably-revocation-key")]
            revocation_key: Option<String>,
        }
        mac(secret, self.signed.as_bytes()).verify_slice(&self.signature).map_err(|_| bad_jwt())?;
        let given: Given = decode_part(self.claims)?;
        // Casting saturates, so that absurd numbers become the first or last time.
        let time = |seconds: f64| Time((seconds * 1e6) as i64);
        let claims = Claims {
            capability: given.capability.as_deref().map(Capability::parse).transpose()?,
            client_id: given.client_id.map(Into::into),
            issued_at: time(given.iat),
            expires_at: time(given.exp),
            revocation_key: given.revocation_key.map(Into::into),
        };
        if claims.expires_at <= now {
            return Err(ErrorInfo::new(codes::TOKEN_EXPIRED, "Token has expired"));
        }
        if claims.expires_at > claims.issued_at.plus(MAX_TTL) {
            return Err(ErrorInfo::new(codes::INVALID_JWT, "JWT is valid for more than 24 hours"));
        }
        Ok(claims)
    }
}

fn bad_jwt() -> ErrorInfo {
    ErrorInfo::new(codes::INVALID_JWT, "JWT is malformed or has a wrong signature")
}

fn decode_part<T: serde::de::DeserializeOwned>(part: &str) -> Result<T, ErrorInfo> {
    let bytes = URL_SAFE_NO_PAD.decode(part).map_err(|_| bad_jwt())?;
    let text = String::from_utf8(bytes).map_err(|_| bad_jwt())?;
    json::check(&text, JsonLimits { depth: 8, items: 100 }).map_err(|_| bad_jwt())?;
    serde_json::from_str(&text).map_err(|_| bad_jwt())
}

/// Client ids that a connection may use.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Identity {
    /// No client id: the connection publishes anonymously and cannot enter presence.
    Anonymous,
    /// Any client id, named with each message.
    Any,
    Fixed(Box<str>),
}

impl Identity {
    /// Returns the identity of a connection that authenticates with a key, which permits every client id.
    pub fn with_key(requested: Option<&str>) -> Result<Self, ErrorInfo> {
        Self::with_token(Some("*"), requested)
    }

    /// Returns the identity of a connection that authenticates with a token of the client id `granted`.
    pub fn with_token(granted: Option<&str>, requested: Option<&str>) -> Result<Self, ErrorInfo> {
        let requested = requested.filter(|id| !id.is_empty());
        match (granted.filter(|id| !id.is_empty()), requested) {
            (None, None) => Ok(Self::Anonymous),
            (Some("*"), None | Some("*")) => Ok(Self::Any),
            (Some("*"), Some(id)) => {
                check_client_id(id)?;
                Ok(Self::Fixed(id.into()))
            }
            (Some(granted), None) => Ok(Self::Fixed(granted.into())),
            (Some(granted), Some(id)) if granted == id => Ok(Self::Fixed(granted.into())),
            (_, Some(_)) => {
                Err(ErrorInfo::new(codes::INCOMPATIBLE_CLIENT_ID, "clientId differs from that of the token"))
            }
        }
    }

    /// `clientId` of the connection details.
    pub fn announced(&self) -> Option<&str> {
        match self {
            Self::Anonymous => None,
            Self::Any => Some("*"),
            Self::Fixed(id) => Some(id),
        }
    }

    /// Returns the client id of a message in which the client claims `claimed`.
    pub fn of_message<'a>(&'a self, claimed: Option<&'a str>) -> Result<Option<&'a str>, ErrorInfo> {
        let error = |message: &'static str| ErrorInfo::new(codes::INVALID_CLIENT_ID, message);
        match (self, claimed) {
            (Self::Fixed(own), None) => Ok(Some(own)),
            (Self::Fixed(own), Some(claimed)) if **own == *claimed => Ok(Some(own)),
            (Self::Any | Self::Anonymous, None) => Ok(None),
            (Self::Any, Some(claimed)) => check_client_id(claimed).map(|()| Some(claimed)),
            (_, Some(_)) => Err(error("clientId differs from that of the connection")),
        }
    }

    /// Like [`Self::of_message`] for presence, which needs a client id.
    pub fn of_presence<'a>(&'a self, claimed: Option<&'a str>) -> Result<&'a str, ErrorInfo> {
        let id = self.of_message(claimed)?;
        id.ok_or_else(|| ErrorInfo::new(codes::INVALID_CLIENT_ID, "Presence needs a clientId"))
    }
}

fn check_client_id(id: &str) -> Result<(), ErrorInfo> {
    if id.is_empty() || id == "*" || id.len() > 256 || id.chars().any(char::is_control) {
        return Err(ErrorInfo::new(codes::INVALID_CLIENT_ID, "clientId is invalid"));
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const WINDOW: Duration = Duration::from_secs(900);

    fn recorded() -> TokenRequest {
        serde_json::from_str(r#"{"keyName":"localapp.key0","clientId":"bob","capability":"{\"jaibber:*\":[\"*\"]}","timestamp":1794766631072,"nonce":"2027951851637202","mac":"v6V0X4ECJarRISnQfeBtLoYN9IOsXRpNP9P04pzFUBs="}"#).unwrap()
    }

    #[test]
    fn a_recorded_token_request_has_a_valid_mac() {
        let now = Time(1_794_766_631_079_000);
        let request = recorded();
        request.verify("secret0", now, WINDOW).unwrap();
        assert_eq!(Some(request.sign("secret0")), request.mac);
        let grant = request.grant(&Capability::all()).unwrap();
        assert_eq!((grant.ttl, grant.client_id.as_deref()), (DEFAULT_TTL, Some("bob")));
        assert_eq!(grant.capability.canonical(), r#"{"jaibber:*":["*"]}"#);
        let code = |result: Result<(), ErrorInfo>| result.unwrap_err().code;
        assert_eq!(code(request.verify("secret1", now, WINDOW)), 40101);
        assert_eq!(code(request.verify("secret0", now.plus(WINDOW * 2), WINDOW)), 40104);
        let forged = TokenRequest { client_id: Some("eve".into()), ..recorded() };
        assert_eq!(code(forged.verify("secret0", now, WINDOW)), 40101);
        let unsigned = TokenRequest { mac: None, ..recorded() };
        assert_eq!(code(unsigned.verify("secret0", now, WINDOW)), 40101);
    }

    #[test]
    fn a_token_lives_at_most_a_day() {
        let grant = |ttl| TokenRequest { ttl: Some(ttl), ..recorded() }.grant(&Capability::all());
        assert_eq!(grant(86_400_000).unwrap().ttl, MAX_TTL);
        for bad in [0, -1, 86_400_001, i64::MAX, i64::MIN] {
            assert_eq!(grant(bad).unwrap_err().code, 40003, "{bad}");
        }
    }

    fn jwt(header: &str, claims: &str, secret: &str) -> String {
        let signed = format!("{}.{}", URL_SAFE_NO_PAD.encode(header), URL_SAFE_NO_PAD.encode(claims));
        let tag = URL_SAFE_NO_PAD.encode(mac(secret, signed.as_bytes()).finalize().into_bytes());
        format!("{signed}.{tag}")
    }

    #[test]
    fn a_jwt_is_verified_with_the_secret_of_its_key() {
        const HEADER: &str = r#"{"typ":"JWT","alg":"HS256","kid":"app.key"}"#;
        let claims =
            r#"{"iat":1000,"exp":4600,"x-ably-clientId":"ann","x-ably-capability":"{\"a\":[\"publish\"]}"}"#;
        let at = |seconds: i64| Time(seconds * 1_000_000);
        let token = jwt(HEADER, claims, "s");
        assert!(Jwt::is_jwt(&token) && !Jwt::is_jwt("app.token"));
        let parsed = Jwt::parse(&token).unwrap();
        assert_eq!(parsed.key.as_str(), "app.key");
        let verified = parsed.verify("s", at(2000)).unwrap();
        assert_eq!((verified.client_id.as_deref(), verified.expires_at), (Some("ann"), at(4600)));
        let code = |header: &str, claims: &str, secret: &str, now| {
            let token = jwt(header, claims, secret);
            Jwt::parse(&token).and_then(|jwt| jwt.verify("s", now)).unwrap_err().code
        };
        assert_eq!(code(HEADER, claims, "other", at(2000)), 40144);
        assert_eq!(code(HEADER, claims, "s", at(4600)), 40142);
        assert_eq!(code(r#"{"alg":"none","kid":"app.key"}"#, claims, "s", at(2000)), 40144);
        assert_eq!(code(r#"{"alg":"HS256"}"#, claims, "s", at(2000)), 40144);
        assert_eq!(code(HEADER, r#"{"iat":0}"#, "s", at(2000)), 40144);
        assert_eq!(code(HEADER, r#"{"iat":0,"exp":1e300}"#, "s", at(2000)), 40144);
    }

    #[test]
    fn a_client_id_is_bound_by_the_token() {
        let fixed = |id: &str| Identity::Fixed(id.into());
        let code = |result: Result<Identity, ErrorInfo>| result.unwrap_err().code;
        assert_eq!(Identity::with_key(None).unwrap(), Identity::Any);
        assert_eq!(Identity::with_key(Some("ann")).unwrap(), fixed("ann"));
        assert_eq!(Identity::with_token(Some("ann"), None).unwrap(), fixed("ann"));
        assert_eq!(Identity::with_token(Some("*"), Some("bob")).unwrap(), fixed("bob"));
        assert_eq!(code(Identity::with_token(Some("ann"), Some("bob"))), 40102);
        assert_eq!(code(Identity::with_token(None, Some("bob"))), 40102);
        assert_eq!(fixed("ann").of_message(None).unwrap(), Some("ann"));
        assert_eq!(fixed("ann").of_message(Some("bob")).unwrap_err().code, 40012);
        assert_eq!(Identity::Any.of_presence(Some("bob")).unwrap(), "bob");
        assert_eq!(Identity::Any.of_presence(Some("*")).unwrap_err().code, 40012);
        assert_eq!(Identity::Anonymous.of_message(Some("bob")).unwrap_err().code, 40012);
        assert_eq!(Identity::Anonymous.of_presence(None).unwrap_err().code, 40012);
    }

    #[test]
    fn credentials_are_read_from_the_header() {
        let key = Key::parse("app.key:se:cret").ok().unwrap();
        assert_eq!((key.name.app(), &*key.secret), ("app", "se:cret"));
        for bad in ["", "app.key", "app:secret", "app.key:", ".key:s", "a.b.c:s"] {
            assert_eq!(Key::parse(bad).err().unwrap().code, 40005, "{bad}");
        }
        let header = format!("Basic {}", BASE64.encode("app.key:s"));
        assert!(authorization(&header).ok().unwrap() == Credential::Key("app.key:s".into()));
        let header = format!("Bearer {}", BASE64.encode("app.token"));
        assert!(authorization(&header).ok().unwrap() == Credential::Token("app.token".into()));
        assert!(authorization("Bearer app.token").ok().unwrap() == Credential::Token("app.token".into()));
        assert!(authorization("Digest x").is_err() && authorization("Basic").is_err());
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]
        #[test]
        fn random_tokens_are_rejected(token in "\\PC{0,40}|[A-Za-z0-9_-]{0,20}\\.[A-Za-z0-9_-]{0,20}\\.[A-Za-z0-9_-]{0,20}") {
            prop_assert!(Jwt::parse(&token).and_then(|jwt| jwt.verify("s", Time(0))).is_err());
            let _ = authorization(&token);
            let _ = Key::parse(&token);
        }
    }
}
