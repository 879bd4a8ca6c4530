//! Queries about accounts and profiles.

mod get_me;
mod list_users;
mod search_users;
