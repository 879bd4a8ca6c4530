//! Commands of broker clients. Their replies are sent after the commit and echo fields of the request.

use crate::connection::frame;
use crate::connection::protocol::{Answer, DecidedReply, Reply};
use futures_util::FutureExt;
use parlor_engine::{Hub, PendingReceipt};
use parlor_model::{Caller, Refusal};
use parlor_wire::broker::egress::{self, BrokerReceipt};
use parlor_wire::broker::frames::RequestType;
use parlor_wire::broker::ingress::{BrokerCommand, EchoedFields};
use serde_json::value::RawValue;

/// Fields of the request that its reply repeats.
pub struct Echo {
    pub kind: RequestType,
    pub req_id: Option<Box<RawValue>>,
    pub about: EchoedFields,
}

pub async fn submit(hub: &Hub, caller: &Caller, command: BrokerCommand, echo: Echo) -> Reply {
    use BrokerReceipt as Receipt;
    match command {
        BrokerCommand::Route(command) => echo.reply(hub.submit(caller, command).await, Receipt::Posted),
        BrokerCommand::Relay(command) => echo.reply(hub.submit(caller, command).await, Receipt::Posted),
        BrokerCommand::ReceiveMail(command) => {
            echo.reply(hub.submit(caller, command).await, Receipt::Received)
        }
        BrokerCommand::AcknowledgeMail(command) => {
            echo.reply(hub.submit(caller, command).await, Receipt::Acknowledged)
        }
        BrokerCommand::TriggerTurn(command) => echo.reply(hub.submit(caller, command).await, Receipt::Turn),
        BrokerCommand::Subscribe(command) => {
            echo.reply(hub.submit(caller, command).await, Receipt::Subscriptions)
        }
        BrokerCommand::Unsubscribe(command) => {
            echo.reply(hub.submit(caller, command).await, Receipt::Subscriptions)
        }
        BrokerCommand::ClearDeadLetters(command) => {
            echo.reply(hub.submit(caller, command).await, |()| Receipt::DeadLettersCleared)
        }
        BrokerCommand::CreateAgent(command) => echo.reply(hub.submit(caller, command).await, Receipt::Agent),
        BrokerCommand::ChangeAgent(command) => echo.reply(hub.submit(caller, command).await, Receipt::Agent),
        BrokerCommand::RemoveAgent(command) => {
            echo.reply(hub.submit(caller, command).await, |()| Receipt::AgentRemoved)
        }
    }
}

impl Echo {
    fn reply<R: Send + 'static>(
        self,
        receipt: PendingReceipt<R>,
        name: impl FnOnce(R) -> BrokerReceipt + Send + 'static,
    ) -> Reply {
        Reply::Pending(async move { self.render(receipt.await.map(name)) }.boxed())
    }

    fn render(&self, result: Result<BrokerReceipt, Refusal>) -> DecidedReply {
        let (kind, req_id, about) = (self.kind, self.req_id.as_deref(), &self.about);
        match result {
            Ok(receipt) => {
                let after = match &receipt {
                    BrokerReceipt::Posted(posted) => Some(posted.position.seq),
                    _ => None,
                };
                let frames = frame::text(&egress::receipt(kind, req_id, about, &receipt));
                DecidedReply { answer: Answer::Frames(frames), after }
            }
            Err(refusal) => frame::text(&egress::refusal(kind, req_id, about, &refusal)).into(),
        }
    }
}
