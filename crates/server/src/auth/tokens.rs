//! Access tokens: JSON Web Tokens with one fixed algorithm, HMAC-SHA-256.
//!
//! The header is compared as a whole and never interpreted, so there is no algorithm, key id or type for an
//! attacker to choose.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use parlor_model::{SignInId, Time, UserId};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::time::Duration;

/// `{"alg":"HS256","typ":"JWT"}`
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
const PARLOR: &str = "parlor";
const ACCESS: &str = "access";

pub struct Tokens {
    key: Hmac<Sha256>,
    ttl: Duration,
}

#[derive(Debug, PartialEq)]
pub struct Verified {
    pub user: UserId,
    pub sign_in: SignInId,
}

#[derive(Serialize, Deserialize)]
struct Claims<'a> {
    iss: &'a str,
    aud: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    sub: &'a str,
    sid: &'a str,
    iat: i64,
    exp: i64,
}

impl Tokens {
    pub fn new(secret: &[u8], ttl: Duration) -> Self {
        Self { key: Hmac::new_from_slice(secret).expect("HMAC takes keys of any length"), ttl }
    }

    pub fn issue(&self, user: &UserId, sign_in: &SignInId, now: Time) -> String {
        let claims = Claims {
            iss: PARLOR,
            aud: PARLOR,
            kind: ACCESS,
            sub: user.as_str(),
            sid: sign_in.as_str(),
            iat: now.seconds(),
            exp: now.plus(self.ttl).seconds(),
        };
        let claims = serde_json::to_vec(&claims).expect("claims are texts and numbers");
        let signed = format!("{HEADER}.{}", BASE64.encode(claims));
        let signature = self.key.clone().chain_update(signed.as_bytes()).finalize().into_bytes();
        format!("{signed}.{}", BASE64.encode(signature))
    }

    pub fn verify(&self, token: &str, now: Time) -> Option<Verified> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        if header != HEADER {
            return None;
        }
        let signature = BASE64.decode(signature).ok()?;
        // Compares in constant time.
        self.key.clone().chain_update(signed.as_bytes()).verify_slice(&signature).ok()?;
        let claims = BASE64.decode(claims).ok()?;
        let claims: Claims = serde_json::from_slice(&claims).ok()?;
        let ours = claims.iss == PARLOR && claims.aud == PARLOR && claims.kind == ACCESS;
        if !ours || claims.exp <= now.seconds() {
            return None;
        }
        let user = UserId::parse(claims.sub).ok()?;
        Some(Verified { user, sign_in: SignInId::parse(claims.sid).ok()? })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const NOW: Time = Time(1_800_000_000_000_000);

    fn tokens() -> Tokens {
        Tokens::new(b"secret of this hub", Duration::from_secs(900))
    }

    fn signed(header: &str, claims: &str) -> String {
        let signed = format!("{}.{}", BASE64.encode(header), BASE64.encode(claims));
        let signature = tokens().key.chain_update(signed.as_bytes()).finalize().into_bytes();
        format!("{signed}.{}", BASE64.encode(signature))
    }

    #[test]
    fn a_token_names_its_person_until_it_runs_out() {
        let (user, sign_in) = (UserId::stored("u"), SignInId::stored("s"));
        let token = tokens().issue(&user, &sign_in, NOW);
        assert_eq!(tokens().verify(&token, NOW), Some(Verified { user, sign_in }));
        assert_eq!(tokens().verify(&token, NOW.plus(Duration::from_secs(900))), None);
        let other = Tokens::new(b"another secret", Duration::from_secs(900));
        assert_eq!(other.verify(&token, NOW), None);
    }

    #[test]
    fn no_other_algorithm_type_issuer_or_audience_is_taken() {
        let hs256 = r#"{"alg":"HS256","typ":"JWT"}"#;
        let good =
            r#"{"iss":"parlor","aud":"parlor","type":"access","sub":"u","sid":"s","iat":1,"exp":9999999999}"#;
        assert!(tokens().verify(&signed(hs256, good), NOW).is_some());
        for header in [
            r#"{"alg":"none"}"#,
            r#"{"alg":"HS512","typ":"JWT"}"#,
            r#"{"alg":"RS256","typ":"JWT"}"#,
            r#"{"alg":"HS256","typ":"JWT","kid":"../../etc/passwd"}"#,
        ] {
            assert_eq!(tokens().verify(&signed(header, good), NOW), None, "{header}");
        }
        for (from, to) in [
            ("access", "refresh"),
            ("\"aud\":\"parlor\"", "\"aud\":\"x\""),
            ("\"iss\":\"parlor\"", "\"iss\":\"x\""),
        ] {
            assert_eq!(tokens().verify(&signed(hs256, &good.replace(from, to)), NOW), None, "{to}");
        }
    }

    #[test]
    fn nonsense_is_no_token() {
        for bad in ["", ".", "..", "a.b.c", &format!("{HEADER}..")] {
            assert_eq!(tokens().verify(bad, NOW), None, "{bad}");
        }
        let token = tokens().issue(&UserId::stored("u"), &SignInId::stored("s"), NOW);
        let (signed, _) = token.rsplit_once('.').unwrap();
        assert_eq!(tokens().verify(&format!("{signed}."), NOW), None, "no signature");
    }
}
