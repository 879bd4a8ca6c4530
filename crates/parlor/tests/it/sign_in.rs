//! Accounts and authentication: passwords, tokens, sign-ins, second factors, invitations, API keys, user
//! management, runtime settings, and the audit log.

mod audit;
mod invitations;
mod keys;
mod people;
mod profile;
pub mod second_factor;
mod sessions;
mod settings;
