//! Commands on API keys.

mod create_key;
mod revoke_key;

pub(super) use create_key::put_key;
