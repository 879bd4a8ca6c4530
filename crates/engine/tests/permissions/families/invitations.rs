//! Permissions of the family `invitations`, with the verdicts described in `families`.

use crate::callers::lobby;
use crate::requests::{ADMINS, PERSON, READ, WRITE};
use crate::stored::*;
use crate::table::table;
use parlor_engine::commands::AnyCommand;
use parlor_engine::queries::AnyQuery;
use parlor_model::command::{
    AcceptRoomInvitation, CreateInvitation, InviteToRoom, NewUser, OfferPairing, RedeemPairingCode, Register,
    RevokeInvitation, RevokeRoomInvitation,
};
use parlor_model::query::{GetRoomInvitation, ListInvitations, ListRoomInvitations, MayRegister};
use parlor_model::{InvitationId, RoomRole, SealedKey, SecretHash, SiteRole, Time};

table! { commands: AnyCommand;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyCommand::CreateInvitation(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  create_invitation(), READY;
        "who   who   no    no    no    no    no    no    no    no    no    no   ", ADMINS,  create_invitation(), NO_INVITATIONS;
    }
    AnyCommand::RevokeInvitation(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  revoke_invitation(), INVITATION;
        "who   who   no    no    no    no    ?inv  no    no    no    ?inv  ?inv ", ADMINS,  revoke_invitation(), READY;
    }
    AnyCommand::Register(_) => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  register(Some(INVITATION_TOKEN)), INVITATION;
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  register(Some(INVITATION_TOKEN)), INVITATION_OF_AN_ADMIN;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(Some(INVITATION_TOKEN)), INVITATION_OF_FORMER_ADMIN;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(Some(INVITATION_TOKEN)), INVITATION_OF_REMOVED_USER;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(Some(INVITATION_TOKEN)), SPENT_INVITATION;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(Some(INVITATION_TOKEN)), EXPIRED_INVITATION;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(Some(INVITATION_TOKEN)), NO_INVITATIONS;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  register(Some(INVITATION_TOKEN)), READY;
        "no    no    no    no    no    no    no    no    no    no    no    no   ", PERSON,  register(None), READY;
    }
    AnyCommand::OfferPairing(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    no    who  ", PERSON,  offer_pairing(), READY;
    }
    AnyCommand::RedeemPairingCode(_) => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  redeem_pairing_code(), PAIRING;
        "?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair", PERSON,  redeem_pairing_code(), EXPIRED_PAIRING;
        "?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair", PERSON,  redeem_pairing_code(), PAIRING_OF_REMOVED_USER;
        "?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair ?pair", PERSON,  redeem_pairing_code(), READY;
    }
    AnyCommand::InviteToRoom(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   invite_to_room(RoomRole::Member), READY;
        "who   who   out   no    no    yes   out   out   out   no    yes   who  ", WRITE,   invite_to_room(RoomRole::Admin), READY;
        "who   who   out   no    no    no    out   out   out   no    no    who  ", WRITE,   invite_to_room(RoomRole::Owner), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   invite_to_room(RoomRole::Member), NO_ROOM;
    }
    AnyCommand::RevokeRoomInvitation(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   revoke_room_invitation(), ROOM_INVITATION;
        "who   who   out   no    ?inv  ?inv  out   out   out   no    ?inv  who  ", WRITE,   revoke_room_invitation(), READY;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   revoke_room_invitation(), NO_ROOM;
    }
    AnyCommand::AcceptRoomInvitation(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   accept_room_invitation(), ROOM_INVITATION;
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", WRITE,   accept_room_invitation(), OWNERS_INVITATION_OF_ADMIN;
        "who   who   ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  no    ?inv  who  ", WRITE,   accept_room_invitation(), ADMINS_INVITATION_OF_ADMIN;
        "who   who   ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  no    ?inv  who  ", WRITE,   accept_room_invitation(), ROOM_INVITATION_OF_FORMER_ADMIN;
        "who   who   ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  no    ?inv  who  ", WRITE,   accept_room_invitation(), ROOM_INVITATION_OF_REMOVED_MEMBER;
        "who   who   ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  no    ?inv  who  ", WRITE,   accept_room_invitation(), EXPIRED_ROOM_INVITATION;
        "who   who   ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  no    ?inv  who  ", WRITE,   accept_room_invitation(), INVITATION_TO_REMOVED_ROOM;
        "who   who   ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  no    ?inv  who  ", WRITE,   accept_room_invitation(), READY;
    }
}

table! { queries: AnyQuery;
//       anon- re-   non-  mem-  room  room  site  agent other key   key   oper-
//       ymous voked membr ber   admin owner admin owner owner w/out with  ator
    AnyQuery::ListInvitations(_) => {
        "who   who   no    no    no    no    yes   no    no    no    yes   yes  ", ADMINS,  ListInvitations, READY;
    }
    AnyQuery::MayRegister(_) => {
        "yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes   yes  ", PERSON,  may_register(Some(INVITATION_TOKEN)), INVITATION;
        "?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv ", PERSON,  may_register(Some(INVITATION_TOKEN)), EXPIRED_INVITATION;
        "no    no    no    no    no    no    no    no    no    no    no    no   ", PERSON,  may_register(None), READY;
    }
    AnyQuery::ListRoomInvitations(_) => {
        "who   who   out   no    yes   yes   out   out   out   no    yes   who  ", WRITE,   list_room_invitations(), ROOM_INVITATION;
        "who   who   ?room ?room ?room ?room ?room ?room ?room no    ?room who  ", WRITE,   list_room_invitations(), NO_ROOM;
    }
    AnyQuery::GetRoomInvitation(_) => {
        "who   who   yes   yes   yes   yes   yes   yes   yes   no    yes   who  ", READ,    get_room_invitation(), ROOM_INVITATION;
        "who   who   ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  no    ?inv  who  ", READ,    get_room_invitation(), EXPIRED_ROOM_INVITATION;
        "who   who   ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  ?inv  no    ?inv  who  ", READ,    get_room_invitation(), READY;
    }
}

fn create_invitation() -> CreateInvitation {
    let (role, secret) = (SiteRole::Admin, SecretHash([8; 32]));
    CreateInvitation { role, note: None, uses: 1, expires_at: Time(9_000), secret }
}

fn revoke_invitation() -> RevokeInvitation {
    RevokeInvitation { invitation: InvitationId::stored("invitation") }
}

fn register(token: Option<SecretHash>) -> Register {
    let (username, password_hash) = ("new".into(), "hash".into());
    let account = NewUser { username, display_name: None, role: SiteRole::Admin, password_hash };
    Register { token, account }
}

fn may_register(token: Option<SecretHash>) -> MayRegister {
    MayRegister { token }
}

fn offer_pairing() -> OfferPairing {
    OfferPairing { code: PAIRING_CODE, expires_at: Time(9_000) }
}

fn redeem_pairing_code() -> RedeemPairingCode {
    RedeemPairingCode { code: PAIRING_CODE, name: "laptop".into(), secret: SecretHash([8; 32]) }
}

fn invite_to_room(role: RoomRole) -> InviteToRoom {
    let (secret, sealed) = (SecretHash([8; 32]), SealedKey([1].into()));
    InviteToRoom { room: lobby(), role, expires_at: Time(9_000), secret, sealed }
}

fn revoke_room_invitation() -> RevokeRoomInvitation {
    RevokeRoomInvitation { room: lobby(), invitation: InvitationId::stored("invitation") }
}

fn accept_room_invitation() -> AcceptRoomInvitation {
    AcceptRoomInvitation { token: INVITATION_TOKEN }
}

fn list_room_invitations() -> ListRoomInvitations {
    ListRoomInvitations { room: lobby() }
}

fn get_room_invitation() -> GetRoomInvitation {
    GetRoomInvitation { token: INVITATION_TOKEN }
}
