//! Queries about sign-ins and second factors, and their answers.

use crate::{SecondFactor, User, UserId};
use serde::{Deserialize, Serialize};

/// Account and scopes of the caller, as stored now.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetAuthContext;

/// An account with its confirmed or offered second factor; `None` if the account does not exist.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct GetSecondFactor {
    pub user: UserId,
}

pub type AccountWithSecondFactor = (User, Option<SecondFactor>);

/// Current sign-ins of the caller.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct ListSignIns;
