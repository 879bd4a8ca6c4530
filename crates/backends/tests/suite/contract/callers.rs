//! Authentication of callers: sign-ins and keys are checked in the transaction that decides.

use crate::stores::kinds;
use crate::test_hub::TestHub;
use parlor_engine::commands;
use parlor_model::command::{
    ChangeProfile, ChangeUser, CreateKey, CreateSignIn, CreateUser, EndSignIn, NewUser, RefreshSignIn,
    Refreshed, RemoveUser, RevokeKey, SignedIn, UserChanges,
};
use parlor_model::query::GetMe;
use parlor_model::{Caller, Epoch, KeyId, Refusal, Scope, SecretHash, SignInId, SiteRole, Time, UserId};
use std::time::Duration;

const NOW: Time = Time(1_700_000_000_000_000);
const EXPIRES: Time = Time(NOW.0 + 1_000_000);

struct Ann {
    user: UserId,
    sign_in: SignInId,
    key: KeyId,
}

impl Ann {
    fn person(&self) -> Caller {
        Caller::person(self.user.clone(), self.sign_in.clone())
    }

    fn program(&self) -> Caller {
        Caller::program(self.user.clone(), self.key.clone())
    }
}

async fn account(test_hub: &TestHub, name: &str, byte: u8) -> Ann {
    let (operator, hub) = (Caller::OPERATOR, test_hub.hub());
    let account = NewUser {
        username: name.into(),
        display_name: None,
        role: SiteRole::User,
        password_hash: "hash".into(),
    };
    let user = hub.execute(&operator, CreateUser { account }).await.unwrap();
    let new = CreateSignIn {
        user: user.id.clone(),
        verified_password_hash: "hash".into(),
        second: None,
        refresh: SecretHash([byte; 32]),
        device: "phone".into(),
        address: "127.0.0.1".into(),
        expires_at: EXPIRES,
    };
    let SignedIn { sign_in, .. } = hub.execute(&Caller::ANONYMOUS, new).await.unwrap();
    let key = CreateKey {
        owner: Some(user.id.clone()),
        name: "script".into(),
        scopes: vec![Scope::Read, Scope::Write],
        secret: SecretHash([byte; 32]),
    };
    let key = hub.execute(&operator, key).await.unwrap();
    Ann { user: user.id.clone(), sign_in: sign_in.id.clone(), key: key.id.clone() }
}

/// Whether the hub accepts the caller. Checks that a write and a read agree on it.
async fn is_accepted(test_hub: &TestHub, caller: &Caller) -> bool {
    let change = ChangeProfile { display_name: Some("Me".into()), ..Default::default() };
    let wrote = test_hub.hub().execute(caller, change).await;
    let read = test_hub.hub().read(caller, GetMe).await;
    assert_eq!(wrote.is_ok(), read.is_ok());
    if wrote.is_err() {
        assert_eq!((wrote.err(), read.err()), (Some(Refusal::NotSignedIn), Some(Refusal::NotSignedIn)));
        return false;
    }
    true
}

/// Runs a test on a hub over each store, with a user that has a sign-in and an API key.
fn each(test: impl AsyncFn(&TestHub, &Ann)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for kind in kinds() {
        println!("store: {}", kind.name);
        runtime.block_on(async {
            let mut test_hub = TestHub::open((kind.make)(Epoch(1)), NOW);
            let ann = account(&test_hub, "ann", 1).await;
            assert!(
                is_accepted(&test_hub, &ann.person()).await && is_accepted(&test_hub, &ann.program()).await
            );
            test(&test_hub, &ann).await;
            test_hub.close().await;
        });
    }
}

async fn by_operator(test_hub: &TestHub, command: impl commands::Command) {
    test_hub.hub().execute(&Caller::OPERATOR, command).await.map(drop).unwrap();
}

#[test]
fn a_caller_with_an_expired_sign_in_is_rejected() {
    each(async |test_hub, ann| {
        test_hub.clock.set(Time(EXPIRES.0 - 1));
        assert!(is_accepted(test_hub, &ann.person()).await);
        test_hub.clock.set(EXPIRES);
        assert!(!is_accepted(test_hub, &ann.person()).await);
        assert!(is_accepted(test_hub, &ann.program()).await, "a key does not expire");
    });
}

#[test]
fn a_signed_out_caller_is_rejected() {
    each(async |test_hub, ann| {
        let end = EndSignIn { sign_in: ann.sign_in.clone() };
        test_hub.hub().execute(&ann.person(), end).await.unwrap();
        assert!(!is_accepted(test_hub, &ann.person()).await);
        assert!(is_accepted(test_hub, &ann.program()).await);
    });
}

#[test]
fn a_new_password_ends_every_sign_in() {
    each(async |test_hub, ann| {
        let changes = UserChanges { password_hash: Some("new".into()), ..Default::default() };
        by_operator(test_hub, ChangeUser { user: ann.user.clone(), changes }).await;
        assert!(!is_accepted(test_hub, &ann.person()).await);
    });
}

#[test]
fn a_revoked_key_is_rejected() {
    each(async |test_hub, ann| {
        by_operator(test_hub, RevokeKey { key: ann.key.clone() }).await;
        assert!(!is_accepted(test_hub, &ann.program()).await);
        assert!(is_accepted(test_hub, &ann.person()).await);
    });
}

#[test]
fn a_removed_user_is_rejected_with_sign_in_and_key() {
    each(async |test_hub, ann| {
        by_operator(test_hub, RemoveUser { user: ann.user.clone() }).await;
        assert!(!is_accepted(test_hub, &ann.person()).await && !is_accepted(test_hub, &ann.program()).await);
    });
}

#[test]
fn a_sign_in_or_key_of_another_user_is_rejected() {
    each(async |test_hub, ann| {
        let bob = account(test_hub, "bob", 2).await;
        let device = Caller::person(bob.user.clone(), ann.sign_in.clone());
        let key = Caller::program(bob.user.clone(), ann.key.clone());
        assert!(!is_accepted(test_hub, &device).await && !is_accepted(test_hub, &key).await);
    });
}

#[test]
fn the_previous_refresh_token_is_accepted_within_the_grace_period_and_revokes_the_family_after_it() {
    each(async |test_hub, ann| {
        let mut next_secret = 10;
        let mut refresh = async |token: u8| {
            next_secret += 1;
            let command = RefreshSignIn {
                token: SecretHash([token; 32]),
                next: SecretHash([next_secret; 32]),
                expires_at: Time(NOW.0 + 100_000_000),
                grace: Duration::from_secs(10),
            };
            test_hub.hub().execute(&Caller::ANONYMOUS, command).await.unwrap()
        };
        let signed_in = |receipt| matches!(receipt, Refreshed::SignedIn(_));
        assert!(signed_in(refresh(1).await));
        test_hub.clock.set(NOW.plus(Duration::from_millis(9_999)));
        assert!(signed_in(refresh(1).await), "within the grace period");
        // The grace period starts at the first refresh; using the old token again does not extend it.
        test_hub.clock.set(NOW.plus(Duration::from_millis(10_001)));
        assert_eq!(refresh(1).await, Refreshed::FamilyRevoked);
        assert!(!is_accepted(test_hub, &ann.person()).await);
    });
}

#[test]
fn the_oldest_of_many_used_refresh_tokens_are_forgotten_while_the_sign_in_lasts() {
    each(async |test_hub, ann| {
        let refresh = async |token: u8, next: u8| {
            let command = RefreshSignIn {
                token: SecretHash([token; 32]),
                next: SecretHash([next; 32]),
                expires_at: Time(NOW.0 + 100_000_000),
                grace: Duration::ZERO,
            };
            test_hub.hub().execute(&Caller::ANONYMOUS, command).await
        };
        for token in 1..=101 {
            assert!(matches!(refresh(token, token + 1).await, Ok(Refreshed::SignedIn(_))), "{token}");
        }
        assert_eq!(refresh(1, 200).await, Err(Refusal::TokenRevoked));
        assert!(is_accepted(test_hub, &ann.person()).await);
        assert_eq!(refresh(2, 200).await, Ok(Refreshed::FamilyRevoked));
        assert!(!is_accepted(test_hub, &ann.person()).await);
    });
}
