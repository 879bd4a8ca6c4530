//! Commands on invitations and pairing codes.

mod create_invitation;
mod offer_pairing;
mod redeem_pairing_code;
mod register;
mod revoke_invitation;
