//! Encodes the commands of the scheduler for agents as frames of a gateway.

use parlor_engine::runs::HostCommand;
use parlor_model::ApprovalKind;
use parlor_wire::agentim::gateway::egress::{self, ContextPeer};

pub fn encode(command: &HostCommand) -> String {
    match command {
        HostCommand::Context { agent, room, members } => {
            let peers = members.iter().map(|peer| ContextPeer {
                member: &peer.member.member,
                name: &peer.member.name,
                role: peer.member.role.as_str(),
                role_description: peer.member.role_description.as_deref(),
                agent: peer.agent.as_ref().map(|(agent, status)| (agent, status.as_str())),
            });
            egress::room_context(agent, room, &peers.collect::<Vec<_>>())
        }
        HostCommand::StartRun { started, earlier } => egress::send_to_agent(started, earlier),
        HostCommand::Inject { agent, context, run, added, message } => {
            egress::add_to_run(agent, context, run, added, message)
        }
        HostCommand::Stop { agent, context } => egress::stop_agent(agent, Some(context)),
        HostCommand::Inquiry { agent, room, by, request, inquiry } => {
            egress::inquiry(agent, room.as_ref(), by, request, inquiry)
        }
        HostCommand::GatewayRequest { request, gateway_request } => {
            egress::gateway_request(request, gateway_request)
        }
        HostCommand::Rewind { agent, room, message } => egress::rewind_agent(agent, room, message),
        HostCommand::Ended { agent, context, run, outcome } => {
            egress::run_ended(agent, context, run, outcome)
        }
        HostCommand::Resumed { agent, context, run, heard } => {
            egress::run_resumed(agent, context, run, *heard)
        }
        HostCommand::Remove { agent } => egress::remove_agent(agent),
        HostCommand::Decided { agent, request, kind: ApprovalKind::Tool, decision } => {
            egress::permission_response(agent, request, decision)
        }
        HostCommand::Decided { agent, request, kind: ApprovalKind::Questions, decision } => {
            egress::question_response(agent, request, decision)
        }
    }
}
