//! What somebody has besides a password: a secret in a device that makes codes, and codes on paper.

use crate::{SecretHash, UserId};

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SecondFactor {
    pub user: UserId,
    /// The secret, sealed with a key that is not in the store.
    pub sealed: Box<[u8]>,
    /// Whether a first code has proven that the device has it; before, it decides nothing.
    pub confirmed: bool,
    /// The last time step whose code was taken: no code is taken twice, and none older.
    pub last_step: u64,
}

/// What was shown besides the password.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SecondProof {
    /// The code of a time step, made of the secret that was sealed so.
    Code {
        sealed: Box<[u8]>,
        step: u64,
    },
    Backup(SecretHash),
}
