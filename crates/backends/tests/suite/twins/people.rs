//! What is asked about accounts besides signing in.

use super::asks::{NAMES, account, later};
use super::dice::Dice;
use super::world::World;
use parlor_model::command::{NewInvitation, ProfileChanges};
use parlor_model::{Command, InvitationId, SecretHash, SiteRole};

pub fn change_profile(dice: &mut Dice, _: &mut World) -> Command {
    Command::ChangeProfile(ProfileChanges {
        display_name: dice.maybe(|dice| dice.one_of(&NAMES).into()),
        avatar_url: dice.maybe(|dice| dice.one_of(&[None, Some("/uploads/me.png".into())])),
    })
}

pub fn create_invitation(dice: &mut Dice, world: &mut World) -> Command {
    Command::CreateInvitation(NewInvitation {
        role: dice.one_of(&[SiteRole::User, SiteRole::User, SiteRole::Admin]),
        note: dice.maybe(|dice| dice.one_of(&NAMES).into()),
        uses: dice.one_of(&[1, 1, 2, 0]),
        expires_at: later(dice, world),
        secret: world.new_secret(),
    })
}

pub fn revoke_invitation(dice: &mut Dice, world: &mut World) -> Command {
    let known: Vec<InvitationId> = world.invitations.iter().map(|(id, _)| id.clone()).collect();
    Command::RevokeInvitation { invitation: dice.known(&known, InvitationId::stored("never")) }
}

pub fn register(dice: &mut Dice, world: &mut World) -> Command {
    let known: Vec<SecretHash> = world.invitations.iter().map(|(_, secret)| *secret).collect();
    Command::Register { token: dice.known(&known, SecretHash([9; 32])), account: account(dice) }
}
