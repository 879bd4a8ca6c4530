//! Seals what must be read again, so that no hash will do.
//!
//! The key is derived from the one that signs tokens, which lies beside the database and not in it: a copy of the
//! database alone opens nothing. Each sealed text is bound to what it belongs to: moved elsewhere it does not open.

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
    /// One for each purpose: what was sealed for one does not open for another.
    pub fn new(hub_secret: &[u8], purpose: &str) -> Self {
        let hub = <Hmac<Sha256> as hmac::KeyInit>::new_from_slice(hub_secret);
        let key = hub.expect("HMAC takes keys of any length").chain_update(purpose.as_bytes());
        Self { cipher: XChaCha20Poly1305::new(&key.finalize().into_bytes()) }
    }

    pub fn close(&self, belongs_to: &str, secret: &[u8]) -> Box<[u8]> {
        let nonce: [u8; NONCE_BYTES] = secrets::random_bytes();
        let payload = Payload { msg: secret, aad: belongs_to.as_bytes() };
        let sealed = self.cipher.encrypt(&nonce.into(), payload).expect("a few bytes can be sealed");
        [&nonce[..], &sealed].concat().into()
    }

    pub fn open(&self, belongs_to: &str, sealed: &[u8]) -> Option<Vec<u8>> {
        let (nonce, sealed) = sealed.split_first_chunk::<NONCE_BYTES>()?;
        let payload = Payload { msg: sealed, aad: belongs_to.as_bytes() };
        self.cipher.decrypt(&(*nonce).into(), payload).ok()
    }
}
