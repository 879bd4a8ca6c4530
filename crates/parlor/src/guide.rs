//! The guide lives in the hub itself, and speaks to it in the frames of any other agent.

use parlor_engine::decide::{GUIDE, HUB};
use parlor_model::{AgentId, GatewayId};
use parlor_server::App;
use std::sync::Arc;

/// Frames that may wait in each direction.
const WAITING: usize = 256;

/// Hosts the guide for as long as there is one: whoever removes it does not get it back.
pub async fn keep(app: Arc<App>) {
    let (id, hub) = (AgentId::stored(GUIDE), GatewayId::stored(HUB));
    if app.hub.wait_for_first_admin().await.is_err() {
        return;
    }
    while let Ok(Some(agent)) = app.hub.hosted_agent(&id, &hub).await {
        let (ours, theirs) = parlor_agents::frame_channel(WAITING);
        let hosting = parlor_server::host_locally(&app, &agent.owner, ours.incoming, ours.outgoing);
        tokio::select! {
            hosted = hosting => {
                if hosted.is_err() {
                    return;
                }
            }
            () = parlor_agents::guide(theirs) => {}
        }
    }
}
