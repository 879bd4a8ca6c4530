//! Caller: the origin of a command or query.
//!
//! A caller holds the identity proved by a verified credential, nothing else. Whether the account, sign-in or
//! key still exists, and what it may do, is read in the transaction that decides the command.

use crate::{AgentId, Grant, KeyId, RunId, SessionId, SignInId, Time, UserId};
use serde::{Deserialize, Serialize};
use std::net::IpAddr;
use std::sync::Arc;

/// Identity that a credential proved.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Principal {
    /// No credential.
    Anonymous,
    /// A user with a sign-in.
    Person { user: UserId, sign_in: SignInId },
    /// A program with an API key. It acts as the owner of the key, within the key's scopes.
    Program { user: UserId, key: KeyId },
    /// A connector inside the hub, such as a chat.md bridge of the settings file. It acts as the account that
    /// the settings name, within the scopes read, write and agents. Not reachable over the network.
    Connector { user: UserId },
    /// A program that works for an agent, with a token for one run or for one call of a tool. It may send as the agent,
    /// read the mailboxes and call the tools that the credential names, and has no other right of the owner.
    Agent(Arc<AgentCredential>),
    /// The hub's authentication code. It may read password hashes, second factors, keys by their secret and the
    /// settings; otherwise it has the rights of an anonymous caller. Not reachable over the network.
    Authenticator,
    /// The operator: start-up and the command line. Not reachable over the network.
    Operator,
}

/// Content of a token for a program that works for an agent. The token is signed and not stored: the engine checks in
/// each transaction that the agent still belongs to the owner, that the run is active, and that the owner has not
/// revoked the tokens of their agents.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AgentCredential {
    pub owner: UserId,
    pub agent: AgentId,
    /// Session whose mailbox the program may read besides that of the agent.
    pub session: Option<SessionId>,
    /// Run that the token was issued for; the token ends with it.
    pub run: Option<RunId>,
    pub issued_at: Time,
    pub expires_at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Caller {
    pub principal: Principal,
    /// Remote address of the request, for logs and the audit log. No permission depends on it.
    pub address: Option<IpAddr>,
    /// Places and operations to which the credential limits the rights of its account and key; `None` without a limit.
    pub grant: Option<Arc<Grant>>,
}

impl Caller {
    pub const ANONYMOUS: Self = Self { principal: Principal::Anonymous, address: None, grant: None };
    pub const AUTHENTICATOR: Self = Self { principal: Principal::Authenticator, address: None, grant: None };
    pub const OPERATOR: Self = Self { principal: Principal::Operator, address: None, grant: None };

    pub fn person(user: UserId, sign_in: SignInId) -> Self {
        Self { principal: Principal::Person { user, sign_in }, address: None, grant: None }
    }

    pub fn program(user: UserId, key: KeyId) -> Self {
        Self { principal: Principal::Program { user, key }, address: None, grant: None }
    }

    pub fn connector(user: UserId) -> Self {
        Self { principal: Principal::Connector { user }, address: None, grant: None }
    }

    pub fn agent(credential: Arc<AgentCredential>) -> Self {
        Self { principal: Principal::Agent(credential), address: None, grant: None }
    }

    pub fn at(self, address: IpAddr) -> Self {
        Self { address: Some(address), ..self }
    }

    /// Returns the caller limited to the operations and places of `grant`.
    pub fn limited(self, grant: Arc<Grant>) -> Self {
        Self { grant: Some(grant), ..self }
    }

    /// Returns the user that the caller acts as; `None` for an anonymous caller, the authentication code
    /// and the operator.
    pub fn user(&self) -> Option<&UserId> {
        match &self.principal {
            Principal::Person { user, .. }
            | Principal::Program { user, .. }
            | Principal::Connector { user } => Some(user),
            Principal::Agent(credential) => Some(&credential.owner),
            Principal::Anonymous | Principal::Authenticator | Principal::Operator => None,
        }
    }
}
