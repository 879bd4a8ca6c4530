//! Programs with a token for the agent `coder` and its session `main`: they may do only what is listed, for no other
//! agent or session, and only while the token is valid.
//!
//! Default deny: a new command or query that accepts these programs fails this test until it is listed.

use crate::callers::{CallerKind, user};
use crate::families;
use crate::fixtures::run;
use crate::table::Row;
use crate::{is_command_permitted, is_query_permitted};
use parlor_engine::changes::{AccountChange, AgentChange, Change, RunChange};
use parlor_engine::effects::Effects;
use parlor_engine::ports::{Reader, Store};
use parlor_engine::queries::AnyQuery;
use parlor_model::query::{ListMail, MailPage, MayListenToMailbox, MayUseTools};
use parlor_model::{
    Agent, AgentCredential, AgentId, Caller, EntityKind, Epoch, Mailbox, Refusal, Run, RunId, RunOutcome,
    RunState, SessionId, SiteRole, Time, User, UserId,
};
use parlor_testkit::stores::MemoryStore;
use std::collections::BTreeSet;
use std::sync::Arc;

const COMMANDS: &[&str] = &["AcknowledgeMail", "ReceiveMail", "Route"];
const QUERIES: &[&str] = &[
    "GetAuthContext",
    "ListMail",
    "ListReachableAgents",
    "MayListenToMailbox",
    "MayUseTools",
    "ResolveRecipient",
    "SearchAsAgent",
];

fn owner() -> UserId {
    CallerKind::AgentOwner.user().expect("the owner is a user")
}

/// A valid credential; the time of the requests in these tests is 1,000.
fn credential() -> AgentCredential {
    AgentCredential {
        owner: owner(),
        agent: AgentId::stored("coder"),
        session: Some(SessionId::main()),
        run: None,
        issued_at: Time(500),
        expires_at: Time(2_000),
    }
}

fn caller(credential: AgentCredential) -> Caller {
    Caller::agent(Arc::new(credential))
}

fn store_with(changes: Vec<Change>) -> (Box<dyn Store>, Arc<dyn Reader>) {
    let (mut store, reader) = MemoryStore::open(Epoch(1));
    let mut transaction = store.begin().unwrap();
    transaction.apply(&Effects { changes, ..Effects::default() }).unwrap();
    transaction.commit().unwrap();
    (store, reader)
}

/// Names of the requests that are permitted to the program, and not to anonymous callers, in at least one situation.
fn permitted<Request>(
    rows: &[Row<Request>],
    name: impl Fn(&Request) -> &'static str,
    permit: impl Fn(&Caller, &Request, &mut dyn Store, &dyn Reader) -> Result<(), Refusal>,
) -> Vec<&'static str> {
    let (who, mut names) = (CallerKind::AgentOwner, BTreeSet::new());
    for row in rows {
        let mut changes = who.changes(row.scope);
        changes.push(put_agent("coder", owner()));
        changes.extend((row.given)(who));
        let (mut store, reader) = store_with(changes);
        let is_public = permit(&Caller::ANONYMOUS, &row.request, &mut *store, &*reader).is_ok();
        if !is_public && permit(&caller(credential()), &row.request, &mut *store, &*reader).is_ok() {
            names.insert(name(&row.request));
        }
    }
    names.into_iter().collect()
}

#[test]
fn a_program_of_an_agent_may_do_only_what_is_listed() {
    assert_eq!(permitted(&families::commands(), |command| command.name(), is_command_permitted), COMMANDS);
    assert_eq!(permitted(&families::queries(), |query| query.name(), is_query_permitted), QUERIES);
}

fn put_user(user: User) -> Change {
    Change::Account(AccountChange::PutUser(Arc::new(user)))
}

fn put_agent(id: &str, owner: UserId) -> Change {
    Change::Agent(AgentChange::PutAgent(Arc::new(Agent {
        id: AgentId::stored(id),
        owner,
        name: id.into(),
        description: "".into(),
        settings: Default::default(),
        host: Default::default(),
        visibility: Default::default(),
        created_at: Time(1),
    })))
}

/// The owner with the agents `coder` and `writer`.
fn stored() -> Vec<Change> {
    let owner = owner();
    let account = put_user(user(&owner, SiteRole::User));
    vec![account, put_agent("coder", owner.clone()), put_agent("writer", owner)]
}

fn ask(query: impl Into<AnyQuery>, caller: &Caller, changes: Vec<Change>) -> Result<(), Refusal> {
    let (mut store, reader) = store_with(changes);
    is_query_permitted(caller, &query.into(), &mut *store, &*reader)
}

#[test]
fn a_program_uses_the_mailboxes_of_its_agent_and_its_session_only() {
    let missing = || Err(Refusal::NotFound(EntityKind::Agent));
    for (agent, session, expected) in [
        ("coder", None, Ok(())),
        ("coder", Some("main"), Ok(())),
        ("coder", Some("other"), missing()),
        ("writer", None, missing()),
        ("writer", Some("main"), missing()),
        ("nobody", None, missing()),
    ] {
        let mailbox = Mailbox { agent: AgentId::stored(agent), session: session.map(SessionId::stored) };
        let page = MailPage { limit: 10, offset: 0, from: None, to: None };
        let caller = caller(credential());
        let listen = MayListenToMailbox { mailbox: mailbox.clone() };
        assert_eq!(ask(listen, &caller, stored()), expected, "{mailbox:?}");
        let list = ListMail { mailbox: mailbox.clone(), page };
        assert_eq!(ask(list, &caller, stored()), expected, "{mailbox:?}");
        assert_eq!(ask(MayUseTools { mailbox }, &caller, stored()), expected);
    }
}

#[track_caller]
fn check(credential: AgentCredential, changes: Vec<Change>, is_valid: bool) {
    let mailbox = Mailbox::of(AgentId::stored("coder"));
    let expected = if is_valid { Ok(()) } else { Err(Refusal::NotSignedIn) };
    assert_eq!(
        ask(MayUseTools { mailbox }, &caller(credential.clone()), changes),
        expected,
        "{credential:?}"
    );
}

#[test]
fn a_token_is_valid_until_it_expires_or_is_revoked() {
    check(credential(), stored(), true);
    check(AgentCredential { expires_at: Time(1_000), ..credential() }, stored(), false);
    let revoked_at = |at| {
        let owner = User { agent_tokens_valid_from: Time(at), ..user(&owner(), SiteRole::User) };
        [stored(), vec![put_user(owner)]].concat()
    };
    check(credential(), revoked_at(499), true);
    check(credential(), revoked_at(500), false);
    check(credential(), revoked_at(501), false);
}

#[test]
fn a_token_is_invalid_without_its_owner_or_agent_and_after_the_agent_has_another_owner() {
    let but = |change: Change| [stored(), vec![change]].concat();
    check(credential(), but(Change::Agent(AgentChange::RemoveAgent(AgentId::stored("coder")))), false);
    check(credential(), but(put_agent("coder", UserId::stored("thief"))), false);
    check(credential(), vec![put_agent("coder", owner())], false);
}

#[test]
fn a_token_of_a_run_is_valid_while_the_run_is_active() {
    let of_run = AgentCredential { run: Some(RunId::stored("run")), ..credential() };
    let with = |agent: &str, state| {
        let stored_run = Run { agent: AgentId::stored(agent), state, ..run() };
        [stored(), vec![Change::Run(RunChange::PutRun(Arc::new(stored_run)))]].concat()
    };
    check(of_run.clone(), stored(), false);
    check(of_run.clone(), with("coder", RunState::Queued), false);
    check(of_run.clone(), with("coder", RunState::Running), true);
    check(of_run.clone(), with("writer", RunState::Running), false);
    check(of_run, with("coder", RunState::Ended(RunOutcome::Complete)), false);
}
