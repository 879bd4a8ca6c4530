//! Receipts of broker commands that are not decided yet. Commands of different types wait in one queue.

use parlor_engine::{Hub, PendingReceipt};
use parlor_model::command::AgentWithSubscriptions;
use parlor_model::{Caller, Receipt, Refusal};
use parlor_wire::broker::egress::BrokerReceipt;
use parlor_wire::broker::ingress::BrokerCommand;

pub enum PendingBrokerReceipt {
    Agent(PendingReceipt<AgentWithSubscriptions>),
    AgentRemoved(PendingReceipt<()>),
    Legacy(PendingReceipt<Receipt>),
}

impl PendingBrokerReceipt {
    /// As [`Hub::submit`].
    pub async fn submit(hub: &Hub, caller: &Caller, command: BrokerCommand) -> Self {
        match command {
            BrokerCommand::CreateAgent(command) => Self::Agent(hub.submit(caller, command).await),
            BrokerCommand::ChangeAgent(command) => Self::Agent(hub.submit(caller, command).await),
            BrokerCommand::RemoveAgent(command) => Self::AgentRemoved(hub.submit(caller, command).await),
            BrokerCommand::Legacy(command) => Self::Legacy(hub.submit(caller, command).await),
        }
    }

    /// Waits for the receipt. Cancel-safe.
    pub async fn wait(&mut self) -> Result<BrokerReceipt, Refusal> {
        match self {
            Self::Agent(receipt) => receipt.await.map(BrokerReceipt::Agent),
            Self::AgentRemoved(receipt) => receipt.await.map(|()| BrokerReceipt::AgentRemoved),
            Self::Legacy(receipt) => receipt.await.map(BrokerReceipt::Legacy),
        }
    }
}
