//! Commands on agents, and their receipts.

use crate::{Agent, Subscription};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// An agent with the subscriptions of its mailbox, without the automatic one.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AgentWithSubscriptions {
    pub agent: Arc<Agent>,
    pub subscriptions: Vec<Subscription>,
}
