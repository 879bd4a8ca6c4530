//! Credentials: sign-ins, API keys and second factors: reads, changes, and conversion between rows and model types.

use super::rows::{all, from_json, json, one, run, shared, text, time};
use super::{Sql, SqlTables};
use parlor_engine::Fault;
use parlor_engine::changes::CredentialChange;
use parlor_engine::ports::ReadCredentials;
use parlor_model::{
    ApiKey, KeyGrant, KeyId, RefreshToken, Revocation, Scope, SealedKey, SecondFactor, SecretHash, SignIn,
    SignInId, SigningKey, Time, UserId,
};
use rusqlite::types::ValueRef;
use rusqlite::{Connection, Row};
use std::sync::Arc;

impl<C: Sql> ReadCredentials for SqlTables<C> {
    fn sign_in(&mut self, id: &SignInId) -> Result<Option<SignIn>, Fault> {
        let query = format!("SELECT {} FROM sign_ins WHERE id = ?1", SIGN_IN);
        one(self.sql()?, &query, &[&id.as_str()], sign_in)
    }

    fn refresh_token(&mut self, token: &SecretHash) -> Result<Option<RefreshToken>, Fault> {
        let query = "SELECT sign_in, generation FROM refresh_tokens WHERE hash = ?1";
        one(self.sql()?, query, &[&token.0], |row| {
            Ok(RefreshToken { sign_in: SignInId::stored(row.get::<_, String>(0)?), generation: row.get(1)? })
        })
    }

    fn sign_ins(&mut self, user: &UserId, now: Time) -> Result<Vec<SignIn>, Fault> {
        let query = format!(
            "SELECT {} FROM sign_ins WHERE user = ?1 AND expires_at > ?2 ORDER BY created_at, id",
            SIGN_IN
        );
        all(self.sql()?, &query, &[&user.as_str(), &now.0], sign_in)
    }

    fn key(&mut self, id: &KeyId) -> Result<Option<ApiKey>, Fault> {
        one(self.sql()?, &format!("SELECT {} FROM api_keys WHERE id = ?1", KEY), &[&id.as_str()], key)
    }

    fn key_with(&mut self, secret: &SecretHash) -> Result<Option<ApiKey>, Fault> {
        one(self.sql()?, &format!("SELECT {} FROM api_keys WHERE secret = ?1", KEY), &[&secret.0], key)
    }

    fn keys(&mut self, owner: Option<&UserId>) -> Result<Vec<ApiKey>, Fault> {
        let query =
            format!("SELECT {} FROM api_keys WHERE ?1 IS NULL OR owner = ?1 ORDER BY created_at, id", KEY);
        all(self.sql()?, &query, &[&owner.map(UserId::as_str)], key)
    }

    fn signing_key(&mut self, id: &KeyId) -> Result<Option<SigningKey>, Fault> {
        let query = format!("SELECT {KEY}, sealed FROM api_keys WHERE id = ?1 AND sealed IS NOT NULL");
        let found = one(self.sql()?, &query, &[&id.as_str()], |row| {
            Ok((key(row)?, SealedKey(row.get::<_, Vec<u8>>(7)?.into())))
        })?;
        let Some((key, secret)) = found else { return Ok(None) };
        let query = "SELECT target, issued_before FROM token_revocations WHERE key = ?1 ORDER BY target";
        let revocations = all(self.sql()?, query, &[&id.as_str()], |row| {
            Ok(Revocation { target: text(row, 0)?, issued_before: time(row, 1)? })
        })?;
        Ok(Some(SigningKey { key, secret, revocations }))
    }

    fn signing_key_count(&mut self, owner: &UserId) -> Result<usize, Fault> {
        let query = "SELECT count(*) FROM api_keys WHERE owner = ?1 AND sealed IS NOT NULL";
        let count = one(self.sql()?, query, &[&owner.as_str()], |row| row.get::<_, i64>(0))?;
        Ok(count.unwrap_or_default() as usize)
    }

    fn second_factor(&mut self, user: &UserId) -> Result<Option<SecondFactor>, Fault> {
        let query = "SELECT user, sealed, confirmed, last_step FROM second_factors WHERE user = ?1";
        one(self.sql()?, query, &[&user.as_str()], |row| {
            Ok(SecondFactor {
                user: UserId::stored(row.get::<_, String>(0)?),
                sealed: row.get::<_, Vec<u8>>(1)?.into(),
                confirmed: row.get(2)?,
                last_step: row.get::<_, i64>(3)? as u64,
            })
        })
    }

    fn has_backup_code(&mut self, user: &UserId, code: &SecretHash) -> Result<bool, Fault> {
        let query = "SELECT 1 FROM backup_codes WHERE user = ?1 AND hash = ?2";
        Ok(one(self.sql()?, query, &[&user.as_str(), &code.0], |_| Ok(()))?.is_some())
    }
}

pub fn apply(sql: &Connection, change: &CredentialChange) -> Result<(), Fault> {
    match change {
        CredentialChange::PutSignIn(sign_in, token) => {
            run(
                sql,
                "INSERT OR REPLACE INTO sign_ins VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)",
                &[
                    &sign_in.id.as_str(),
                    &sign_in.user.as_str(),
                    &&*sign_in.device,
                    &&*sign_in.address,
                    &sign_in.created_at.0,
                    &sign_in.used_at.0,
                    &sign_in.expires_at.0,
                    &sign_in.generation,
                ],
            )?;
            let query = "INSERT INTO refresh_tokens VALUES (?1, ?2, ?3)";
            run(sql, query, &[&token.0, &sign_in.id.as_str(), &sign_in.generation])?;
            let query = "DELETE FROM refresh_tokens WHERE sign_in = ?1 AND generation < ?2";
            run(sql, query, &[&sign_in.id.as_str(), &sign_in.oldest_known()])?;
        }
        CredentialChange::EndSignIn(sign_in) => end_sign_in(sql, sign_in)?,
        CredentialChange::EndSignInsOf(user) => end_sign_ins_of(sql, user)?,
        CredentialChange::PutKey(key, secret) => put_key(sql, key, secret, None)?,
        CredentialChange::PutSigningKey(key, secret, sealed) => put_key(sql, key, secret, Some(sealed))?,
        CredentialChange::RemoveKey(key) => {
            run(sql, "DELETE FROM api_keys WHERE id = ?1", &[&key.as_str()])?;
            run(sql, "DELETE FROM token_revocations WHERE key = ?1", &[&key.as_str()])?;
        }
        CredentialChange::RevokeTokens { key, revocations, expired_before } => {
            let query = "DELETE FROM token_revocations WHERE key = ?1 AND issued_before < ?2";
            run(sql, query, &[&key.as_str(), &expired_before.0])?;
            for revocation in revocations {
                let query = "INSERT INTO token_revocations VALUES (?1, ?2, ?3) ON CONFLICT DO UPDATE \
                             SET issued_before = max(issued_before, excluded.issued_before)";
                run(sql, query, &[&key.as_str(), &&*revocation.target, &revocation.issued_before.0])?;
            }
        }
        CredentialChange::PutSecondFactor(factor) => {
            run(
                sql,
                "INSERT OR REPLACE INTO second_factors VALUES (?1, ?2, ?3, ?4)",
                &[&factor.user.as_str(), &&*factor.sealed, &factor.confirmed, &(factor.last_step as i64)],
            )?;
        }
        CredentialChange::PutBackupCodes(user, codes) => {
            run(sql, "DELETE FROM backup_codes WHERE user = ?1", &[&user.as_str()])?;
            for code in codes {
                let query = "INSERT OR IGNORE INTO backup_codes VALUES (?1, ?2)";
                run(sql, query, &[&user.as_str(), &code.0])?;
            }
        }
        CredentialChange::SpendBackupCode(user, code) => {
            let query = "DELETE FROM backup_codes WHERE user = ?1 AND hash = ?2";
            run(sql, query, &[&user.as_str(), &code.0])?;
        }
        CredentialChange::RemoveSecondFactor(user) => remove_second_factor(sql, user)?,
    }
    Ok(())
}

fn put_key(
    sql: &Connection,
    key: &ApiKey,
    secret: &SecretHash,
    sealed: Option<&SealedKey>,
) -> Result<(), Fault> {
    let grant = key.grant.as_deref();
    let places = grant.map(|grant| json(&*grant.places));
    run(
        sql,
        "INSERT INTO api_keys (id, owner, name, scopes, secret, created_at, places, notation, sealed) \
         VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)",
        &[
            &key.id.as_str(),
            &key.owner.as_str(),
            &&*key.name,
            &scopes(&key.scopes),
            &secret.0,
            &key.created_at.0,
            &places,
            &grant.map(|grant| &*grant.notation),
            &sealed.map(|sealed| &*sealed.0),
        ],
    )?;
    Ok(())
}

fn end_sign_in(sql: &Connection, sign_in: &SignInId) -> Result<(), Fault> {
    run(sql, "DELETE FROM refresh_tokens WHERE sign_in = ?1", &[&sign_in.as_str()])?;
    run(sql, "DELETE FROM sign_ins WHERE id = ?1", &[&sign_in.as_str()])?;
    Ok(())
}

pub fn end_sign_ins_of(sql: &Connection, user: &UserId) -> Result<(), Fault> {
    let query = "DELETE FROM refresh_tokens WHERE sign_in IN (SELECT id FROM sign_ins WHERE user = ?1)";
    run(sql, query, &[&user.as_str()])?;
    run(sql, "DELETE FROM sign_ins WHERE user = ?1", &[&user.as_str()])?;
    // A signed-in device created the pairing, so it ends with the user's sign-ins.
    run(sql, "DELETE FROM pairings WHERE user = ?1", &[&user.as_str()])?;
    Ok(())
}

pub fn remove_second_factor(sql: &Connection, user: &UserId) -> Result<(), Fault> {
    run(sql, "DELETE FROM second_factors WHERE user = ?1", &[&user.as_str()])?;
    run(sql, "DELETE FROM backup_codes WHERE user = ?1", &[&user.as_str()]).map(drop)
}

pub const SIGN_IN: &str = "id, user, device, address, created_at, used_at, expires_at, generation";

pub fn sign_in(row: &Row<'_>) -> rusqlite::Result<SignIn> {
    Ok(SignIn {
        id: SignInId::stored(shared(row, 0)?),
        user: UserId::stored(shared(row, 1)?),
        device: text(row, 2)?,
        address: text(row, 3)?,
        created_at: time(row, 4)?,
        used_at: time(row, 5)?,
        expires_at: time(row, 6)?,
        generation: row.get(7)?,
    })
}

pub const KEY: &str = "id, owner, name, scopes, created_at, places, notation";

pub fn key(row: &Row<'_>) -> rusqlite::Result<ApiKey> {
    Ok(ApiKey {
        id: KeyId::stored(shared(row, 0)?),
        owner: UserId::stored(shared(row, 1)?),
        name: text(row, 2)?,
        scopes: row.get_ref(3)?.as_str()?.split(' ').filter_map(Scope::parse).collect(),
        grant: grant(row)?,
        created_at: time(row, 4)?,
    })
}

fn grant(row: &Row<'_>) -> rusqlite::Result<Option<Arc<KeyGrant>>> {
    if row.get_ref(5)? == ValueRef::Null {
        return Ok(None);
    }
    Ok(Some(Arc::new(KeyGrant { places: Arc::new(from_json(row, 5)?), notation: text(row, 6)? })))
}

pub fn scopes(scopes: &[Scope]) -> String {
    scopes.iter().map(|scope| scope.as_str()).collect::<Vec<_>>().join(" ")
}
