//! Signed tokens: access tokens, second-factor challenges and file links, as JSON Web Tokens with
//! HMAC-SHA-256.
//!
//! The header is compared as a whole and never interpreted, so an attacker cannot choose the algorithm, key
//! id or type.

use super::secrets;
use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD as BASE64;
use hmac::{Hmac, KeyInit, Mac};
use parlor_model::{
    AgentCredential, AgentId, Caller, KeyId, Principal, RunId, SessionId, SignInId, Time, UploadId, UserId,
};
use serde::{Deserialize, Serialize};
use sha2::Sha256;
use std::time::Duration;

/// `{"alg":"HS256","typ":"JWT"}`
const HEADER: &str = "eyJhbGciOiJIUzI1NiIsInR5cCI6IkpXVCJ9";
const PARLOR: &str = "parlor";
const ACCESS: &str = "access";
const LINK: &str = "link";
/// Type of a token for a program that works for an agent.
const AGENT: &str = "agent";
/// Lifetime of a link to a file.
const LINK_TTL: Duration = Duration::from_secs(5 * 60);
/// Type of a challenge token: proves that the password was correct, and grants no access.
const SECOND_FACTOR: &str = "second_factor";
/// Time a user has to enter the code of the second factor.
const CHALLENGE_TTL: Duration = Duration::from_secs(5 * 60);

pub struct Tokens {
    key: Hmac<Sha256>,
    ttl: Duration,
}

/// Content of a valid access token.
#[derive(Debug, PartialEq)]
pub struct Verified {
    pub user: UserId,
    pub sign_in: SignInId,
}

/// Content of a valid challenge token: the user whose password was verified, and a fingerprint of that
/// password.
#[derive(Debug, PartialEq)]
pub struct PasswordVerified {
    pub user: UserId,
    proof: String,
}

impl PasswordVerified {
    /// Whether the account still has the verified password: changing it invalidates the challenge.
    pub fn matches(&self, password_hash: &str) -> bool {
        self.proof == proof(password_hash)
    }
}

/// Fingerprint of a password for a token. It reveals nothing about the password, as the password hash is
/// salted.
fn proof(password_hash: &str) -> String {
    BASE64.encode(secrets::hash(password_hash).0)
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

/// Claims of a link: its creator, identified by sign-in or API key, and the file.
#[derive(Serialize, Deserialize)]
struct LinkClaims<'a> {
    iss: &'a str,
    aud: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    sub: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    sid: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    key: Option<&'a str>,
    file: &'a str,
    exp: i64,
}

/// Claims of a token for a program that works for an agent.
#[derive(Serialize, Deserialize)]
struct AgentClaims<'a> {
    iss: &'a str,
    aud: &'a str,
    #[serde(rename = "type")]
    kind: &'a str,
    sub: &'a str,
    agent: &'a str,
    #[serde(skip_serializing_if = "Option::is_none")]
    session: Option<&'a str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    run: Option<&'a str>,
    /// Microseconds, so that a token that is issued directly after a revocation is valid.
    issued: i64,
    exp: i64,
}

impl Tokens {
    pub fn new(secret: &[u8], ttl: Duration) -> Self {
        Self { key: Hmac::new_from_slice(secret).expect("HMAC takes keys of any length"), ttl }
    }

    pub fn issue(&self, user: &UserId, sign_in: &SignInId, now: Time) -> String {
        self.issue_claims(ACCESS, user, sign_in.as_str(), now, now.plus(self.ttl))
    }

    /// Issues an access token with a lifetime of its own, for a client that cannot refresh. It ends with its
    /// sign-in.
    pub fn issue_until(&self, user: &UserId, sign_in: &SignInId, now: Time, expires: Time) -> String {
        self.issue_claims(ACCESS, user, sign_in.as_str(), now, expires)
    }

    /// Issues a challenge token to a user whose password is correct and whose second factor is still to be
    /// verified.
    pub fn challenge(&self, user: &UserId, password_hash: &str, now: Time) -> String {
        self.issue_claims(SECOND_FACTOR, user, &proof(password_hash), now, now.plus(CHALLENGE_TTL))
    }

    fn issue_claims(&self, kind: &str, user: &UserId, sid: &str, now: Time, expires: Time) -> String {
        let claims = Claims {
            iss: PARLOR,
            aud: PARLOR,
            kind,
            sub: user.as_str(),
            sid,
            iat: now.seconds(),
            exp: expires.seconds(),
        };
        self.sign(&claims)
    }

    /// Issues a link to one file and returns it with its expiry time. It works while its creator may see the
    /// file.
    pub fn issue_link(&self, creator: &Caller, file: &UploadId, now: Time) -> Option<(String, Time)> {
        let (user, sign_in, key) = match &creator.principal {
            Principal::Person { user, sign_in } => (user, Some(sign_in.as_str()), None),
            Principal::Program { user, key } => (user, None, Some(key.as_str())),
            Principal::Anonymous
            | Principal::Agent(_)
            | Principal::Authenticator
            | Principal::Connector { .. }
            | Principal::Operator => return None,
        };
        let expires = now.plus(LINK_TTL);
        let claims = LinkClaims {
            iss: PARLOR,
            aud: PARLOR,
            kind: LINK,
            sub: user.as_str(),
            sid: sign_in,
            key,
            file: file.as_str(),
            exp: expires.seconds(),
        };
        Some((self.sign(&claims), expires))
    }

    /// Issues a token to a program that works for an agent.
    pub fn issue_to_agent(&self, credential: &AgentCredential) -> String {
        let claims = AgentClaims {
            iss: PARLOR,
            aud: PARLOR,
            kind: AGENT,
            sub: credential.owner.as_str(),
            agent: credential.agent.as_str(),
            session: credential.session.as_ref().map(SessionId::as_str),
            run: credential.run.as_ref().map(RunId::as_str),
            issued: credential.issued_at.0,
            exp: credential.expires_at.seconds(),
        };
        self.sign(&claims)
    }

    /// Returns the credential of a valid token for a program that works for an agent.
    pub fn verify_agent(&self, token: &str, now: Time) -> Option<AgentCredential> {
        let claims = self.open(token)?;
        let claims: AgentClaims = serde_json::from_slice(&claims).ok()?;
        let is_own = claims.iss == PARLOR && claims.aud == PARLOR && claims.kind == AGENT;
        if !is_own || claims.exp <= now.seconds() {
            return None;
        }
        Some(AgentCredential {
            owner: UserId::parse(claims.sub).ok()?,
            agent: AgentId::parse(claims.agent).ok()?,
            session: claims.session.map(SessionId::parse).transpose().ok()?,
            run: claims.run.map(RunId::parse).transpose().ok()?,
            issued_at: Time(claims.issued),
            expires_at: Time(claims.exp.saturating_mul(1_000_000)),
        })
    }

    fn sign(&self, claims: &impl Serialize) -> String {
        let claims = serde_json::to_vec(claims).expect("claims contain only strings and numbers");
        let signed = format!("{HEADER}.{}", BASE64.encode(claims));
        let signature = self.key.clone().chain_update(signed.as_bytes()).finalize().into_bytes();
        format!("{signed}.{}", BASE64.encode(signature))
    }

    /// Verifies the header and signature of a token and returns its claims as JSON.
    fn open(&self, token: &str) -> Option<Vec<u8>> {
        let (signed, signature) = token.rsplit_once('.')?;
        let (header, claims) = signed.split_once('.')?;
        if header != HEADER {
            return None;
        }
        let signature = BASE64.decode(signature).ok()?;
        // Compares in constant time.
        self.key.clone().chain_update(signed.as_bytes()).verify_slice(&signature).ok()?;
        BASE64.decode(claims).ok()
    }

    pub fn verify(&self, token: &str, now: Time) -> Option<Verified> {
        let (user, sid) = self.claims(token, ACCESS, now)?;
        Some(Verified { user, sign_in: SignInId::parse(&sid).ok()? })
    }

    pub fn verify_challenge(&self, token: &str, now: Time) -> Option<PasswordVerified> {
        let (user, proof) = self.claims(token, SECOND_FACTOR, now)?;
        Some(PasswordVerified { user, proof })
    }

    fn claims(&self, token: &str, kind: &str, now: Time) -> Option<(UserId, String)> {
        let claims = self.open(token)?;
        let claims: Claims = serde_json::from_slice(&claims).ok()?;
        let is_own = claims.iss == PARLOR && claims.aud == PARLOR && claims.kind == kind;
        if !is_own || claims.exp <= now.seconds() {
            return None;
        }
        Some((UserId::parse(claims.sub).ok()?, claims.sid.to_owned()))
    }

    /// Returns the creator of a valid link to this file.
    pub fn verify_link(&self, link: &str, file: &UploadId, now: Time) -> Option<Caller> {
        let claims = self.open(link)?;
        let claims: LinkClaims = serde_json::from_slice(&claims).ok()?;
        let is_own = claims.iss == PARLOR && claims.aud == PARLOR && claims.kind == LINK;
        if !is_own || claims.file != file.as_str() || claims.exp <= now.seconds() {
            return None;
        }
        let user = UserId::parse(claims.sub).ok()?;
        match (claims.sid, claims.key) {
            (Some(sign_in), None) => Some(Caller::person(user, SignInId::parse(sign_in).ok()?)),
            (None, Some(key)) => Some(Caller::program(user, KeyId::parse(key).ok()?)),
            _ => None,
        }
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
    fn a_token_identifies_its_user_until_it_expires() {
        let (user, sign_in) = (UserId::stored("u"), SignInId::stored("s"));
        let token = tokens().issue(&user, &sign_in, NOW);
        assert_eq!(tokens().verify(&token, NOW), Some(Verified { user, sign_in }));
        assert_eq!(tokens().verify(&token, NOW.plus(Duration::from_secs(900))), None);
        let other = Tokens::new(b"another secret", Duration::from_secs(900));
        assert_eq!(other.verify(&token, NOW), None);
    }

    #[test]
    fn a_challenge_is_not_accepted_as_an_access_token_nor_vice_versa() {
        let (user, sign_in) = (UserId::stored("u"), SignInId::stored("s"));
        let challenge = tokens().challenge(&user, "hash", NOW);
        assert_eq!(tokens().verify(&challenge, NOW), None);
        assert_eq!(tokens().verify_challenge(&tokens().issue(&user, &sign_in, NOW), NOW), None);
        let verified = tokens().verify_challenge(&challenge, NOW).unwrap();
        assert!(verified.user == user && verified.matches("hash") && !verified.matches("another hash"));
        assert_eq!(tokens().verify_challenge(&challenge, NOW.plus(CHALLENGE_TTL)), None);
    }

    #[test]
    fn no_other_algorithm_type_issuer_or_audience_is_accepted() {
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
    fn a_link_opens_one_file_until_it_expires_and_is_no_access_token() {
        let (user, file) = (UserId::stored("u"), UploadId::stored("f"));
        for creator in [
            Caller::person(user.clone(), SignInId::stored("s")),
            Caller::program(user.clone(), KeyId::stored("k")),
        ] {
            let (link, expires) = tokens().issue_link(&creator, &file, NOW).unwrap();
            assert_eq!(expires, NOW.plus(Duration::from_secs(300)));
            assert_eq!(tokens().verify_link(&link, &file, NOW), Some(creator));
            assert_eq!(tokens().verify_link(&link, &UploadId::stored("g"), NOW), None);
            assert_eq!(tokens().verify_link(&link, &file, expires), None);
            assert_eq!(tokens().verify_link(&format!("{link}A"), &file, NOW), None);
            assert_eq!(tokens().verify(&link, NOW), None);
        }
        assert_eq!(tokens().issue_link(&Caller::ANONYMOUS, &file, NOW), None);
        let access = tokens().issue(&user, &SignInId::stored("s"), NOW);
        assert_eq!(tokens().verify_link(&access, &file, NOW), None);
    }

    #[test]
    fn a_token_of_an_agent_carries_its_limits_and_is_no_access_token() {
        let expires_at = Time(NOW.0 + 60_000_000);
        for (session, run) in [(Some(SessionId::main()), Some(RunId::stored("r"))), (None, None)] {
            let credential = AgentCredential {
                owner: UserId::stored("u"),
                agent: AgentId::stored("coder/sub"),
                session,
                run,
                issued_at: Time(NOW.0 + 7),
                expires_at,
            };
            let token = tokens().issue_to_agent(&credential);
            assert_eq!(tokens().verify_agent(&token, NOW), Some(credential));
            assert_eq!(tokens().verify_agent(&token, expires_at), None);
            assert_eq!(tokens().verify_agent(&format!("{token}A"), NOW), None);
            assert_eq!(tokens().verify(&token, NOW), None);
            assert_eq!(tokens().verify_challenge(&token, NOW), None);
            assert_eq!(tokens().verify_link(&token, &UploadId::stored("f"), NOW), None);
        }
        let access = tokens().issue(&UserId::stored("u"), &SignInId::stored("s"), NOW);
        assert_eq!(tokens().verify_agent(&access, NOW), None);
    }

    #[test]
    fn a_malformed_token_is_rejected() {
        for bad in ["", ".", "..", "a.b.c", &format!("{HEADER}..")] {
            assert_eq!(tokens().verify(bad, NOW), None, "{bad}");
        }
        let token = tokens().issue(&UserId::stored("u"), &SignInId::stored("s"), NOW);
        let (signed, _) = token.rsplit_once('.').unwrap();
        assert_eq!(
            tokens().verify(&format!("{signed}."), NOW),
            None,
            "a token without a signature must be rejected"
        );
    }
}
