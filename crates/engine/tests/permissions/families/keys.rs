//! Permissions of the family `keys`, with the verdicts described in `families`.

use crate::callers::other_user;
use crate::requests::{PERSON, TOKEN};
use crate::stored::*;
use crate::table::table;
use parlor_engine::changes::{Change, CredentialChange};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{CreateKey, CreateSigningKey, RevokeKey, RevokeTokens};
use parlor_model::query::{FindKey, FindSigningKey, ListKeys};
use parlor_model::{ApiKey, Grant, KeyGrant, KeyId, Scope, SealedKey, Time, UserId};
use std::sync::Arc;

/// Scopes that every user may give to an own key; all others require an admin.
const COMMON: [Scope; 5] = [Scope::Read, Scope::Write, Scope::Agents, Scope::Hosting, Scope::Admin];

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::CreateKey(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    ?user", PERSON,  create_key(&COMMON), READY;
        "who   who   no    no    no    no    no    no    no    no    no    yes  ", PERSON,  create_key_for_other_user(&[Scope::Read]), READY;
        "who   who   no    no    no    no    no    no    no    no    no    ?user", PERSON,  create_key_for_other_user(&[Scope::Read]), NO_OTHER_USER;
        "who   who   no    no    no    no    yes   no    no    no    no    ?user", PERSON,  create_key(&[Scope::Sources]), READY;
        "who   who   no    no    no    no    no    no    no    no    no    admin", PERSON,  create_key_for_other_user(&[Scope::Sources]), READY;
        "who   who   no    no    no    no    no    no    no    no    no    yes  ", PERSON,  create_key_for_other_user(&[Scope::Sources]), OTHER_ADMIN;
        "who   who   no    no    no    no    yes   no    no    no    no    ?user", PERSON,  create_key(&[Scope::Read, Scope::DeadLetters]), READY;
        "who   who   no    no    no    no    no    no    no    no    no    admin", PERSON,  create_key_for_other_user(&[Scope::DeadLetters]), READY;
        "who   who   no    no    no    no    yes   no    no    no    no    ?user", PERSON,  create_key(&[Scope::Metrics]), READY;
    }
    AnyCommand::CreateSigningKey(_) => {
        "who   who   no    no    no    no    yes   no    no    no    no    ?user", PERSON,  create_signing_key(None), READY;
        "who   who   no    no    no    no    no    no    no    no    no    admin", PERSON,  create_signing_key(Some(other_user())), READY;
        "who   who   no    no    no    no    no    no    no    no    no    yes  ", PERSON,  create_signing_key(Some(other_user())), OTHER_ADMIN;
    }
    AnyCommand::RevokeTokens(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    ?key ", PERSON,  revoke_tokens(), OWN_SIGNING_KEY;
        "who   who   ?key  ?key  ?key  ?key  ?key  ?key  ?key  no    no    yes  ", PERSON,  revoke_tokens(), ANOTHERS_SIGNING_KEY;
        "who   who   ?key  ?key  ?key  ?key  ?key  ?key  ?key  no    no    ?key ", PERSON,  revoke_tokens(), OWN_KEY;
        "who   who   ?key  ?key  ?key  ?key  ?key  ?key  ?key  no    no    ?key ", PERSON,  revoke_tokens(), READY;
    }
    AnyCommand::RevokeKey(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    ?key ", PERSON,  revoke_key(), OWN_KEY;
        "who   who   ?key  ?key  ?key  ?key  ?key  ?key  ?key  no    no    yes  ", PERSON,  revoke_key(), ANOTHERS_KEY;
        "who   who   ?key  ?key  ?key  ?key  ?key  ?key  ?key  no    no    ?key ", PERSON,  revoke_key(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::FindKey(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    no    yes", PERSON,  find_key(), READY;
    }
    AnyQuery::FindSigningKey(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    no    yes", PERSON,  find_signing_key(), READY;
    }
    AnyQuery::ListKeys(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    yes  ", PERSON,  ListKeys, READY;
    }
}

fn create_key(scopes: &[Scope]) -> CreateKey {
    CreateKey { owner: None, name: "script".into(), scopes: scopes.to_vec(), secret: TOKEN }
}

fn create_key_for_other_user(scopes: &[Scope]) -> CreateKey {
    CreateKey { owner: Some(other_user()), ..create_key(scopes) }
}

fn revoke_key() -> RevokeKey {
    RevokeKey { key: named_key() }
}

/// The key that the command names. It is not the key that a caller uses.
fn named_key() -> KeyId {
    KeyId::stored("named")
}

const OWN_KEY: Stored = |who| who.user().map(put_key).into_iter().collect();
const ANOTHERS_KEY: Stored = |_| vec![put_key(other_user())];

fn put_key(owner: UserId) -> Change {
    let (name, scopes, created_at) = ("script".into(), vec![Scope::Read], Time(1));
    Change::Credential(CredentialChange::PutKey(
        Arc::new(ApiKey { id: named_key(), owner, name, scopes, grant: None, created_at }),
        TOKEN,
    ))
}

fn create_signing_key(owner: Option<UserId>) -> CreateSigningKey {
    let (id, name, secret) = (KeyId::stored("new"), "script".into(), TOKEN);
    CreateSigningKey { id, owner, name, grant: grant(), secret, sealed: sealed() }
}

fn revoke_tokens() -> RevokeTokens {
    RevokeTokens { key: named_key(), targets: vec!["client:a".into()], issued_before: Time(1) }
}

const OWN_SIGNING_KEY: Stored = |who| who.user().map(put_signing_key).into_iter().collect();
const ANOTHERS_SIGNING_KEY: Stored = |_| vec![put_signing_key(other_user())];

fn put_signing_key(owner: UserId) -> Change {
    let (name, scopes) = ("script".into(), vec![Scope::Read, Scope::Write]);
    let (grant, created_at) = (Some(Arc::new(grant())), Time(1));
    let key = Arc::new(ApiKey { id: named_key(), owner, name, scopes, grant, created_at });
    Change::Credential(CredentialChange::PutSigningKey(key, TOKEN, sealed()))
}

fn grant() -> KeyGrant {
    KeyGrant { places: Grant::everything().into(), notation: "{}".into() }
}

fn sealed() -> SealedKey {
    SealedKey([1].into())
}

fn find_signing_key() -> FindSigningKey {
    FindSigningKey { key: named_key() }
}

fn find_key() -> FindKey {
    FindKey { secret: TOKEN }
}
