//! A caller is who the store says it is at the moment of the decision.

use crate::stores::kinds;
use crate::test_hub::TestHub;
use parlor_model::command::{NewSignIn, NewUser, ProfileChanges, UserChanges};
use parlor_model::{
    Caller, Command, Epoch, KeyId, Query, Receipt, Refusal, Scope, SecretHash, SignInId, SiteRole, Time,
    UserId,
};
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
    let Ok(Receipt::User(user)) = hub.execute(&operator, Command::CreateUser(account)).await else {
        panic!("an account");
    };
    let new = NewSignIn {
        user: user.id.clone(),
        verified_password_hash: "hash".into(),
        second: None,
        refresh: SecretHash([byte; 32]),
        device: "phone".into(),
        address: "127.0.0.1".into(),
        expires_at: EXPIRES,
    };
    let Ok(Receipt::SignedIn { sign_in, .. }) = hub.execute(&Caller::ANONYMOUS, Command::SignIn(new)).await
    else {
        panic!("a sign-in");
    };
    let key = Command::CreateKey {
        owner: Some(user.id.clone()),
        name: "script".into(),
        scopes: vec![Scope::Read, Scope::Write],
        secret: SecretHash([byte; 32]),
    };
    let Ok(Receipt::Key(key)) = hub.execute(&operator, key).await else { panic!("a key") };
    Ann { user: user.id.clone(), sign_in: sign_in.id.clone(), key: key.id.clone() }
}

/// Whether a write and a read go through; they always agree.
async fn is_somebody(test_hub: &TestHub, caller: &Caller) -> bool {
    let profile = ProfileChanges { display_name: Some("Me".into()), ..Default::default() };
    let wrote = test_hub.hub().execute(caller, Command::ChangeProfile(profile)).await;
    let read = test_hub.hub().read(caller, Query::Me).await;
    assert_eq!(wrote.is_ok(), read.is_ok());
    if wrote.is_err() {
        assert_eq!((wrote.err(), read.err()), (Some(Refusal::NotSignedIn), Some(Refusal::NotSignedIn)));
        return false;
    }
    true
}

/// Runs a test on a hub over each store, with an account that has a device and a key.
fn each(test: impl AsyncFn(&TestHub, &Ann)) {
    let runtime = tokio::runtime::Runtime::new().unwrap();
    for kind in kinds() {
        println!("store: {}", kind.name);
        runtime.block_on(async {
            let mut test_hub = TestHub::open((kind.make)(Epoch(1)), NOW);
            let ann = account(&test_hub, "ann", 1).await;
            assert!(
                is_somebody(&test_hub, &ann.person()).await && is_somebody(&test_hub, &ann.program()).await
            );
            test(&test_hub, &ann).await;
            test_hub.close().await;
        });
    }
}

async fn by_operator(test_hub: &TestHub, command: Command) {
    test_hub.hub().execute(&Caller::OPERATOR, command).await.unwrap();
}

#[test]
fn a_device_whose_sign_in_ran_out_is_nobody() {
    each(async |test_hub, ann| {
        test_hub.clock.set(Time(EXPIRES.0 - 1));
        assert!(is_somebody(test_hub, &ann.person()).await);
        test_hub.clock.set(EXPIRES);
        assert!(!is_somebody(test_hub, &ann.person()).await);
        assert!(is_somebody(test_hub, &ann.program()).await, "a key does not run out");
    });
}

#[test]
fn a_device_that_was_signed_out_is_nobody() {
    each(async |test_hub, ann| {
        let end = Command::EndSignIn { sign_in: ann.sign_in.clone() };
        test_hub.hub().execute(&ann.person(), end).await.unwrap();
        assert!(!is_somebody(test_hub, &ann.person()).await);
        assert!(is_somebody(test_hub, &ann.program()).await);
    });
}

#[test]
fn a_new_password_signs_every_device_out() {
    each(async |test_hub, ann| {
        let changes = UserChanges { password_hash: Some("new".into()), ..Default::default() };
        by_operator(test_hub, Command::ChangeUser { user: ann.user.clone(), changes }).await;
        assert!(!is_somebody(test_hub, &ann.person()).await);
    });
}

#[test]
fn a_revoked_key_is_nobody() {
    each(async |test_hub, ann| {
        by_operator(test_hub, Command::RevokeKey { key: ann.key.clone() }).await;
        assert!(!is_somebody(test_hub, &ann.program()).await);
        assert!(is_somebody(test_hub, &ann.person()).await);
    });
}

#[test]
fn a_removed_account_is_nobody_however_it_calls() {
    each(async |test_hub, ann| {
        by_operator(test_hub, Command::RemoveUser { user: ann.user.clone() }).await;
        assert!(!is_somebody(test_hub, &ann.person()).await && !is_somebody(test_hub, &ann.program()).await);
    });
}

#[test]
fn nobody_borrows_the_device_or_the_key_of_another() {
    each(async |test_hub, ann| {
        let bob = account(test_hub, "bob", 2).await;
        let device = Caller::person(bob.user.clone(), ann.sign_in.clone());
        let key = Caller::program(bob.user.clone(), ann.key.clone());
        assert!(!is_somebody(test_hub, &device).await && !is_somebody(test_hub, &key).await);
    });
}

#[test]
fn the_token_before_the_newest_is_taken_within_the_grace_and_ends_the_family_after_it() {
    each(async |test_hub, ann| {
        let mut made = 10;
        let mut refresh = async |token: u8| {
            made += 1;
            let command = Command::Refresh {
                token: SecretHash([token; 32]),
                next: SecretHash([made; 32]),
                expires_at: Time(NOW.0 + 100_000_000),
                grace: Duration::from_secs(10),
            };
            test_hub.hub().execute(&Caller::ANONYMOUS, command).await.unwrap()
        };
        let signed_in = |receipt| matches!(receipt, Receipt::SignedIn { .. });
        assert!(signed_in(refresh(1).await));
        test_hub.clock.set(NOW.plus(Duration::from_millis(9_999)));
        assert!(signed_in(refresh(1).await), "the grace");
        // Counted from the exchange: using it does not draw it out.
        test_hub.clock.set(NOW.plus(Duration::from_millis(10_001)));
        assert_eq!(refresh(1).await, Receipt::FamilyRevoked);
        assert!(!is_somebody(test_hub, &ann.person()).await);
    });
}

#[test]
fn of_many_spent_tokens_the_oldest_are_forgotten_while_the_device_stays_signed_in() {
    each(async |test_hub, ann| {
        let refresh = async |token: u8, next: u8| {
            let command = Command::Refresh {
                token: SecretHash([token; 32]),
                next: SecretHash([next; 32]),
                expires_at: Time(NOW.0 + 100_000_000),
                grace: Duration::ZERO,
            };
            test_hub.hub().execute(&Caller::ANONYMOUS, command).await
        };
        for token in 1..=101 {
            assert!(matches!(refresh(token, token + 1).await, Ok(Receipt::SignedIn { .. })), "{token}");
        }
        assert_eq!(refresh(1, 200).await, Err(Refusal::TokenRevoked));
        assert!(is_somebody(test_hub, &ann.person()).await);
        assert_eq!(refresh(2, 200).await, Ok(Receipt::FamilyRevoked));
        assert!(!is_somebody(test_hub, &ann.person()).await);
    });
}
