//! Permissions of the family `accounts`, with the verdicts described in `families`.

use crate::callers::other_user;
use crate::requests::{ADMINS, PERSON, READ, WRITE};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{
    ChangePassword, ChangeProfile, ChangeUser, CreateUser, NewUser, OfferSetup, RemoveUser, SetUp,
    UserChanges,
};
use parlor_model::query::{FindAccount, FindUser, GetMe, ListUsers, NeedsSetup, SearchUsers};
use parlor_model::{Edit, SecretHash, SiteRole, Time};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::OfferSetup(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes  ", PERSON,  offer_setup(), READY;
    }
    AnyCommand::SetUp(_) => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  set_up(), READY;
    }
    AnyCommand::CreateUser(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  create_user(), READY;
    }
    AnyCommand::ChangeUser(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  change_user(), READY;
        "who   who   no    no    no    no    yes   no    no    no    no    yes  ", ADMINS,  set_password(), READY;
    }
    AnyCommand::RemoveUser(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  remove_user(), READY;
    }
    AnyCommand::ChangeProfile(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   change_profile(), READY;
    }
    AnyCommand::ChangePassword(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", PERSON,  change_password(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::FindAccount(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    yes   yes", PERSON,  find_account(), READY;
    }
    AnyQuery::NeedsSetup(_) => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  NeedsSetup, READY;
    }
    AnyQuery::GetMe(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    GetMe, READY;
    }
    AnyQuery::ListUsers(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  list_users(), READY;
    }
    AnyQuery::FindUser(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    find_user(), READY;
    }
    AnyQuery::SearchUsers(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    search_users(), READY;
    }
}

const TOKEN: SecretHash = SecretHash([7; 32]);

fn offer_setup() -> OfferSetup {
    OfferSetup { token: TOKEN, expires_at: Time(9_000) }
}

fn set_up() -> SetUp {
    SetUp { token: TOKEN, account: account() }
}

fn create_user() -> CreateUser {
    CreateUser { account: account() }
}

fn account() -> NewUser {
    let (username, password_hash) = ("new".into(), "hash".into());
    NewUser { username, display_name: None, role: SiteRole::Admin, password_hash }
}

fn change_user() -> ChangeUser {
    ChangeUser { user: other_user(), changes: UserChanges::default() }
}

fn set_password() -> ChangeUser {
    let changes = UserChanges { password_hash: Some("hash".into()), ..Default::default() };
    ChangeUser { user: other_user(), changes }
}

fn remove_user() -> RemoveUser {
    RemoveUser { user: other_user() }
}

fn change_profile() -> ChangeProfile {
    ChangeProfile { display_name: Some("New".into()), avatar_url: Edit::Keep }
}

fn change_password() -> ChangePassword {
    ChangePassword { verified_password_hash: "old hash".into(), password_hash: "new hash".into() }
}

fn find_account() -> FindAccount {
    FindAccount { username: "other_user".into() }
}

fn list_users() -> ListUsers {
    ListUsers { limit: 10, offset: 0 }
}

fn find_user() -> FindUser {
    FindUser { username: "other_user".into() }
}

fn search_users() -> SearchUsers {
    SearchUsers { text: "a".into() }
}
