//! Queries about API keys.

mod list_keys;
