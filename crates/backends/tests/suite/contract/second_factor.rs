//! Second factors and their backup codes.

use super::{Ports, each};
use crate::fixtures::*;
use parlor_engine::changes::{AccountChange, Change, CredentialChange};
use parlor_model::{SecondFactor, SecretHash};
use std::sync::Arc;

pub fn factor(user: &str) -> SecondFactor {
    SecondFactor { user: user_id(user), sealed: [0, 1, 255].into(), confirmed: true, last_step: u64::MAX / 2 }
}

fn codes(ports: &Ports, user: &str) -> [bool; 3] {
    [1, 2, 3].map(|byte| ports.read(|s| s.has_backup_code(&user_id(user), &SecretHash([byte; 32]))))
}

fn two_users(ports: &mut Ports) {
    for user in ["ann", "bob"] {
        let hashes = vec![SecretHash([1; 32]), SecretHash([2; 32])];
        ports.change(vec![
            put_user(user, 1),
            Change::Credential(CredentialChange::PutSecondFactor(Arc::new(factor(user)))),
            Change::Credential(CredentialChange::PutBackupCodes(user_id(user), hashes)),
        ]);
    }
}

#[test]
fn a_second_factor_keeps_every_field_and_is_replaced_as_a_whole() {
    each(|ports| {
        two_users(ports);
        assert_eq!(ports.read(|s| s.second_factor(&user_id("ann"))), Some(factor("ann")));
        assert_eq!(ports.read(|s| s.second_factor(&user_id("cyd"))), None);
        let other = SecondFactor { sealed: [].into(), confirmed: false, last_step: 0, ..factor("ann") };
        ports.change(vec![Change::Credential(CredentialChange::PutSecondFactor(Arc::new(other.clone())))]);
        assert_eq!(ports.read(|s| s.second_factor(&user_id("ann"))), Some(other));
        assert_eq!(ports.read(|s| s.second_factor(&user_id("bob"))), Some(factor("bob")));
    });
}

#[test]
fn a_backup_code_belongs_to_its_user_and_is_valid_once() {
    each(|ports| {
        two_users(ports);
        assert_eq!((codes(ports, "ann"), codes(ports, "cyd")), ([true, true, false], [false; 3]));
        ports.change(vec![Change::Credential(CredentialChange::SpendBackupCode(
            user_id("ann"),
            SecretHash([1; 32]),
        ))]);
        assert_eq!((codes(ports, "ann"), codes(ports, "bob")), ([false, true, false], [true, true, false]));
        ports.change(vec![Change::Credential(CredentialChange::PutBackupCodes(
            user_id("ann"),
            vec![SecretHash([3; 32])],
        ))]);
        assert_eq!(codes(ports, "ann"), [false, false, true], "new codes replace the remaining ones");
    });
}

#[test]
fn a_second_factor_is_deleted_with_its_codes_and_with_its_user() {
    each(|ports| {
        two_users(ports);
        ports.change(vec![Change::Credential(CredentialChange::RemoveSecondFactor(user_id("ann")))]);
        assert_eq!(ports.read(|s| s.second_factor(&user_id("ann"))), None);
        assert_eq!((codes(ports, "ann"), codes(ports, "bob")), ([false; 3], [true, true, false]));
        ports.change(vec![Change::Account(AccountChange::RemoveUser(user_id("bob")))]);
        assert_eq!(ports.read(|s| s.second_factor(&user_id("bob"))), None);
        assert_eq!(codes(ports, "bob"), [false; 3]);
    });
}
