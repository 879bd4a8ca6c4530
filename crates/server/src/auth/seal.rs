//! Encrypts secrets that the hub must read again, where a hash is not enough.
//!
//! The key is derived from the token secret, which is stored beside the database and not in it, so a copy of
//! the database alone decrypts nothing. Each sealed secret is bound to a context, such as its user, and
//! cannot be opened with another one.

use super::secrets;
use chacha20poly1305::aead::{Aead, Payload};
use chacha20poly1305::{KeyInit, XChaCha20Poly1305};
use hmac::{Hmac, Mac};
use sha2::Sha256;

const NONCE_BYTES: usize = 24;

pub struct Seal {
    cipher: XChaCha20Poly1305,
}

impl Seal {
    /// Derives the key for one purpose. A secret sealed for one purpose cannot be opened for another.
    pub fn new(hub_secret: &[u8], purpose: &str) -> Self {
        let hub = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(hub_secret);
        let key = hub.expect("HMAC takes keys of any length").chain_update(purpose.as_bytes());
        Self { cipher: XChaCha20Poly1305::new(&key.finalize().into_bytes()) }
    }

    pub fn close(&self, context: &str, secret: &[u8]) -> Box<[u8]> {
        let nonce: [u8; NONCE_BYTES] = secrets::random_bytes();
        let payload = Payload { msg: secret, aad: context.as_bytes() };
        let sealed = self
            .cipher
            .encrypt(&nonce.into(), payload)
            .expect("XChaCha20-Poly1305 encrypts payloads of this size");
        [&nonce[..], &sealed].concat().into()
    }

    pub fn open(&self, context: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: sealed, aad: context.as_bytes() };
        self.cipher.decrypt(&(*nonce).into(), payload).ok()
    }
}
