//! Commands on sign-ins and second factors, and their receipts.
//!
//! The server verifies passwords and codes before it submits a command. The command names the stored value that
//! they were verified against, so that a change of that value in between voids the proof.

use crate::{SecondProof, SecretHash, SignIn, SignInId, Time, User, UserId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;
use std::time::Duration;

/// Signs a user in on a device.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct CreateSignIn {
    pub user: UserId,
    /// Hash that the password was verified against. The sign-in fails if the stored hash has changed since.
    pub verified_password_hash: Box<str>,
    pub second: Option<SecondProof>,
    pub refresh: SecretHash,
    pub device: Box<str>,
    pub address: Box<str>,
    pub expires_at: Time,
}

/// A sign-in and its user.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SignedIn {
    pub user: Arc<User>,
    pub sign_in: Arc<SignIn>,
}

/// Records a failed sign-in, and locks the account after too many of them.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RecordFailedSignIn {
    /// `None` if no account has the given name.
    pub user: Option<UserId>,
    /// Whether the password was correct and the second-factor code was not.
    pub second_factor: bool,
    pub lock_after: u32,
    pub lock_until: Time,
}

/// Exchanges a refresh token for a new one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RefreshSignIn {
    pub token: SecretHash,
    pub next: SecretHash,
    pub expires_at: Time,
    /// Time after an exchange during which the previous refresh token is still accepted.
    pub grace: Duration,
}

#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub enum Refreshed {
    SignedIn(SignedIn),
    /// A spent refresh token was reused. The sign-in and all its tokens were revoked.
    FamilyRevoked,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndSignIn {
    pub sign_in: SignInId,
}

/// Ends all sign-ins of the caller except the current one.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct EndOtherSignIns;

/// Offers the caller a second factor, which is not required until it is confirmed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct OfferSecondFactor {
    pub sealed: Box<[u8]>,
}

/// Confirms the second factor with a code of time step `step`, generated from the secret in `sealed`. Returns
/// the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ConfirmSecondFactor {
    pub sealed: Box<[u8]>,
    pub step: u64,
    pub backup_codes: Vec<SecretHash>,
}

/// Removes the second factor of a user. Returns the user.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct RemoveSecondFactor {
    pub user: UserId,
    /// Hash that the user's password was verified against. `None` for the operator, who needs no password.
    pub verified_password_hash: Option<Box<str>>,
}
