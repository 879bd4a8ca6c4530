//! Commands on accounts and profiles.

mod account_changes;
mod change_password;
mod change_profile;
mod change_user;
mod create_user;
pub(crate) mod new_account;
mod offer_setup;
mod remove_user;
mod set_up;
pub(crate) mod welcome;

pub(super) use account_changes::revoke_agent_tokens;
