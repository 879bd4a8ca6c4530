//! Signing in: the first admin, passwords, tokens and their renewal, sessions, keys, and the people an admin keeps.

mod audit;
mod invitations;
mod keys;
mod people;
mod profile;
pub mod second_factor;
mod sessions;
mod settings;
