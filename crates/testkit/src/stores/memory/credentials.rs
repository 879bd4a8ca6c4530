//! Credentials: sign-ins, API keys and second factors, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::CredentialChange;
use parlor_engine::ports::ReadCredentials;
use parlor_model::{
    ApiKey, KeyId, RefreshToken, Revocation, SecondFactor, SecretHash, SignIn, SignInId, SigningKey, Time,
    UserId,
};
use std::sync::Arc;

impl ReadCredentials for TablesView {
    fn sign_in(&mut self, id: &SignInId) -> Result<Option<SignIn>, Fault> {
        Ok(self.tables.sign_ins.get(id).cloned())
    }

    fn refresh_token(&mut self, token: &SecretHash) -> Result<Option<RefreshToken>, Fault> {
        Ok(self.tables.refresh_tokens.get(token).cloned())
    }

    fn sign_ins(&mut self, user: &UserId, now: Time) -> Result<Vec<SignIn>, Fault> {
        let theirs = self.tables.sign_ins.rows().filter(|sign_in| sign_in.user == *user);
        let alive = theirs.filter(|sign_in| sign_in.expires_at > now);
        Ok(sorted(alive.cloned(), |sign_in| (sign_in.created_at, sign_in.id.clone())))
    }

    fn key(&mut self, id: &KeyId) -> Result<Option<ApiKey>, Fault> {
        Ok(self.tables.keys.get(id).cloned())
    }

    fn key_with(&mut self, secret: &SecretHash) -> Result<Option<ApiKey>, Fault> {
        let id = self.tables.key_secrets.get(secret);
        Ok(id.and_then(|id| self.tables.keys.get(id)).cloned())
    }

    fn keys(&mut self, owner: Option<&UserId>) -> Result<Vec<ApiKey>, Fault> {
        let keys = self.tables.keys.rows().filter(|key| owner.is_none_or(|owner| key.owner == *owner));
        Ok(sorted(keys.cloned(), |key| (key.created_at, key.id.clone())))
    }

    fn signing_key(&mut self, id: &KeyId) -> Result<Option<SigningKey>, Fault> {
        let (Some(key), Some(secret)) = (self.tables.keys.get(id), self.tables.sealed_keys.get(id)) else {
            return Ok(None);
        };
        let own = self.tables.revocations.iter().filter(|((key, _), _)| key == id);
        let revocation = |((_, target), at): (&(KeyId, Box<str>), &Time)| Revocation {
            target: target.clone(),
            issued_before: *at,
        };
        let revocations = own.map(revocation).collect();
        Ok(Some(SigningKey { key: key.clone(), secret: secret.clone(), revocations }))
    }

    fn signing_key_count(&mut self, owner: &UserId) -> Result<usize, Fault> {
        let own = self.tables.keys.rows().filter(|key| key.owner == *owner);
        Ok(own.filter(|key| self.tables.sealed_keys.contains_key(&key.id)).count())
    }

    fn second_factor(&mut self, user: &UserId) -> Result<Option<SecondFactor>, Fault> {
        Ok(self.tables.second_factors.get(user).cloned())
    }

    fn has_backup_code(&mut self, user: &UserId, code: &SecretHash) -> Result<bool, Fault> {
        Ok(self.tables.backup_codes.contains(&(user.clone(), *code)))
    }
}

impl Tables {
    pub fn apply_credentials(&mut self, change: &CredentialChange) {
        match change {
            CredentialChange::PutSignIn(sign_in, token) => self.put_sign_in(sign_in, *token),
            CredentialChange::EndSignIn(sign_in) => self.end_sign_in(sign_in),
            CredentialChange::EndSignInsOf(user) => self.end_sign_ins_of(user),
            CredentialChange::PutKey(key, secret) => {
                self.keys.put(key.id.clone(), key.as_ref().clone());
                self.key_secrets.insert(*secret, key.id.clone());
            }
            CredentialChange::PutSigningKey(key, secret, sealed) => {
                self.keys.put(key.id.clone(), key.as_ref().clone());
                self.key_secrets.insert(*secret, key.id.clone());
                self.sealed_keys.insert(key.id.clone(), sealed.clone());
            }
            CredentialChange::RemoveKey(key) => self.remove_key(key),
            CredentialChange::RevokeTokens { key, revocations, expired_before } => {
                self.revocations.retain(|(own, _), before| own != key || *before >= *expired_before);
                for Revocation { target, issued_before } in revocations {
                    let before = self.revocations.entry((key.clone(), target.clone())).or_default();
                    *before = (*before).max(*issued_before);
                }
            }
            CredentialChange::PutSecondFactor(factor) => {
                self.second_factors.insert(factor.user.clone(), factor.as_ref().clone());
            }
            CredentialChange::PutBackupCodes(user, codes) => {
                self.backup_codes.retain(|(owner, _)| owner != user);
                self.backup_codes.extend(codes.iter().map(|code| (user.clone(), *code)));
            }
            CredentialChange::SpendBackupCode(user, code) => {
                self.backup_codes.remove(&(user.clone(), *code));
            }
            CredentialChange::RemoveSecondFactor(user) => self.remove_second_factor(user),
        }
    }

    pub fn remove_key(&mut self, key: &KeyId) {
        self.keys.remove(key);
        self.key_secrets.retain(|_, other| other != key);
        self.sealed_keys.remove(key);
        self.revocations.retain(|(other, _), _| other != key);
    }

    pub fn put_sign_in(&mut self, sign_in: &Arc<SignIn>, token: SecretHash) {
        self.sign_ins.put(sign_in.id.clone(), sign_in.as_ref().clone());
        let generation = sign_in.generation;
        self.refresh_tokens.insert(token, RefreshToken { sign_in: sign_in.id.clone(), generation });
        let oldest = sign_in.oldest_known();
        self.refresh_tokens.retain(|_, token| token.sign_in != sign_in.id || token.generation >= oldest);
    }

    pub fn end_sign_in(&mut self, sign_in: &SignInId) {
        self.sign_ins.remove(sign_in);
        self.refresh_tokens.retain(|_, token| token.sign_in != *sign_in);
    }

    pub fn end_sign_ins_of(&mut self, user: &UserId) {
        let theirs: Vec<SignInId> =
            self.sign_ins.rows().filter(|sign_in| sign_in.user == *user).map(|s| s.id.clone()).collect();
        for sign_in in theirs {
            self.end_sign_in(&sign_in);
        }
        // A signed-in device created the pairing, so it ends with the user's sign-ins.
        self.pairings.remove(user);
    }

    pub fn remove_second_factor(&mut self, user: &UserId) {
        self.second_factors.remove(user);
        self.backup_codes.retain(|(owner, _)| owner != user);
    }
}
