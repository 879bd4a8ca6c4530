//! Queries about invitations and pairing codes.

mod list_invitations;
mod may_register;
