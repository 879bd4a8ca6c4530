//! Agents in this process, which exchange the frames of a gateway over channels.

use super::agents::GatewayAgents;
use super::host_commands::encode;
use crate::App;
use parlor_engine::HUB;
use parlor_engine::runs::{GatewayAbilities, Host, HostCommand};
use parlor_model::{Caller, GatewayId, Refusal, UserId};
use parlor_wire::agentim::gateway::ingress;
use std::sync::Arc;
use tokio::sync::{Notify, mpsc};

/// Connects an agent of this process, which exchanges the same frames over channels. Returns when the agent
/// closes its channel or stops reading.
pub async fn host_locally(
    app: &App,
    owner: &UserId,
    mut incoming: mpsc::Receiver<String>,
    outgoing: mpsc::Sender<String>,
) -> Result<(), Refusal> {
    let host = Arc::new(ChannelHost { outgoing, receiver_stalled: Notify::new() });
    let gateway = GatewayId::stored(HUB);
    let connection =
        app.hub.hosting().gateway_connected(owner, gateway.clone(), GatewayAbilities::ALL, host.clone())?;
    let agents = GatewayAgents { caller: Caller::OPERATOR, gateway, connection, has_lasting_ids: true };
    loop {
        let text = tokio::select! {
            text = incoming.recv() => text,
            () = host.receiver_stalled.notified() => None,
        };
        let Some(text) = text else { break };
        match ingress::read(&text, &app.config.gateway_frames) {
            Ok(message) => {
                if let Err(refusal) = agents.handle(app, message).await {
                    tracing::debug!(?refusal, "the hub rejected a frame of a local agent");
                }
            }
            Err(frame_error) => tracing::warn!(?frame_error, "failed to decode a frame of a local agent"),
        }
    }
    app.hub.hosting().gateway_disconnected(connection).await;
    Ok(())
}

/// Gateway in this process: commands of the engine are sent through a channel.
struct ChannelHost {
    outgoing: mpsc::Sender<String>,
    receiver_stalled: Notify,
}

impl Host for ChannelHost {
    fn send(&self, command: HostCommand) {
        if self.outgoing.try_send(encode(&command)).is_err() {
            self.receiver_stalled.notify_one();
        }
    }
}
