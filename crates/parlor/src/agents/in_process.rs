//! A gateway inside the hub process. It exchanges frames with the hub like a remote gateway, so the same
//! rules apply.

use parlor_agents::gateway::store::GatewayStore;
use parlor_agents::gateway::{Gateway, SpawnPolicy};
use parlor_model::UserId;
use parlor_server::App;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::{mpsc, watch};

/// Maximum number of queued frames in each direction.
const FRAME_QUEUE: usize = 256;
/// Delay before reconnecting, or before reading the agents again.
pub const RETRY_DELAY: Duration = Duration::from_secs(1);

pub fn open(directory: &Path) -> anyhow::Result<(Arc<GatewayStore>, Gateway)> {
    let data = Arc::new(GatewayStore::open(directory)?);
    // Notices are discarded: the room already shows the same events.
    let (notices, _) = mpsc::channel(1);
    let gateway = Gateway::new(data.clone(), SpawnPolicy::default(), notices)?;
    Ok((data, gateway))
}

/// Hosts agents with `host` until the hub stops, and then stops the gateway that `host` has opened.
pub async fn host_until_stopped(
    host: impl AsyncFnOnce(&mut Option<Gateway>) -> anyhow::Result<()>,
    mut stop: watch::Receiver<bool>,
) -> anyhow::Result<()> {
    let mut gateway = None;
    let hosted = tokio::select! {
        hosted = host(&mut gateway) => hosted,
        // An error means that the hub was dropped, which aborts this task.
        _ = stop.wait_for(|stop| *stop) => Ok(()),
    };
    if let Some(mut gateway) = gateway {
        gateway.stop().await;
    }
    hosted
}

/// Serves one gateway connection until it is lost or `changed` resolves. Runs continue over the next
/// connection.
pub async fn connect(app: &App, owner: &UserId, gateway: &mut Gateway, changed: impl Future<Output = ()>) {
    let (hub_side, gateway_side) = parlor_agents::frame_channel(FRAME_QUEUE);
    let hosting = parlor_server::host_locally(app, owner, hub_side.incoming, hub_side.outgoing);
    tokio::pin!(hosting);
    let lost = tokio::select! {
        _ = &mut hosting => None,
        () = gateway.serve(gateway_side) => Some(true),
        () = changed => Some(false),
    };
    // The gateway's side of the channel is closed: wait until the hub has processed the disconnect.
    if let Some(lost) = lost {
        let _ = hosting.await;
        if !lost {
            return;
        }
    }
    tokio::time::sleep(RETRY_DELAY).await;
}
