//! Commands on API keys.

mod create_key;
mod revoke_key;
