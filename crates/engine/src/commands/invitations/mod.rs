//! Commands on invitations and pairing codes.

mod accept_room_invitation;
mod create_invitation;
mod invite_to_room;
mod offer_pairing;
mod redeem_pairing_code;
mod register;
mod revoke_invitation;
mod revoke_room_invitation;
