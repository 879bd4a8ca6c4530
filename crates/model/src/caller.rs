//! Who asks. A caller only says who it claims to be by a checked credential; whether that account, sign-in
//! or key still exists, and what it may do, is looked up when the decision is made.

use crate::{KeyId, SignInId, UserId};
use std::net::IpAddr;

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub enum Principal {
    /// Nobody has said who they are.
    Anonymous,
    /// A person on a signed-in device.
    Person { user: UserId, sign_in: SignInId },
    /// A program with an API key; acts for the key's owner, within its scopes.
    Program { user: UserId, key: KeyId },
    /// Whoever runs the hub: start-up and the command line, never the network.
    Operator,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash)]
pub struct Caller {
    pub principal: Principal,
    /// Where the request came from; decides nothing.
    pub address: Option<IpAddr>,
}

impl Caller {
    pub const ANONYMOUS: Self = Self { principal: Principal::Anonymous, address: None };
    pub const OPERATOR: Self = Self { principal: Principal::Operator, address: None };

    pub fn person(user: UserId, sign_in: SignInId) -> Self {
        Self { principal: Principal::Person { user, sign_in }, address: None }
    }

    pub fn program(user: UserId, key: KeyId) -> Self {
        Self { principal: Principal::Program { user, key }, address: None }
    }

    pub fn at(self, address: IpAddr) -> Self {
        Self { address: Some(address), ..self }
    }

    /// The person on whose account the caller acts.
    pub fn user(&self) -> Option<&UserId> {
        match &self.principal {
            Principal::Person { user, .. } | Principal::Program { user, .. } => Some(user),
            Principal::Anonymous | Principal::Operator => None,
        }
    }
}
