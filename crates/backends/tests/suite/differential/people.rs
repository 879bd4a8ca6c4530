//! Random commands for accounts: profile, invitations, pairing, second factor, settings.

use super::asks::{NAMES, account, later, proof, room, user};
use super::dice::Dice;
use super::world::World;
use parlor_model::command::{
    AcceptRoomInvitation, ChangeProfile, ChangeSettings, ConfirmSecondFactor, CreateInvitation, InviteToRoom,
    OfferPairing, OfferSecondFactor, RedeemPairingCode, Register, RemoveSecondFactor, RevokeInvitation,
    RevokeRoomInvitation, SetUp,
};
use parlor_model::{
    InvitationId, RoomId, RoomRole, SealedKey, SecondProof, SecretHash, SettingChanges, SiteRole, UploadId,
};

pub fn change_profile(dice: &mut Dice, world: &World) -> ChangeProfile {
    ChangeProfile {
        display_name: dice.maybe(|dice| dice.one_of(&NAMES).into()),
        avatar_url: dice
            .maybe(|dice| {
                let upload = dice.known(&world.uploads, UploadId::stored("never"));
                dice.one_of(&[None, Some(format!("/uploads/{upload}").into())])
            })
            .into(),
    }
}

pub fn create_invitation(dice: &mut Dice, world: &mut World) -> CreateInvitation {
    CreateInvitation {
        role: dice.one_of(&[SiteRole::User, SiteRole::User, SiteRole::Admin]),
        note: dice.maybe(|dice| dice.one_of(&NAMES).into()),
        uses: dice.one_of(&[1, 1, 2, 0]),
        expires_at: later(dice, world),
        secret: world.new_secret(),
    }
}

pub fn offer_pairing(dice: &mut Dice, world: &mut World) -> OfferPairing {
    let code = world.new_secret();
    world.pairings.push(code);
    OfferPairing { code, expires_at: later(dice, world) }
}

pub fn redeem_pairing_code(dice: &mut Dice, world: &mut World) -> RedeemPairingCode {
    let code = dice.known(&world.pairings, SecretHash([9; 32]));
    RedeemPairingCode { code, name: "laptop".into(), secret: world.new_secret() }
}

pub fn revoke_invitation(dice: &mut Dice, world: &World) -> RevokeInvitation {
    let known: Vec<InvitationId> = world.invitations.iter().map(|(id, _)| id.clone()).collect();
    RevokeInvitation { invitation: dice.known(&known, InvitationId::stored("never")) }
}

pub fn invite_to_room(dice: &mut Dice, world: &mut World) -> InviteToRoom {
    InviteToRoom {
        room: room(dice, world),
        role: dice.one_of(&[RoomRole::Member, RoomRole::Member, RoomRole::Admin]),
        expires_at: later(dice, world),
        secret: world.new_secret(),
        sealed: SealedKey(sealed(dice)),
    }
}

pub fn revoke_room_invitation(dice: &mut Dice, world: &World) -> RevokeRoomInvitation {
    let (room, invitation, _) = known_room_invitation(dice, world);
    RevokeRoomInvitation { room, invitation }
}

pub fn accept_room_invitation(dice: &mut Dice, world: &World) -> AcceptRoomInvitation {
    let (_, _, token) = known_room_invitation(dice, world);
    AcceptRoomInvitation { token }
}

fn known_room_invitation(dice: &mut Dice, world: &World) -> (RoomId, InvitationId, SecretHash) {
    let never = (RoomId::stored("never"), InvitationId::stored("never"), SecretHash([9; 32]));
    dice.known(&world.room_invitations, never)
}

pub fn register(dice: &mut Dice, world: &World) -> Register {
    let known: Vec<SecretHash> = world.invitations.iter().map(|(_, secret)| *secret).collect();
    let token = if dice.once_in(8) { None } else { Some(dice.known(&known, SecretHash([9; 32]))) };
    Register { token, account: account(dice) }
}

pub fn set_up(dice: &mut Dice, world: &World) -> SetUp {
    SetUp { token: dice.known(&world.tokens, SecretHash([9; 32])), account: account(dice) }
}

/// A sealed secret out of a few, so that some commands match the stored one.
fn sealed(dice: &mut Dice) -> Box<[u8]> {
    [dice.one_of(&[1, 1, 2])].into()
}

fn backup_code(dice: &mut Dice) -> SecretHash {
    SecretHash([dice.one_of(&BACKUP_CODES); 32])
}

pub const BACKUP_CODES: [u8; 3] = [100, 101, 102];

pub fn second_proof(dice: &mut Dice) -> Option<SecondProof> {
    match dice.roll(3) {
        0 => None,
        1 => Some(SecondProof::Backup(backup_code(dice))),
        _ => Some(SecondProof::Code { sealed: sealed(dice), step: 1 + dice.roll(200) as u64 }),
    }
}

pub fn offer_second_factor(dice: &mut Dice) -> OfferSecondFactor {
    OfferSecondFactor { sealed: sealed(dice) }
}

pub fn confirm_second_factor(dice: &mut Dice) -> ConfirmSecondFactor {
    let backup_codes = vec![backup_code(dice), backup_code(dice)];
    ConfirmSecondFactor { sealed: sealed(dice), step: dice.roll(50) as u64, backup_codes }
}

pub fn remove_second_factor(dice: &mut Dice, world: &mut World) -> RemoveSecondFactor {
    let user = user(dice, world);
    let verified_password_hash = dice.maybe(|dice| proof(dice, world, &user));
    RemoveSecondFactor { user, verified_password_hash }
}

pub fn change_settings(dice: &mut Dice) -> ChangeSettings {
    let changes = SettingChanges {
        name: dice.maybe(|dice| dice.maybe(|dice| dice.one_of(&NAMES).into())).into(),
        // Rarely disabled, so that registrations succeed.
        invitations: Some(dice.one_of(&[None, Some(true), Some(true), Some(false)])).into(),
        lockout_failures: dice.maybe(|dice| dice.one_of(&[None, Some(0), Some(3)])).into(),
        lockout_seconds: dice.maybe(|dice| dice.one_of(&[None, Some(60)])).into(),
    };
    ChangeSettings { changes }
}
