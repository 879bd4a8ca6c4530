//! Commands on API keys.

mod create_key;
mod create_signing_key;
mod revoke_key;
mod revoke_tokens;

pub(super) use create_key::put_key;
