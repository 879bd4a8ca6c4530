//! Tokens that the hub issues to Ably clients: signed, and not stored.
//!
//! A token is `parlor.` and the base64 of an HMAC-SHA-256 tag followed by the claims as JSON. It has one dot, so it
//! cannot be confused with a JWT, which has two.

use super::signing_keys::APP;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use parlor_model::{Caller, KeyId, Principal, SignInId, Time, UserId};
use parlor_wire::ably::codes::{self, ErrorInfo};
use serde::{Deserialize, Serialize};
use sha2::Sha256;

const TAG_BYTES: usize = 32;
/// Maximum size of a token that the hub verifies.
const MAX_BYTES: usize = 64 * 1024;

/// Signs and verifies tokens.
pub struct AblyTokens(Hmac<Sha256>);

/// The credential that a token was issued for. The token is valid only while it exists.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub enum Issuer {
    Key(KeyId),
    SignIn(UserId, SignInId),
    /// An API key with scopes, of this user.
    ApiKey(UserId, KeyId),
}

impl Issuer {
    /// Returns the credential of a caller; `None` if it is neither a sign-in nor an API key.
    pub fn of(caller: &Caller) -> Option<Self> {
        match &caller.principal {
            Principal::Person { user, sign_in } => Some(Self::SignIn(user.clone(), sign_in.clone())),
            Principal::Program { user, key } => Some(Self::ApiKey(user.clone(), key.clone())),
            Principal::Anonymous
            | Principal::Agent(_)
            | Principal::Authenticator
            | Principal::Connector { .. }
            | Principal::Operator => None,
        }
    }
}

/// Content of a token. The names of the fields are short, because clients send tokens in URLs.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Claims {
    #[serde(rename = "by")]
    pub issuer: Issuer,
    /// Canonical JSON text of the capability.
    #[serde(rename = "cap")]
    pub capability: Box<str>,
    #[serde(rename = "id", default, skip_serializing_if = "Option::is_none")]
    pub client_id: Option<Box<str>>,
    #[serde(rename = "iat")]
    pub issued_at: Time,
    #[serde(rename = "exp")]
    pub expires_at: Time,
}

impl AblyTokens {
    pub fn new(hub_secret: &[u8]) -> Self {
        let hub = <Hmac<Sha256> as KeyInit>::new_from_slice(hub_secret);
        let derived = hub.expect("HMAC takes keys of any length").chain_update(b"parlor ably tokens 1");
        let key = derived.finalize().into_bytes();
        Self(<Hmac<Sha256> as KeyInit>::new_from_slice(&key).expect("HMAC takes keys of any length"))
    }

    pub fn issue(&self, claims: &Claims) -> String {
        let claims = serde_json::to_vec(claims).expect("claims consist of strings and numbers");
        let tag = self.0.clone().chain_update(&claims).finalize().into_bytes();
        format!("{APP}.{}", BASE64.encode([&tag[..], &claims].concat()))
    }

    /// Verifies the form, the tag and the expiry of a token.
    pub fn verify(&self, token: &str, now: Time) -> Result<Claims, ErrorInfo> {
        let malformed = || ErrorInfo::new(codes::INVALID_CREDENTIAL, "Token is malformed");
        let text = token.strip_prefix(APP).and_then(|rest| rest.strip_prefix('.'));
        let text = text.filter(|text| text.len() <= MAX_BYTES).ok_or_else(malformed)?;
        let bytes = BASE64.decode(text).map_err(|_| malformed())?;
        let (tag, claims) = bytes.split_first_chunk::<TAG_BYTES>().ok_or_else(malformed)?;
        // Compares in constant time. A client with a token of an earlier secret of the hub requests a new one.
        let unrecognised = || ErrorInfo::new(codes::TOKEN_UNRECOGNISED, "Token is not recognised");
        self.0.clone().chain_update(claims).verify_slice(tag).map_err(|_| unrecognised())?;
        let claims: Claims = serde_json::from_slice(claims).map_err(|_| unrecognised())?;
        if claims.expires_at <= now {
            return Err(ErrorInfo::new(codes::TOKEN_EXPIRED, "Token has expired"));
        }
        Ok(claims)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_800_000_000_000_000);

    fn tokens() -> AblyTokens {
        AblyTokens::new(b"secret of this hub")
    }

    fn claims(capability: &str) -> Claims {
        Claims {
            issuer: Issuer::Key(KeyId::stored("k")),
            capability: capability.into(),
            client_id: Some("bob".into()),
            issued_at: NOW,
            expires_at: Time(NOW.0 + 1_000_000),
        }
    }

    #[track_caller]
    fn check(token: &str, code: u32) {
        assert_eq!(tokens().verify(token, NOW).unwrap_err().code, code, "{token}");
    }

    #[test]
    fn a_token_carries_its_claims_until_it_expires() {
        for issuer in [
            Issuer::Key(KeyId::stored("k")),
            Issuer::SignIn(UserId::stored("u"), SignInId::stored("s")),
            Issuer::ApiKey(UserId::stored("u"), KeyId::stored("k")),
        ] {
            let claims = Claims { issuer, ..claims("{}") };
            let token = tokens().issue(&claims);
            assert_eq!(token.matches('.').count(), 1);
            assert_eq!(tokens().verify(&token, NOW), Ok(claims.clone()));
            assert_eq!(tokens().verify(&token, claims.expires_at).unwrap_err().code, 40142);
        }
    }

    #[test]
    fn forged_and_malformed_tokens_are_rejected() {
        let token = tokens().issue(&claims(r#"{"a":["publish"]}"#));
        check(&AblyTokens::new(b"another secret").issue(&claims("{}")), 40140);
        // The tag of a token with other claims: a wider capability, or a later expiry.
        let tag = |token: &str| BASE64.decode(&token[7..]).unwrap()[..TAG_BYTES].to_vec();
        for wider in [
            claims(r#"{"*":["*"]}"#),
            Claims { expires_at: Time(i64::MAX), ..claims(r#"{"a":["publish"]}"#) },
            Claims { client_id: Some("ann".into()), ..claims(r#"{"a":["publish"]}"#) },
        ] {
            let content = serde_json::to_vec(&wider).unwrap();
            check(&format!("parlor.{}", BASE64.encode([tag(&token), content].concat())), 40140);
        }
        check(&format!("parlor.{}", BASE64.encode(serde_json::to_vec(&claims("{}")).unwrap())), 40140);
        for bad in ["", ".", "parlor.", "parlor.AAAA", "other.abc", "parlor", "parlor.!", &token[1..]] {
            check(bad, 40005);
        }
    }
}
