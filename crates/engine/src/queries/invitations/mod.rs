//! Queries about invitations and pairing codes.

mod get_room_invitation;
mod list_invitations;
mod list_room_invitations;
mod may_register;
