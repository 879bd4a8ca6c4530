//! A gateway within the hub: over a link in the same process, and with no way around the hub's rules.

use parlor_agents::gateway::store::GatewayStore;
use parlor_agents::gateway::{Gateway, SpawnPolicy};
use parlor_model::UserId;
use parlor_server::App;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;
use tokio::sync::mpsc;

/// Frames that may wait in each direction.
const FRAME_QUEUE: usize = 256;
/// Between two tries to have agents hosted.
pub const RETRY_DELAY: Duration = Duration::from_secs(1);

pub fn open(directory: &Path) -> anyhow::Result<(Arc<GatewayStore>, Gateway)> {
    let data = Arc::new(GatewayStore::open(directory)?);
    // They are in the room; the log needs no more of them.
    let (news, _) = mpsc::channel(1);
    let gateway = Gateway::new(data.clone(), SpawnPolicy::default(), news)?;
    Ok((data, gateway))
}

/// One connection, until it is lost or something changed. What agents do goes on over the next one.
pub async fn connect(app: &App, owner: &UserId, gateway: &mut Gateway, changed: impl Future<Output = ()>) {
    let (ours, theirs) = parlor_agents::frame_channel(FRAME_QUEUE);
    let hosting = parlor_server::host_locally(app, owner, ours.incoming, ours.outgoing);
    tokio::pin!(hosting);
    let lost = tokio::select! {
        _ = &mut hosting => None,
        () = gateway.serve(theirs) => Some(true),
        () = changed => Some(false),
    };
    // With its own end of the link gone, the hub takes leave of those that may not come back.
    if let Some(lost) = lost {
        let _ = hosting.await;
        if !lost {
            return;
        }
    }
    tokio::time::sleep(RETRY_DELAY).await;
}
