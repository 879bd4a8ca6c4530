//! Hands what people ask of agents and gateways on to who can answer, and the answers back.

use super::host::HostCommand;
use super::inquiries::PendingInquiry;
use super::scheduler::GatewayConnectionId;
use crate::Hub;
use crate::fanout::SubscriberId;
use crate::validate::validate_gateway_request;
use parlor_model::command::RewindResult;
use parlor_model::{
    AgentId, AnswerKind, Answerer, Caller, Command, Event, GatewayId, GatewayRequest, Inquiry, InquiryAnswer,
    MessageId, Payload, Query, Receipt, Refusal, RoomId, Signal,
};
use std::time::Instant;

/// What a gateway answers.
pub struct GatewayAnswer {
    pub kind: AnswerKind,
    pub agent: Option<AgentId>,
    pub room: Option<RoomId>,
    /// The name under which it was asked, where the answer bears it.
    pub request: Option<Box<str>>,
    pub body: Payload,
}

impl Hub {
    /// Asks something of an agent. The answer comes as a signal, to this connection alone.
    pub async fn inquire(
        &self,
        caller: &Caller,
        viewer: SubscriberId,
        agent: AgentId,
        room: Option<RoomId>,
        inquiry: Inquiry,
    ) -> Result<(), Refusal> {
        let query = Query::MayInquire { agent: agent.clone(), room: room.clone(), inquiry: inquiry.clone() };
        self.may(caller, query).await?;
        let by = caller.user().ok_or(Refusal::NotSignedIn)?;
        let request = self.new_id();
        let host = {
            let mut scheduler = self.turns().desk();
            let link = scheduler.online_agent(&agent).map(|seat| seat.link).ok_or(Refusal::GatewayOffline)?;
            let host = scheduler.host(link).ok_or(Refusal::GatewayOffline)?;
            scheduler.inquiries.put(PendingInquiry {
                request: request.clone(),
                link,
                agent: agent.clone(),
                room: room.clone(),
                inquiry: inquiry.clone(),
                caller: caller.clone(),
                viewer,
                at: Instant::now(),
            })?;
            host
        };
        host.send(&HostCommand::Inquiry {
            agent: &agent,
            room: room.as_ref(),
            by,
            request: &request,
            inquiry: &inquiry,
        });
        Ok(())
    }

    /// Asks something of a gateway, and gives the name under which it was asked. The answer comes as a signal to every
    /// connection of its owner.
    pub async fn send_gateway_request(
        &self,
        caller: &Caller,
        gateway: GatewayId,
        gateway_request: &GatewayRequest,
    ) -> Result<Box<str>, Refusal> {
        validate_gateway_request(gateway_request)?;
        let query = match gateway_request {
            GatewayRequest::Spawn(_) => Query::MaySpawn { gateway: gateway.clone() },
            GatewayRequest::Credential { .. } => Query::MayManageCredentials { gateway: gateway.clone() },
        };
        self.may(caller, query).await?;
        let host = self.turns().desk().host_of_gateway(&gateway).ok_or(Refusal::GatewayOffline)?;
        let request = self.new_id();
        host.send(&HostCommand::GatewayRequest { request: &request, gateway_request });
        Ok(request)
    }

    /// A gateway answers. What nobody asked, or no longer, is heard by nobody.
    pub async fn relay_answer(
        &self,
        link: GatewayConnectionId,
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
                    let scheduler = self.turns().desk();
                    scheduler.gateway(link).cloned().zip(scheduler.owner(link).cloned())
                };
                let Some((gateway, owner)) = found else { return Ok(()) };
                let answered = InquiryAnswer { kind, by: Answerer::Gateway(gateway), body };
                self.switchboard().signal_people([&owner], &Signal::Answered(Box::new(answered)));
            }
            AnswerKind::AgentCommand | AnswerKind::AgentInfo | AnswerKind::Workspace => {
                let Some(agent) = agent else { return Ok(()) };
                let waiting = {
                    let mut scheduler = self.turns().desk();
                    let request = request.as_deref();
                    scheduler.inquiries.take(link, kind, &agent, room.as_ref(), request, Instant::now())
                };
                if let Some(waiting) = waiting {
                    self.tell_answer(waiting, kind, body).await?;
                }
            }
            AnswerKind::Rewind => tracing::debug!(?agent, ?room, "a host answered to a rewind"),
        }
        Ok(())
    }

    /// Takes back what was said in a room from somebody's own message on, and has its agents forget it.
    pub async fn rewind(&self, caller: &Caller, room: RoomId, message: MessageId) -> Result<(), Refusal> {
        let spoken = self.turns().desk().replies_in(&room);
        let command = Command::Rewind { room: room.clone(), message };
        let Receipt::Rewound(rewound) = self.execute(caller, command).await? else {
            return Err(Refusal::Unavailable);
        };
        let RewindResult { message, mut removed, ended, agents, through } = *rewound;
        // What was being said will never be, and viewers have some of it.
        let unsaid = spoken.into_iter().filter(|(run, _)| ended.iter().any(|ended| ended.id == *run));
        removed.extend(unsaid.map(|(_, reply)| reply));
        let (stops, hosts) = {
            let (mut scheduler, now) = (self.turns().desk(), Instant::now());
            for run in &ended {
                scheduler.apply_event(&Event::RunChanged(run.clone()), now);
            }
            let stops = self.orders_to_stop(&mut scheduler);
            let mut hosts = Vec::new();
            for agent in agents {
                match scheduler.online_agent(&agent).and_then(|seat| scheduler.host(seat.link)) {
                    Some(host) => hosts.push((host, agent)),
                    None => scheduler.forgets_later(&agent, &room, &message.id),
                }
            }
            (stops, hosts)
        };
        for (host, agent, room) in stops {
            host.send(&HostCommand::Stop { agent: &agent, room: &room });
        }
        for (host, agent) in hosts {
            host.send(&HostCommand::Rewind { agent: &agent, room: &room, message: &message.id });
        }
        // Who is told what was taken back has been told of each piece.
        self.wait_until_published(through).await;
        let (id, text) = (message.id.clone(), message.text.clone());
        let signal = Signal::Rewound { room: room.clone(), message: id, removed, text };
        self.switchboard().signal_room(&room, &signal, None);
        Ok(())
    }

    /// Tells an agent that has come what was taken back while it was away.
    pub(super) fn send_pending_rewinds(&self, link: GatewayConnectionId, agent: &AgentId) {
        let (host, to_forget) = {
            let mut scheduler = self.turns().desk();
            let Some(host) =
                scheduler.agent_on_connection(agent, link).and_then(|seat| scheduler.host(seat.link))
            else {
                return;
            };
            (host, scheduler.take_unforgotten(agent))
        };
        for (room, message) in &to_forget {
            host.send(&HostCommand::Rewind { agent, room, message });
        }
    }

    /// To who asked, if they may still ask.
    async fn tell_answer(
        &self,
        waiting: PendingInquiry,
        kind: AnswerKind,
        body: Payload,
    ) -> Result<(), Refusal> {
        let PendingInquiry { agent, room, inquiry, caller, viewer, .. } = waiting;
        let query = Query::MayInquire { agent: agent.clone(), room, inquiry };
        if self.may(&caller, query).await.is_err() {
            return Ok(());
        }
        let id = agent.clone();
        let Some(found) = self.read_snapshot(move |_, store| store.agent(&id)).await? else { return Ok(()) };
        let status = self.agent_status(&agent);
        let by = Answerer::Agent { agent, name: found.name, kind: found.host.kind, status };
        self.switchboard()
            .signal_viewer(viewer, &Signal::Answered(Box::new(InquiryAnswer { kind, by, body })));
        Ok(())
    }
}
