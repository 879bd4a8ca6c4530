//! Queries about API keys.

mod find_key;
mod list_keys;
