//! Permissions of the family `keys`, with the verdicts described in `families`.

use crate::callers::other_user;
use crate::requests::{PERSON, TOKEN};
use crate::stored::*;
use crate::table::table;
use parlor_engine::changes::{Change, CredentialChange};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{CreateKey, RevokeKey};
use parlor_model::query::{FindKey, ListKeys};
use parlor_model::{ApiKey, KeyId, Scope, Time, UserId};
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

fn find_key() -> FindKey {
    FindKey { secret: TOKEN }
}
