//! Receipts of broker commands that are not decided yet. Commands of different types wait in one queue.

use parlor_engine::{Hub, PendingReceipt};
use parlor_model::command::{AgentWithSubscriptions, Posted, ReceivedMail};
use parlor_model::{Caller, Refusal, Subscription};
use parlor_wire::broker::egress::BrokerReceipt;
use parlor_wire::broker::ingress::BrokerCommand;

pub enum PendingBrokerReceipt {
    Posted(PendingReceipt<Posted>),
    Received(PendingReceipt<ReceivedMail>),
    Acknowledged(PendingReceipt<usize>),
    Subscriptions(PendingReceipt<Vec<Subscription>>),
    DeadLettersCleared(PendingReceipt<()>),
    Agent(PendingReceipt<AgentWithSubscriptions>),
    AgentRemoved(PendingReceipt<()>),
}

impl PendingBrokerReceipt {
    /// As [`Hub::submit`].
    pub async fn submit(hub: &Hub, caller: &Caller, command: BrokerCommand) -> Self {
        match command {
            BrokerCommand::Route(command) => Self::Posted(hub.submit(caller, command).await),
            BrokerCommand::Relay(command) => Self::Posted(hub.submit(caller, command).await),
            BrokerCommand::ReceiveMail(command) => Self::Received(hub.submit(caller, command).await),
            BrokerCommand::AcknowledgeMail(command) => Self::Acknowledged(hub.submit(caller, command).await),
            BrokerCommand::Subscribe(command) => Self::Subscriptions(hub.submit(caller, command).await),
            BrokerCommand::Unsubscribe(command) => Self::Subscriptions(hub.submit(caller, command).await),
            BrokerCommand::ClearDeadLetters(command) => {
                Self::DeadLettersCleared(hub.submit(caller, command).await)
            }
            BrokerCommand::CreateAgent(command) => Self::Agent(hub.submit(caller, command).await),
            BrokerCommand::ChangeAgent(command) => Self::Agent(hub.submit(caller, command).await),
            BrokerCommand::RemoveAgent(command) => Self::AgentRemoved(hub.submit(caller, command).await),
        }
    }

    /// Waits for the receipt. Cancel-safe.
    pub async fn wait(&mut self) -> Result<BrokerReceipt, Refusal> {
        match self {
            Self::Posted(receipt) => receipt.await.map(BrokerReceipt::Posted),
            Self::Received(receipt) => receipt.await.map(BrokerReceipt::Received),
            Self::Acknowledged(receipt) => receipt.await.map(BrokerReceipt::Acknowledged),
            Self::Subscriptions(receipt) => receipt.await.map(BrokerReceipt::Subscriptions),
            Self::DeadLettersCleared(receipt) => receipt.await.map(|()| BrokerReceipt::DeadLettersCleared),
            Self::Agent(receipt) => receipt.await.map(BrokerReceipt::Agent),
            Self::AgentRemoved(receipt) => receipt.await.map(|()| BrokerReceipt::AgentRemoved),
        }
    }
}
