//! Relays inquiries to agents and requests to gateways, returns their answers, and rewinds rooms.

use super::super::handle::send_commands;
use super::super::host::HostCommand;
use super::super::inquiries::PendingInquiry;
use super::super::scheduler::GatewayConnectionId;
use super::Hosting;
use crate::feed::SubscriberId;
use crate::validate::validate_gateway_request;
use parlor_model::command::{RewindResult, RewindRoom};
use parlor_model::query::{MayInquire, MayManageCredentials, MaySpawnAgents};
use parlor_model::{
    AgentId, AnswerKind, Answerer, Caller, GatewayId, GatewayRequest, Inquiry, InquiryAnswer, MessageId,
    Payload, Refusal, RoomId, Signal,
};
use std::time::Instant;

/// An answer of a gateway, for itself or for one of its agents.
pub struct GatewayAnswer {
    pub kind: AnswerKind,
    pub agent: Option<AgentId>,
    pub room: Option<RoomId>,
    /// Request id, if the answer carries it.
    pub request: Option<Box<str>>,
    pub body: Payload,
}

impl Hosting {
    /// Sends an inquiry to an agent. The answer is sent as a signal to `subscriber` only.
    pub async fn inquire(
        &self,
        caller: &Caller,
        subscriber: SubscriberId,
        agent: AgentId,
        room: Option<RoomId>,
        inquiry: Inquiry,
    ) -> Result<(), Refusal> {
        let query = MayInquire { agent: agent.clone(), room: room.clone(), inquiry: inquiry.clone() };
        self.hub.may(caller, query).await?;
        let by = caller.user().cloned().ok_or(Refusal::NotSignedIn)?;
        let request = self.hub.new_id();
        let host = {
            let mut scheduler = self.hub.scheduler().lock();
            let connection = scheduler
                .online_agent(&agent)
                .map(|online| online.connection)
                .ok_or(Refusal::GatewayOffline)?;
            let host = scheduler.host(connection).ok_or(Refusal::GatewayOffline)?;
            scheduler.inquiries.put(PendingInquiry {
                request: request.clone(),
                connection,
                agent: agent.clone(),
                room: room.clone(),
                inquiry: inquiry.clone(),
                caller: caller.clone(),
                subscriber,
                at: Instant::now(),
            })?;
            host
        };
        host.send(HostCommand::Inquiry { agent, room, by, request, inquiry });
        Ok(())
    }

    /// Sends a request of the owner to a gateway and returns the request id. The answer is sent as a signal
    /// to all subscribers of the owner.
    pub async fn send_gateway_request(
        &self,
        caller: &Caller,
        gateway: GatewayId,
        gateway_request: GatewayRequest,
    ) -> Result<Box<str>, Refusal> {
        validate_gateway_request(&gateway_request)?;
        match &gateway_request {
            GatewayRequest::Spawn(_) => {
                self.hub.may(caller, MaySpawnAgents { gateway: gateway.clone() }).await?;
            }
            GatewayRequest::Credential { .. } => {
                self.hub.may(caller, MayManageCredentials { gateway: gateway.clone() }).await?;
            }
        }
        let host = self.hub.scheduler().lock().host_of_gateway(&gateway).ok_or(Refusal::GatewayOffline)?;
        let request = self.hub.new_id();
        host.send(HostCommand::GatewayRequest { request: request.clone(), gateway_request });
        Ok(request)
    }

    /// Relays an answer to the user who asked. An answer without a pending inquiry is dropped.
    pub async fn relay_answer(
        &self,
        connection: GatewayConnectionId,
        answer: GatewayAnswer,
    ) -> Result<(), Refusal> {
        let GatewayAnswer { kind, agent, room, request, body } = answer;
        match kind {
            AnswerKind::Spawn
            | AnswerKind::CredentialList
            | AnswerKind::Credential
            | AnswerKind::OauthUrl
            | AnswerKind::Oauth => {
                let found = {
                    let scheduler = self.hub.scheduler().lock();
                    scheduler.gateway(connection).cloned().zip(scheduler.owner(connection).cloned())
                };
                let Some((gateway, owner)) = found else { return Ok(()) };
                let answered = InquiryAnswer { kind, by: Answerer::Gateway(gateway), body };
                self.hub.fanout().signal_people([&owner], &Signal::Answered(Box::new(answered)));
            }
            AnswerKind::AgentCommand | AnswerKind::AgentInfo | AnswerKind::Workspace => {
                let Some(agent) = agent else { return Ok(()) };
                let waiting = {
                    let mut scheduler = self.hub.scheduler().lock();
                    let request = request.as_deref();
                    scheduler.inquiries.take(connection, kind, &agent, room.as_ref(), request, Instant::now())
                };
                if let Some(waiting) = waiting {
                    self.send_inquiry_answer(waiting, kind, body).await?;
                }
            }
            AnswerKind::Rewind => tracing::debug!(?agent, ?room, "a gateway answered a rewind"),
        }
        Ok(())
    }

    /// Deletes the messages of a room from one of the caller's own messages on, and makes the agents in the
    /// room drop them from their context.
    pub async fn rewind(&self, caller: &Caller, room: RoomId, message: MessageId) -> Result<(), Refusal> {
        let open_replies = self.hub.scheduler().lock().replies_in(&room);
        let command = RewindRoom { room: room.clone(), message };
        let RewindResult { message, mut removed, ended, agents, through } =
            self.hub.execute(caller, command).await?;
        // Replies of the ended runs will never be posted, but subscribers have already received parts of
        // them.
        let unfinished =
            open_replies.into_iter().filter(|(run, _)| ended.iter().any(|ended| ended.id == *run));
        removed.extend(unfinished.map(|(_, reply)| reply));
        // Subscribers receive the deletion events before the rewind signal, and gateways the stops of the ended
        // runs before the rewind.
        while let Err(refusal) = self.hub.reached(through).await {
            if self.hub.is_closing() {
                return Err(refusal);
            }
        }
        {
            let mut scheduler = self.hub.scheduler().lock();
            for agent in agents {
                scheduler.rewind(&agent, &room, &message.id);
            }
            send_commands(&mut scheduler);
        }
        let (id, text) = (message.id.clone(), message.text.clone());
        let signal = Signal::Rewound { room: room.clone(), message: id, removed, text };
        self.hub.fanout().signal_room(&room, &signal, None);
        Ok(())
    }

    /// Sends an agent the rewinds that happened while it was offline.
    pub(super) fn send_pending_rewinds(&self, connection: GatewayConnectionId, agent: &AgentId) {
        let mut scheduler = self.hub.scheduler().lock();
        if scheduler.agent_on_connection(agent, connection).is_some() {
            scheduler.resend_rewinds(agent);
            send_commands(&mut scheduler);
        }
    }

    /// Sends an answer to the subscriber that asked, if the caller may still send this inquiry.
    async fn send_inquiry_answer(
        &self,
        waiting: PendingInquiry,
        kind: AnswerKind,
        body: Payload,
    ) -> Result<(), Refusal> {
        let PendingInquiry { agent, room, inquiry, caller, subscriber, .. } = waiting;
        let query = MayInquire { agent: agent.clone(), room, inquiry };
        if self.hub.may(&caller, query).await.is_err() {
            return Ok(());
        }
        let id = agent.clone();
        let Some(found) = self.hub.read_snapshot(move |_, store| store.agent(&id)).await? else {
            return Ok(());
        };
        let status = self.agent_status(&agent);
        let by = Answerer::Agent { agent, name: found.name, kind: found.host.kind, status };
        self.hub
            .fanout()
            .signal_subscriber(subscriber, &Signal::Answered(Box::new(InquiryAnswer { kind, by, body })));
        Ok(())
    }
}
