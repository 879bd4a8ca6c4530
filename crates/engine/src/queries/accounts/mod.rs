//! Queries about accounts and profiles.

mod find_account;
mod find_user;
mod get_me;
mod list_users;
mod needs_setup;
mod search_users;
