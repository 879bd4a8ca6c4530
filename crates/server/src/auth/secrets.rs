//! Random secrets that are handed out once; the hub keeps their hashes.

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use parlor_model::SecretHash;
use sha2::{Digest, Sha256};

pub const KEY_PREFIX: &str = "plk_";
const REFRESH_PREFIX: &str = "plr_";
const SETUP_PREFIX: &str = "pls_";
const INVITATION_PREFIX: &str = "pli_";

pub fn random_bytes<const COUNT: usize>() -> [u8; COUNT] {
    let mut bytes = [0; COUNT];
    getrandom::fill(&mut bytes).expect("the operating system gives random numbers");
    bytes
}

/// 256 random bits, so that a plain hash of it cannot be searched.
fn random() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(random_bytes::<32>())
}

/// An id that cannot be guessed.
pub fn id() -> String {
    BASE64_URL_SAFE_NO_PAD.encode(random_bytes::<16>())
}

pub fn api_key() -> String {
    format!("{KEY_PREFIX}{}", random())
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

pub fn hash(secret: &str) -> SecretHash {
    SecretHash(Sha256::digest(secret.as_bytes()).into())
}
