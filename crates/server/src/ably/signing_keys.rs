//! Keys of Ably clients, `parlor.<id>:<secret>`: new ones, and the secrets of stored ones.
//!
//! The hub stores the hash of the whole text, which finds the key of basic authentication, and the secret encrypted and
//! bound to the id, which verifies token requests and JWTs.

use crate::auth::seal::Seal;
use crate::auth::secrets;
use parlor_model::command::CreateSigningKey;
use parlor_model::{KeyGrant, KeyId, SealedKey, SecretHash, SigningKey, UserId};
use parlor_wire::ably::auth::KeyName;
use parlor_wire::ably::capability::Capability;
use parlor_wire::ably::codes::ErrorInfo;
use std::fmt::Write;
use std::sync::Arc;

/// The only app of the hub: first part of the name of every key.
pub const APP: &str = "parlor";

/// Encrypts and decrypts the secrets of keys.
pub struct SigningKeys(Seal);

/// A new key: the command that stores it, and its text, which is shown once.
pub struct NewSigningKey {
    pub command: CreateSigningKey,
    pub text: String,
}

impl SigningKeys {
    pub fn new(hub_secret: &[u8]) -> Self {
        Self(Seal::new(hub_secret, "parlor signing keys 1"))
    }

    /// Generates a key with this capability, which is JSON text.
    pub fn generate(
        &self,
        owner: Option<UserId>,
        name: Box<str>,
        capability: &str,
    ) -> Result<NewSigningKey, ErrorInfo> {
        let capability = Capability::parse(capability)?;
        let grant =
            KeyGrant { places: Arc::new(capability.grant()), notation: capability.canonical().into() };
        let id = secrets::random_bytes::<10>().iter().fold(String::new(), |mut id, byte| {
            write!(id, "{byte:02x}").expect("a string accepts all text");
            id
        });
        let (id, signing_secret) = (KeyId::stored(id), secrets::signing_secret());
        let text = format!("{}:{signing_secret}", name_of(&id));
        let sealed = SealedKey(self.0.close(id.as_str(), signing_secret.as_bytes()));
        let secret = hash(&text);
        Ok(NewSigningKey { command: CreateSigningKey { id, owner, name, grant, secret, sealed }, text })
    }

    /// Decrypts the secret of a stored key. `None` if it was encrypted with another secret of the hub.
    pub fn secret(&self, key: &SigningKey) -> Option<String> {
        let secret = self.0.open(key.key.id.as_str(), &key.secret.0)?;
        String::from_utf8(secret).ok()
    }
}

/// Hash by which a key is found.
pub fn hash(text: &str) -> SecretHash {
    secrets::hash(text)
}

pub fn name_of(key: &KeyId) -> String {
    format!("{APP}.{key}")
}

/// The id in the name of a key; `None` for a key of another app.
pub fn id_of(name: &KeyName) -> Option<KeyId> {
    let (app, id) = name.as_str().split_once('.')?;
    if app == APP { KeyId::parse(id).ok() } else { None }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{ApiKey, Time};
    use parlor_wire::ably::auth::Key;

    #[test]
    fn a_generated_key_is_parsed_and_its_secret_is_bound_to_it() {
        let keys = SigningKeys::new(b"secret of this hub");
        let new = keys.generate(None, "ci".into(), r#"{"b":["*"],"a:*":["subscribe","publish"]}"#).unwrap();
        let key = Key::parse(&new.text).unwrap();
        assert_eq!(id_of(&key.name), Some(new.command.id.clone()));
        assert_eq!(&*new.command.grant.notation, r#"{"a:*":["publish","subscribe"],"b":["*"]}"#);
        assert_eq!(new.command.secret, hash(&new.text));
        let stored = |id: &str| SigningKey {
            key: ApiKey {
                id: KeyId::stored(id),
                owner: UserId::stored("ann"),
                name: "ci".into(),
                scopes: Vec::new(),
                grant: None,
                created_at: Time(1),
            },
            secret: new.command.sealed.clone(),
            revocations: Vec::new(),
        };
        assert_eq!(keys.secret(&stored(new.command.id.as_str())).as_deref(), Some(&*key.secret));
        assert_eq!(keys.secret(&stored("other")), None, "sealed for another key");
        assert_eq!(SigningKeys::new(b"other").secret(&stored(new.command.id.as_str())), None);
        assert!(keys.generate(None, "ci".into(), "{}").is_err());
    }

    #[test]
    fn a_key_of_another_app_has_no_id() {
        assert_eq!(id_of(&KeyName::parse("other.key").unwrap()), None);
    }
}
