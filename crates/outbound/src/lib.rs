//! Outgoing HTTP connections, and the guard against requests to private networks (SSRF).
//!
//! Owns: which addresses may be reached. An address from a user's request must not give access to this
//! machine or its network. The resolver checks the resolved addresses at connect time, and the client
//! connects only to the addresses that it returns, so DNS rebinding cannot bypass the check. Redirects are
//! not followed unless the caller allows them; each one is checked like a new address.

mod address;
mod client;
mod public;
pub mod tls;

pub use address::{AddressPolicy, AddressRejected, address, address_with_query};
pub use client::{Redirects, client, client_with, is_address_rejected};
pub use public::is_public;
pub use reqwest::Client;
