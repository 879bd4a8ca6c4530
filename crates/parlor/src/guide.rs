//! Hosts the guide agent inside the hub process. It exchanges the same frames with the hub as any other
//! agent.

use parlor_engine::{GUIDE, HUB};
use parlor_model::{AgentId, GatewayId};
use parlor_server::App;
use std::sync::Arc;
use tokio::sync::watch;

/// Maximum number of queued frames in each direction.
const FRAME_QUEUE_CAPACITY: usize = 256;

/// Hosts the guide until the hub stops.
pub async fn run_loop(app: Arc<App>, mut stop: watch::Receiver<bool>) {
    tokio::select! {
        () = host(&app) => {}
        // An error means that the hub was dropped, which aborts this task.
        _ = stop.wait_for(|stop| *stop) => {}
    }
}

/// Hosts the guide until an admin removes it; a removed guide is not recreated.
async fn host(app: &App) {
    let (id, hub) = (AgentId::stored(GUIDE), GatewayId::stored(HUB));
    if app.hub.wait_for_first_admin().await.is_err() {
        return;
    }
    while let Ok(Some(agent)) = app.hub.hosting().hosted_agent(&id, &hub).await {
        let (hub_side, agent_side) = parlor_agents::frame_channel(FRAME_QUEUE_CAPACITY);
        let hosting = parlor_server::host_locally(app, &agent.owner, hub_side.incoming, hub_side.outgoing);
        tokio::select! {
            hosted = hosting => {
                if hosted.is_err() {
                    return;
                }
            }
            () = parlor_agents::guide(agent_side) => {}
        }
    }
}
