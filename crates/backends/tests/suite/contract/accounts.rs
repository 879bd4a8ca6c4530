//! Users, sign-ins and API keys.

use super::each;
use crate::fixtures::*;
use parlor_engine::changes::{AccountChange, Change, CredentialChange, MailChange};
use parlor_model::{
    ApiKey, Delivery, DeliveryState, KeyId, RefreshToken, Revocation, Scope, SealedKey, SecretHash, SignIn,
    SignInId, SigningKey, SiteRole, Subscription, Time, User,
};
use std::sync::Arc;

const fn secret(byte: u8) -> SecretHash {
    SecretHash([byte; 32])
}

#[test]
fn a_user_keeps_every_field_and_is_found_by_name_in_any_case() {
    each(|ports| {
        let plain = User {
            locked_until: None,
            max_connections: None,
            source_patterns: Vec::new(),
            avatar_url: None,
            second_factor: false,
            ..user("bob", 2)
        };
        ports.change(vec![
            put_user("Ann", 1),
            Change::Account(AccountChange::PutUser(Arc::new(plain.clone()))),
        ]);
        let found = |name: &'static str| ports.read(|s| s.user_named(name));
        assert_eq!(found("aNN"), Some(user("Ann", 1)));
        assert_eq!(found("bob"), Some(plain));
        assert_eq!((found("an"), found("Annn"), found("")), (None, None, None));
        assert_eq!(ports.read(|s| s.user(&user_id("ann"))), None, "ids are not names");
    });
}

#[test]
fn putting_a_user_again_replaces_the_user() {
    each(|ports| {
        ports.change(vec![put_user("ann", 1), put_user("bob", 2)]);
        let promoted = User { role: SiteRole::Admin, display_name: "Boss".into(), ..user("ann", 1) };
        assert_eq!(ports.read(|s| s.admins()), 0);
        ports.change(vec![Change::Account(AccountChange::PutUser(Arc::new(promoted.clone())))]);
        assert_eq!(ports.read(|s| s.users(9, 0)), (vec![promoted, user("bob", 2)], 2));
        assert_eq!(ports.read(|s| s.admins()), 1);
    });
}

#[test]
fn users_are_listed_in_pages_oldest_first() {
    each(|ports| {
        ports.change(vec![put_user("c", 3), put_user("a", 2), put_user("b", 2), put_user("d", 1)]);
        let page = |limit, offset| {
            let (users, total) = ports.read(|s| s.users(limit, offset));
            assert_eq!(total, 4);
            users.iter().map(|user| user.id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(page(usize::MAX, 0), ["d", "a", "b", "c"]);
        assert_eq!(page(2, 1), ["a", "b"]);
        assert_eq!(page(2, 4), [""; 0]);
    });
}

#[test]
fn users_are_found_by_a_part_of_username_or_display_name() {
    each(|ports| {
        let named = |id: &str, display: &str| {
            Change::Account(AccountChange::PutUser(Arc::new(User {
                display_name: display.into(),
                ..user(id, 1)
            })))
        };
        ports.change(vec![
            named("zoe_1", "Zoë"),
            named("bob", "100% Bob"),
            named("Anna", "A\\B"),
            named("zed", "Bobby Tables"),
        ]);
        let found = |text: &'static str, limit| {
            let users = ports.read(|s| s.search_users(text, &user_id("Anna"), limit));
            users.iter().map(|user| user.id.to_string()).collect::<Vec<_>>()
        };
        assert_eq!(found("BOB", 9), ["bob", "zed"]);
        assert_eq!(found("z", 9), ["zed", "zoe_1"]);
        assert_eq!(found("z", 1), ["zed"]);
        assert_eq!(found("%", 9), ["bob"], "wildcards are plain text");
        assert_eq!(found("_", 9), ["zoe_1"]);
        assert_eq!(found("\\", 9), [""; 0], "the caller is left out");
        assert_eq!(found("nobody", 9), [""; 0]);
    });
}

#[test]
fn a_refresh_token_has_the_generation_in_which_it_was_created() {
    each(|ports| {
        let first = sign_in("phone", "ann", 100);
        let renewed = SignIn { used_at: Time(50), expires_at: Time(200), generation: 4, ..first.clone() };
        ports.change(vec![Change::Credential(CredentialChange::PutSignIn(
            Arc::new(first.clone()),
            secret(1),
        ))]);
        let token = |byte| ports.read(|s| s.refresh_token(&secret(byte)));
        let expected = |generation| Some(RefreshToken { sign_in: SignInId::stored("phone"), generation });
        assert_eq!((token(1), token(2)), (expected(3), None));
        assert_eq!(ports.read(|s| s.sign_in(&first.id)), Some(first.clone()));
        ports.change(vec![Change::Credential(CredentialChange::PutSignIn(
            Arc::new(renewed.clone()),
            secret(2),
        ))]);
        let token = |byte| ports.read(|s| s.refresh_token(&secret(byte)));
        assert_eq!((token(1), token(2)), (expected(3), expected(4)));
        assert_eq!(ports.read(|s| s.sign_in(&first.id)), Some(renewed));
    });
}

#[test]
fn ending_a_sign_in_deletes_its_tokens() {
    each(|ports| {
        let put = |id: &str, user: &str, token| {
            Change::Credential(CredentialChange::PutSignIn(Arc::new(sign_in(id, user, 100)), secret(token)))
        };
        ports.change(vec![
            put("a1", "ann", 1),
            put("a2", "ann", 2),
            put("b1", "bob", 3),
            put("a1", "ann", 4),
        ]);
        ports.change(vec![Change::Credential(CredentialChange::EndSignIn(SignInId::stored("a1")))]);
        let tokens = |ports: &super::Ports| {
            [1, 2, 3, 4].map(|byte| ports.read(|s| s.refresh_token(&secret(byte))).is_some())
        };
        assert_eq!(tokens(ports), [false, true, true, false]);
        assert_eq!(ports.read(|s| s.sign_in(&SignInId::stored("a1"))), None);
        ports.change(vec![Change::Credential(CredentialChange::EndSignInsOf(user_id("ann")))]);
        assert_eq!(tokens(ports), [false, false, true, false]);
        assert_eq!(ports.read(|s| s.sign_ins(&user_id("ann"), Time(0))), []);
        assert_eq!(ports.read(|s| s.sign_ins(&user_id("bob"), Time(0))).len(), 1);
    });
}

#[test]
fn expired_sign_ins_are_not_listed() {
    each(|ports| {
        let old = sign_in("old", "ann", 100);
        let new = SignIn { created_at: Time(9), ..sign_in("new", "ann", 200) };
        ports.change(vec![
            Change::Credential(CredentialChange::PutSignIn(Arc::new(new.clone()), secret(1))),
            Change::Credential(CredentialChange::PutSignIn(Arc::new(old.clone()), secret(2))),
        ]);
        let listed = |now| ports.read(|s| s.sign_ins(&user_id("ann"), Time(now)));
        assert_eq!(listed(99), [old.clone(), new.clone()]);
        assert_eq!(listed(100), [new]);
        assert_eq!(listed(200), []);
        assert_eq!(ports.read(|s| s.sign_in(&old.id)), Some(old), "it is stored until the next maintenance");
    });
}

#[test]
fn a_key_is_found_by_its_secret_until_it_is_revoked() {
    each(|ports| {
        let every_scope = ApiKey { scopes: Scope::ALL.to_vec(), ..key("k1", "ann", 2) };
        ports.change(vec![
            Change::Credential(CredentialChange::PutKey(Arc::new(every_scope.clone()), secret(1))),
            Change::Credential(CredentialChange::PutKey(Arc::new(key("k2", "ann", 1)), secret(2))),
            Change::Credential(CredentialChange::PutKey(Arc::new(key("k3", "bob", 3)), secret(3))),
        ]);
        assert_eq!(ports.read(|s| s.key_with(&secret(1))), Some(every_scope.clone()));
        assert_eq!(ports.read(|s| s.key_with(&secret(9))), None);
        assert_eq!(ports.read(|s| s.key(&KeyId::stored("k2"))), Some(key("k2", "ann", 1)));
        assert_eq!(ports.read(|s| s.keys(Some(&user_id("ann")))), [key("k2", "ann", 1), every_scope]);
        ports.change(vec![Change::Credential(CredentialChange::RemoveKey(KeyId::stored("k1")))]);
        assert_eq!(ports.read(|s| s.key_with(&secret(1))), None);
        assert_eq!(ports.read(|s| s.keys(None)), [key("k2", "ann", 1), key("k3", "bob", 3)]);
    });
}

#[test]
fn a_signing_key_keeps_its_grant_its_secret_and_the_latest_revocations() {
    each(|ports| {
        let (id, sealed) = (KeyId::stored("k1"), SealedKey([4, 2].into()));
        let signing = signing_key("k1", "ann", 2);
        ports.change(vec![
            Change::Credential(CredentialChange::PutSigningKey(
                Arc::new(signing.clone()),
                secret(1),
                sealed.clone(),
            )),
            Change::Credential(CredentialChange::PutKey(Arc::new(key("k2", "ann", 1)), secret(2))),
        ]);
        let found = |revocations| SigningKey { key: signing.clone(), secret: sealed.clone(), revocations };
        assert_eq!(ports.read(|s| s.signing_key(&id)), Some(found(Vec::new())));
        assert_eq!(ports.read(|s| s.signing_key(&KeyId::stored("k2"))), None);
        assert_eq!(ports.read(|s| s.key_with(&secret(1))), Some(signing.clone()));
        assert_eq!(ports.read(|s| s.signing_key_count(&user_id("ann"))), 1);
        let revocation =
            |target: &str, before| Revocation { target: target.into(), issued_before: Time(before) };
        let mut revoke = |revocations: &[(&str, i64)], expired_before| {
            let revocations = revocations.iter().map(|(target, before)| revocation(target, *before));
            ports.change(vec![Change::Credential(CredentialChange::RevokeTokens {
                key: id.clone(),
                revocations: revocations.collect(),
                expired_before: Time(expired_before),
            })]);
            ports.read(|s| s.signing_key(&id)).unwrap().revocations
        };
        assert_eq!(revoke(&[("b", 5), ("a", 6)], 0), [revocation("a", 6), revocation("b", 5)]);
        assert_eq!(revoke(&[("a", 4), ("c", 9)], 6), [revocation("a", 6), revocation("c", 9)]);
        assert_eq!(revoke(&[("a", 10)], 6), [revocation("a", 10), revocation("c", 9)]);
        ports.change(vec![Change::Credential(CredentialChange::RemoveKey(id.clone()))]);
        assert_eq!(ports.read(|s| s.signing_key(&id)), None);
        ports.change(vec![Change::Credential(CredentialChange::PutSigningKey(
            Arc::new(signing.clone()),
            secret(1),
            sealed.clone(),
        ))]);
        assert_eq!(
            ports.read(|s| s.signing_key(&id)),
            Some(found(Vec::new())),
            "revocations end with the key"
        );
    });
}

#[test]
fn only_the_latest_setup_link_is_valid() {
    each(|ports| {
        assert_eq!(ports.read(|s| s.setup()), None);
        ports.change(vec![Change::Account(AccountChange::OfferSetup(Some((secret(1), Time(10)))))]);
        ports.change(vec![Change::Account(AccountChange::OfferSetup(Some((secret(2), Time(20)))))]);
        assert_eq!(ports.read(|s| s.setup()), Some((secret(2), Time(20))));
        ports.change(vec![Change::Account(AccountChange::OfferSetup(None))]);
        assert_eq!(ports.read(|s| s.setup()), None);
    });
}

#[test]
fn removing_a_user_deletes_everything_that_could_act_for_them() {
    each(|ports| {
        let subscription = Subscription {
            agent: agent_id("coder"),
            session: None,
            pattern: parlor_model::Pattern::parse("slack/**").unwrap(),
            added_at: Time(3),
        };
        let mut changes = vec![put_room("lobby")];
        for (id, agent) in [("ann", "coder"), ("bob", "writer")] {
            changes.extend([put_user(id, 1), put_agent(agent, id)]);
            changes.extend([person(id), agent_member(agent)].map(|member| put_member("lobby", member, 2)));
            let byte = id.as_bytes()[0];
            changes.push(Change::Credential(CredentialChange::PutSignIn(
                Arc::new(sign_in(id, id, 100)),
                secret(byte),
            )));
            changes
                .push(Change::Credential(CredentialChange::PutKey(Arc::new(key(id, id, 1)), secret(byte))));
        }
        changes.push(Change::Mail(MailChange::PutSubscription(subscription.clone())));
        changes.push(Change::Mail(MailChange::PutSubscription(Subscription {
            agent: agent_id("writer"),
            ..subscription.clone()
        })));
        ports.change(changes);
        ports.post(message("hello", "lobby", "ann", 1));
        let put = |agent| {
            let (delivery, seq) = (delivery("hello", mailbox(agent, None)), parlor_model::Seq(1));
            Change::Mail(MailChange::PutDelivery { delivery, seq })
        };
        ports.change(vec![put("coder"), put("writer")]);
        ports.change(
            ["coder", "writer"]
                .map(|agent| Change::Mail(MailChange::PutSession(session(agent, "main", 3))))
                .into(),
        );
        let hello = Arc::new(message("hello", "lobby", "ann", 1));
        ports.change(vec![Change::Mail(MailChange::DeadLetter {
            message: hello.clone(),
            reason: "no_subscribers",
        })]);
        let dead_letter = |agent| {
            let mailbox = mailbox(agent, None);
            Change::Mail(MailChange::DeadLetterDelivery {
                mailbox,
                message: hello.clone(),
                reason: "not_acknowledged".into(),
            })
        };
        ports.change(vec![dead_letter("coder"), dead_letter("writer")]);

        ports.change(vec![Change::Account(AccountChange::RemoveUser(user_id("ann")))]);
        let a = secret(b'a');
        ports.read(|s| {
            assert_eq!((s.user(&user_id("ann"))?, s.user_named("ann")?), (None, None));
            assert_eq!((s.sign_in(&SignInId::stored("ann"))?, s.refresh_token(&a)?), (None, None));
            assert_eq!((s.key(&KeyId::stored("ann"))?, s.key_with(&a)?), (None, None));
            assert_eq!((s.agent(&agent_id("coder"))?, s.agents_of(&user_id("ann"))?), (None, vec![]));
            assert_eq!(s.mail(&mailbox("coder", None), ALL_MAIL)?, []);
            assert_eq!(
                (s.sessions(&agent_id("coder"))?, s.sessions(&agent_id("writer"))?.len()),
                (vec![], 1)
            );
            let letters = s.dead_letters(ALL_MAIL)?;
            let kept: Vec<_> = letters.into_iter().map(|letter| letter.mailbox).collect();
            assert_eq!(kept, [None, Some(mailbox("writer", None))]);
            let members = s.members(&room_id("lobby"), 9, 0)?;
            let left: Vec<_> = members.iter().map(|member| member.member.clone()).collect();
            assert_eq!(left, [person("bob"), agent_member("writer")]);
            let dead = Delivery { state: DeliveryState::Dead, ..delivery("hello", mailbox("writer", None)) };
            assert_eq!(s.deliveries(&message_id("hello"))?, [dead]);
            let hello = s.message(&message_id("hello"))?.expect("messages of a removed user stay");
            assert_eq!(&*hello.sender_name, "ann");
            assert!(s.refresh_token(&secret(b'b'))?.is_some() && s.key_with(&secret(b'b'))?.is_some());
            Ok(())
        });
        let kept = Subscription { agent: agent_id("writer"), ..subscription };
        assert_eq!(ports.store.subscriptions().unwrap(), (vec![agent("writer", "bob")], vec![kept]));
    });
}
