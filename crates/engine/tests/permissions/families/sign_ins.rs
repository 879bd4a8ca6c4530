//! Permissions of the family `sign_ins`, with the verdicts described in `families`.

use crate::callers::{other_user, user};
use crate::requests::{LATER, PERSON, TOKEN};
use crate::stored::*;
use crate::table::table;
use parlor_engine::changes::{AccountChange, Change, CredentialChange};
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{
    ConfirmSecondFactor, CreateSignIn, EndOtherSignIns, EndSignIn, OfferSecondFactor, RecordFailedSignIn,
    RefreshSignIn, RemoveSecondFactor,
};
use parlor_model::query::{GetAuthContext, GetSecondFactor, ListSignIns};
use parlor_model::{SecretHash, SignIn, SignInId, SiteRole, Time, UserId};
use std::sync::Arc;
use std::time::Duration;

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::CreateSignIn(_) => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  create_sign_in(), READY;
    }
    AnyCommand::RecordFailedSignIn(_) => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  record_failed_sign_in(), READY;
    }
    AnyCommand::RefreshSignIn(_) => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  refresh_sign_in(), READY;
    }
    AnyCommand::OfferSecondFactor(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", PERSON,  offer_second_factor(), READY;
    }
    AnyCommand::ConfirmSecondFactor(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", PERSON,  confirm_second_factor(), READY;
    }
    AnyCommand::RemoveSecondFactor(_) => {
        "who   who   no    no    no    no    no    no    no    no    no    yes  ", PERSON,  remove_second_factor("other_user"), READY;
        "who   who   no    yes   no    no    no    no    no    no    no    yes  ", PERSON,  remove_second_factor("member"), USER_OF_MEMBER_COLUMN;
        "who   who   no    no    no    no    no    no    no    no    no    ?user", PERSON,  remove_second_factor("other_user"), NO_OTHER_USER;
    }
    AnyCommand::EndOtherSignIns(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", PERSON,  EndOtherSignIns, READY;
    }
    AnyCommand::EndSignIn(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", PERSON,  end_sign_in(), OWN_DEVICE;
        "who   who   ?dev  ?dev  ?dev  ?dev  ?dev  ?dev  ?dev  no    no    who  ", PERSON,  end_sign_in(), ANOTHERS_DEVICE;
        "who   who   ?dev  ?dev  ?dev  ?dev  ?dev  ?dev  ?dev  no    no    who  ", PERSON,  end_sign_in(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::GetAuthContext(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   yes   yes   who  ", PERSON,  GetAuthContext, READY;
    }
    AnyQuery::GetSecondFactor(_) => {
        "no    no    no    no    no    no    no    no    no    no    no    no    yes", PERSON,  get_second_factor(), READY;
    }
    AnyQuery::ListSignIns(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", PERSON,  ListSignIns, READY;
    }
}

fn create_sign_in() -> CreateSignIn {
    CreateSignIn {
        user: other_user(),
        verified_password_hash: "hash".into(),
        second: None,
        refresh: TOKEN,
        device: "phone".into(),
        address: "127.0.0.1".into(),
        expires_at: LATER,
    }
}

fn record_failed_sign_in() -> RecordFailedSignIn {
    let user = Some(other_user());
    RecordFailedSignIn { user, second_factor: false, lock_after: 5, lock_until: LATER }
}

fn refresh_sign_in() -> RefreshSignIn {
    let grace = Duration::from_secs(10);
    RefreshSignIn { token: TOKEN, next: SecretHash([8; 32]), expires_at: LATER, grace }
}

fn offer_second_factor() -> OfferSecondFactor {
    OfferSecondFactor { sealed: [1, 2].into() }
}

fn confirm_second_factor() -> ConfirmSecondFactor {
    ConfirmSecondFactor { sealed: [1, 2].into(), step: 1, backup_codes: vec![TOKEN] }
}

fn remove_second_factor(user: &str) -> RemoveSecondFactor {
    RemoveSecondFactor { user: UserId::stored(user), verified_password_hash: Some("hash".into()) }
}

fn get_second_factor() -> GetSecondFactor {
    GetSecondFactor { user: other_user() }
}

fn end_sign_in() -> EndSignIn {
    EndSignIn { sign_in: named_device() }
}

/// The sign-in that the command names. It is not the one that a caller uses.
fn named_device() -> SignInId {
    SignInId::stored("named")
}

const USER_OF_MEMBER_COLUMN: Stored = |_| {
    vec![Change::Account(AccountChange::PutUser(Arc::new(user(&UserId::stored("member"), SiteRole::User))))]
};
const OWN_DEVICE: Stored = |who| who.user().map(put_device).into_iter().collect();
const ANOTHERS_DEVICE: Stored = |_| vec![put_device(other_user())];

fn put_device(user: UserId) -> Change {
    let sign_in = SignIn {
        id: named_device(),
        user,
        device: "phone".into(),
        address: "127.0.0.1".into(),
        created_at: Time(1),
        used_at: Time(1),
        expires_at: Time(5_000),
        generation: 0,
    };
    Change::Credential(CredentialChange::PutSignIn(Arc::new(sign_in), SecretHash([3; 32])))
}
