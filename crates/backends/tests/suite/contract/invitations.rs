//! Invitations, pairings and hub settings.

use super::each;
use crate::fixtures::*;
use parlor_engine::changes::{AccountChange, Change, RoomChange, SettingsChange};
use parlor_model::{
    HubSettings, Invitation, InvitationId, Pairing, RoomInvitation, SecretHash, SiteRole, Time, UserId,
};
use std::sync::Arc;

const fn secret(byte: u8) -> SecretHash {
    SecretHash([byte; 32])
}

#[test]
fn an_invitation_is_found_by_its_secret_until_it_is_revoked() {
    each(|ports| {
        let bare =
            Invitation { role: SiteRole::User, note: None, created_by: None, ..invitation("b", 2, 100) };
        ports.change(vec![
            Change::Account(AccountChange::PutInvitation(Arc::new(bare.clone()), secret(1))),
            Change::Account(AccountChange::PutInvitation(Arc::new(invitation("a", 1, 100)), secret(2))),
            Change::Account(AccountChange::PutInvitation(Arc::new(invitation("c", 3, 50)), secret(3))),
        ]);
        ports.read(|s| {
            assert_eq!(s.invitation_with(&secret(1))?, Some(bare.clone()));
            assert_eq!(s.invitation(&InvitationId::stored("a"))?, Some(invitation("a", 1, 100)));
            assert_eq!(
                (s.invitation_with(&secret(9))?, s.invitation(&InvitationId::stored("z"))?),
                (None, None)
            );
            assert_eq!(s.invitations(Time(49))?.len(), 3);
            assert_eq!(s.invitations(Time(50))?, [invitation("a", 1, 100), bare.clone()]);
            Ok(())
        });
        ports.change(vec![Change::Account(AccountChange::RemoveInvitation(bare.id.clone()))]);
        assert_eq!(ports.read(|s| s.invitation_with(&secret(1))), None);
        assert_eq!(ports.read(|s| s.invitation_with(&secret(2))), Some(invitation("a", 1, 100)));
    });
}

#[test]
fn a_user_has_one_pairing_code_and_it_is_found_until_it_is_used() {
    each(|ports| {
        let pairing = |user: &str, at| Pairing { user: UserId::stored(user), expires_at: Time(at) };
        ports.change(vec![
            Change::Account(AccountChange::PutPairing(pairing("ann", 10), secret(1))),
            Change::Account(AccountChange::PutPairing(pairing("bob", 20), secret(2))),
            Change::Account(AccountChange::PutPairing(pairing("ann", 30), secret(3))),
        ]);
        assert_eq!(ports.read(|s| s.pairing(&secret(1))), None);
        assert_eq!(ports.read(|s| s.pairing(&secret(3))), Some(pairing("ann", 30)));
        ports.change(vec![Change::Account(AccountChange::RemovePairing(UserId::stored("ann")))]);
        assert_eq!(ports.read(|s| s.pairing(&secret(3))), None);
        assert_eq!(ports.read(|s| s.pairing(&secret(2))), Some(pairing("bob", 20)));
    });
}

#[test]
fn each_use_of_an_invitation_reduces_its_remaining_uses() {
    each(|ports| {
        let two = ["a", "b"].map(|id| invitation(id, 1, 100));
        ports.change(vec![
            Change::Account(AccountChange::PutInvitation(Arc::new(two[0].clone()), secret(1))),
            Change::Account(AccountChange::PutInvitation(Arc::new(two[1].clone()), secret(2))),
        ]);
        ports.change(vec![Change::Account(AccountChange::UseInvitation(two[0].id.clone()))]);
        ports.change(vec![Change::Account(AccountChange::UseInvitation(two[0].id.clone()))]);
        let left = |byte| ports.read(|s| s.invitation_with(&secret(byte))).unwrap().uses_left;
        assert_eq!((left(1), left(2)), (1, 3));
    });
}

#[test]
fn expired_invitations_are_deleted() {
    each(|ports| {
        ports.change(vec![
            Change::Account(AccountChange::PutInvitation(Arc::new(invitation("old", 1, 100)), secret(1))),
            Change::Account(AccountChange::PutInvitation(Arc::new(invitation("new", 1, 101)), secret(2))),
        ]);
        ports.store.run_maintenance(Time(100)).unwrap();
        let found = |byte| ports.read(|s| s.invitation_with(&secret(byte))).is_some();
        assert_eq!((found(1), found(2)), (false, true));
    });
}

#[test]
fn an_invitation_to_a_room_is_found_by_its_secret_until_it_ends() {
    each(|ports| {
        let all =
            [("a", "lobby", 2, 100), ("b", "lobby", 1, 101), ("c", "lobby", 1, 100), ("d", "den", 1, 200)]
                .map(|(id, room, created, expires)| room_invitation(id, room, created, expires));
        let put = |(number, invitation): (usize, &RoomInvitation)| {
            let secret = secret(number as u8);
            Change::Account(AccountChange::PutRoomInvitation(Arc::new(invitation.clone()), secret))
        };
        ports.change(vec![put_room("lobby"), put_room("den")]);
        ports.change(all.iter().enumerate().map(put).collect());
        let [a, b, c, d] = all;
        let (lobby, den) = (room_id("lobby"), room_id("den"));
        let listed = |now| ports.read(|s| s.room_invitations(&lobby, Time(now)));
        assert_eq!(listed(99), [b.clone(), c, a.clone()]);
        assert_eq!(listed(100), std::slice::from_ref(&b));
        assert_eq!(ports.read(|s| s.room_invitation_with(&secret(0))), Some(a.clone()));
        assert_eq!(ports.read(|s| s.room_invitation_with(&secret(9))), None);
        assert_eq!(ports.read(|s| s.room_invitation(&d.id)), Some(d.clone()));

        ports.change(vec![Change::Account(AccountChange::RemoveRoomInvitation(a.id.clone()))]);
        assert_eq!(ports.read(|s| s.room_invitation(&a.id)), None);
        ports.store.run_maintenance(Time(100)).unwrap();
        assert_eq!(ports.read(|s| s.room_invitations(&lobby, Time(0))), [b]);
        ports.change(vec![Change::Room(RoomChange::RemoveRoom(den))]);
        assert_eq!(ports.read(|s| s.room_invitation_with(&secret(3))), None);
    });
}

#[test]
fn settings_are_replaced_as_a_whole() {
    each(|ports| {
        assert_eq!(ports.read(|s| s.settings()), HubSettings::default());
        let all = HubSettings {
            name: Some("Our \"hub\"".into()),
            invitations: Some(false),
            lockout_failures: Some(u32::MAX),
            lockout_seconds: Some(0),
        };
        ports.change(vec![Change::Settings(SettingsChange::PutSettings(Arc::new(all.clone())))]);
        ports.restart();
        assert_eq!(ports.read(|s| s.settings()), all);
        let some = HubSettings { invitations: Some(true), ..Default::default() };
        ports.change(vec![Change::Settings(SettingsChange::PutSettings(Arc::new(some.clone())))]);
        assert_eq!(ports.read(|s| s.settings()), some);
    });
}
