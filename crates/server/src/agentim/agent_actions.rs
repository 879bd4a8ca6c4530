//! Requests of a client about agents: stop, approvals, inquiries, rewinds and credentials.

use crate::connection::peer::Peer;
use parlor_model::command::{DecideApproval, StopRuns};
use parlor_model::{EntityKind, GatewayRequest, Refusal};
use parlor_wire::agentim::ingress::agents::AgentAction;

pub async fn handle(peer: &Peer, action: AgentAction) -> Result<(), Refusal> {
    let (hub, identity) = (&peer.app.hub, peer.signed_in()?);
    match action {
        AgentAction::Stop { room, agent } => {
            let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
            let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
            hub.execute(&identity.session.caller(), StopRuns { room, agent }).await
        }
        AgentAction::Decide { request, allow, always, reason, digest } => {
            let approval = request.ok_or(Refusal::NotFound(EntityKind::Approval))?;
            let command = DecideApproval { approval, allow, always, reason, digest };
            hub.execute(&identity.session.caller(), command).await.map(drop)
        }
        AgentAction::Inquire { agent, room, inquiry } => {
            let room = room.map(|room| room.ok_or(Refusal::NotFound(EntityKind::Room))).transpose()?;
            let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
            hub.hosting()
                .inquire(&identity.session.caller(), identity.session.id(), agent, room, inquiry)
                .await
        }
        AgentAction::Rewind { room, message } => {
            let room = room.ok_or(Refusal::NotFound(EntityKind::Room))?;
            let message = message.ok_or(Refusal::NotFound(EntityKind::Message))?;
            hub.hosting().rewind(&identity.session.caller(), room, message).await
        }
        AgentAction::Credential { gateway, errand, body } => {
            let gateway = gateway.ok_or(Refusal::NotFound(EntityKind::Gateway))?;
            let gateway_request = GatewayRequest::Credential { what: errand, body };
            hub.hosting()
                .send_gateway_request(&identity.session.caller(), gateway, gateway_request)
                .await
                .map(drop)
        }
    }
}
