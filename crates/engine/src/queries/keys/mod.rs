//! Queries about API keys.

mod find_key;
mod find_signing_key;
mod list_keys;
