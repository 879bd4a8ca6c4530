//! Second factor of an account: a shared secret for time-based codes, and backup codes.

use crate::{SecretHash, UserId};
use serde::{Deserialize, Serialize};

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct SecondFactor {
    pub user: UserId,
    /// Shared secret, encrypted with a key that is not in the store.
    pub sealed: Box<[u8]>,
    /// Whether the user confirmed the setup with a first code. An unconfirmed second factor is not required
    /// at sign-in.
    pub confirmed: bool,
    /// Time step of the last accepted code. Codes of this and earlier steps are rejected, which prevents
    /// reuse.
    pub last_step: u64,
}

/// Verified second factor of a sign-in.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub enum SecondProof {
    /// Code of time step `step`, generated from the secret in `sealed`.
    Code {
        sealed: Box<[u8]>,
        step: u64,
    },
    Backup(SecretHash),
}
