//! Generates random secrets: API keys, tokens, tickets and codes. Each is shown once; the hub stores only its
//! hash.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use parlor_model::SecretHash;
use sha2::{Digest, Sha256};

pub const KEY_PREFIX: &str = "plk_";
const REFRESH_PREFIX: &str = "plr_";
const SETUP_PREFIX: &str = "pls_";
const TICKET_PREFIX: &str = "plt_";
const INVITATION_PREFIX: &str = "pli_";

pub fn random_bytes<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).expect("the operating system provides random numbers");
    bytes
}

/// 256 random bits as base64: too many to find the secret from its plain hash.
fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(random_bytes::<32>())
}

/// Random id of 128 bits.
pub fn id() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(random_bytes::<16>())
}

pub fn api_key() -> String {
    format!("{KEY_PREFIX}{}", random())
}

/// Secret of a key that signs tokens.
pub fn signing_secret() -> String {
    random()
}

pub fn refresh_token() -> String {
    format!("{REFRESH_PREFIX}{}", random())
}

pub fn setup_token() -> String {
    format!("{SETUP_PREFIX}{}", random())
}

pub fn invitation_token() -> String {
    format!("{INVITATION_PREFIX}{}", random())
}

/// Alphabet of pairing codes, which users type by hand: no vowels, so that no words appear, and no letters
/// that look like digits.
const PAIRING_ALPHABET: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// Code of twelve letters (about 50 bits), which suffices for a short lifetime and rate-limited attempts.
pub fn pairing_code() -> String {
    // Skip bytes from 240 on: 256 is no multiple of 20, so they would favour the first letters.
    let fair = std::iter::repeat_with(random_bytes::<1>).map(|[byte]| byte).filter(|byte| *byte < 240);
    let letters: Vec<u8> = fair.take(12).map(|byte| PAIRING_ALPHABET[usize::from(byte % 20)]).collect();
    let groups: Vec<_> = letters.chunks(4).map(String::from_utf8_lossy).collect();
    groups.join("-")
}

/// Hash of a pairing code, independent of case, spaces and hyphens.
pub fn typed_code(typed: &str) -> SecretHash {
    let letters = typed.chars().filter(char::is_ascii_alphanumeric).take(64);
    hash(&letters.map(|c| c.to_ascii_uppercase()).collect::<String>())
}

pub fn ticket() -> String {
    format!("{TICKET_PREFIX}{}", random())
}

pub fn hash(secret: &str) -> SecretHash {
    SecretHash(Sha256::digest(secret.as_bytes()).into())
}
