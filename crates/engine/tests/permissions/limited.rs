//! Callers with a grant: a grant of everything still permits only the commands and queries listed here.
//!
//! Default deny: a new command or query that accepts callers with a grant fails this test until it is listed.

use crate::callers::{COLUMNS, CallerKind, lobby};
use crate::families;
use crate::table::Row;
use crate::{is_command_permitted, is_query_permitted};
use parlor_engine::changes::{Change, CredentialChange};
use parlor_engine::effects::Effects;
use parlor_engine::ports::{Reader, Store};
use parlor_model::{
    ApiKey, Caller, Epoch, Grant, GrantEntry, KeyGrant, KeyId, Operations, Path, Refusal, Resource, Scope,
    SecretHash, Time,
};
use parlor_testkit::stores::MemoryStore;
use std::collections::BTreeSet;
use std::sync::Arc;

const COMMANDS_OF_KEYS: &[&str] = &["Post", "Publish"];
const QUERIES_OF_KEYS: &[&str] = &[
    "GetAuthContext",
    "ListDestinationHistory",
    "ListHistory",
    "MayEnterPlace",
    "MayFollowRoom",
    "MayListOccupants",
    "MayReadOccupancy",
    "MayReadOccupantHistory",
];

/// Commands that a signed-in user with a grant may execute, including those for hosting agents.
const COMMANDS_OF_USERS: &[&str] = &[
    "AcknowledgeMail",
    "AddMember",
    "ChangeAgent",
    "ChangeSession",
    "ConnectGateway",
    "CreateAgent",
    "CreateTask",
    "DisconnectGateway",
    "Post",
    "Publish",
    "ReceiveMail",
    "RegisterAgent",
    "RemoveAgent",
    "RemoveGateway",
    "ReportTask",
    "Route",
    "SetIdlePrompt",
    "StartTurn",
    "StopSession",
    "Subscribe",
    "TriggerTurn",
    "Unsubscribe",
];
const QUERIES_OF_USERS: &[&str] = &[
    "GetAgent",
    "GetAuthContext",
    "ListConversation",
    "ListDestinationHistory",
    "ListHistory",
    "ListMail",
    "ListMailboxes",
    "ListReachableAgents",
    "ListSubscriptions",
    "ListTurns",
    "MayEnterPlace",
    "MayFollowRoom",
    "MayListOccupants",
    "MayListenToMailbox",
    "MayReadOccupancy",
    "MayReadOccupantHistory",
    "MaySpawnAgents",
    "MayUseTools",
    "ResolveRecipient",
    "SearchAsAgent",
    "SearchConversations",
];

/// Names of the requests that are permitted to a caller with this grant, and not to anonymous callers, in at least one
/// situation.
fn permitted<Request>(
    rows: &[Row<Request>],
    grant: &Grant,
    as_key: bool,
    name: impl Fn(&Request) -> &'static str,
    permit: impl Fn(&Caller, &Request, &mut dyn Store, &dyn Reader) -> Result<(), Refusal>,
) -> Vec<&'static str> {
    let mut names = BTreeSet::new();
    let kinds = COLUMNS.into_iter().filter(|who| match who {
        CallerKind::KeyWith => as_key,
        CallerKind::Anonymous | CallerKind::Revoked | CallerKind::KeyWithout => false,
        CallerKind::Operator | CallerKind::Authenticator => false,
        _ => !as_key,
    });
    for who in kinds {
        for row in rows {
            let (mut store, reader) = MemoryStore::open(Epoch(1));
            let mut changes = who.changes(row.scope);
            changes.extend((row.given)(who));
            let caller = if as_key {
                changes.push(key(who, grant));
                who.caller()
            } else {
                who.caller().limited(grant.clone().into())
            };
            let mut transaction = store.begin().unwrap();
            transaction.apply(&Effects { changes, ..Effects::default() }).unwrap();
            transaction.commit().unwrap();
            let is_public = permit(&Caller::ANONYMOUS, &row.request, &mut *store, &*reader).is_ok();
            if !is_public && permit(&caller, &row.request, &mut *store, &*reader).is_ok() {
                names.insert(name(&row.request));
            }
        }
    }
    names.into_iter().collect()
}

/// The caller's key, as a key with a grant that signs tokens.
fn key(who: CallerKind, grant: &Grant) -> Change {
    let key = ApiKey {
        id: KeyId::stored("key"),
        owner: who.user().expect("a key has an owner"),
        name: "script".into(),
        scopes: vec![Scope::Read, Scope::Write],
        grant: Some(Arc::new(KeyGrant { places: grant.clone().into(), notation: "{}".into() })),
        created_at: Time(1),
    };
    Change::Credential(CredentialChange::PutKey(Arc::new(key), SecretHash([1; 32])))
}

fn commands(grant: &Grant, as_key: bool) -> Vec<&'static str> {
    permitted(&families::commands(), grant, as_key, |command| command.name(), is_command_permitted)
}

fn queries(grant: &Grant, as_key: bool) -> Vec<&'static str> {
    permitted(&families::queries(), grant, as_key, |query| query.name(), is_query_permitted)
}

#[test]
fn a_key_with_a_grant_of_everything_may_do_only_what_is_listed() {
    let everything = Grant::everything();
    assert_eq!(commands(&everything, true), COMMANDS_OF_KEYS);
    assert_eq!(queries(&everything, true), QUERIES_OF_KEYS);
}

#[test]
fn a_user_with_a_grant_of_everything_may_do_only_what_is_listed() {
    let everything = Grant::everything();
    assert_eq!(commands(&everything, false), COMMANDS_OF_USERS);
    assert_eq!(queries(&everything, false), QUERIES_OF_USERS);
}

#[test]
fn a_grant_of_another_place_or_of_no_operation_permits_nothing_in_the_room() {
    let elsewhere = Path::parse("room/elsewhere").unwrap();
    for (resource, operations) in [
        (Resource::Exactly(elsewhere), Operations::ALL),
        (Resource::Exactly(Path::of_room(&lobby())), Operations::NONE),
    ] {
        let grant = Grant::new([GrantEntry { resource, operations }]);
        assert_eq!(commands(&grant, true), [""; 0]);
        assert_eq!(queries(&grant, true), ["GetAuthContext"]);
    }
}
