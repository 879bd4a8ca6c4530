//! Random secrets that are handed out once; the hub keeps their hashes.

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

/// What people read from one screen and type on another: no vowels, so no words, and nothing that looks like a digit.
const LETTERS: &[u8; 20] = b"BCDFGHJKLMNPQRSTVWXZ";

/// Fifty bits, good for a few minutes and a few guesses.
pub fn pairing_code() -> String {
    // Bytes from 240 on would favour the first letters.
    let fair = std::iter::repeat_with(random_bytes::<1>).map(|[byte]| byte).filter(|byte| *byte < 240);
    let letters: Vec<u8> = fair.take(12).map(|byte| LETTERS[usize::from(byte % 20)]).collect();
    let groups: Vec<_> = letters.chunks(4).map(String::from_utf8_lossy).collect();
    groups.join("-")
}

/// The code as it was made, however it was typed.
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
