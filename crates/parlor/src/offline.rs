//! Executes an operator's request while no hub is running: opens the store, executes it, and closes the
//! store.

use crate::admin::{AdminReply, AdminRequest};
use crate::admin_executor::AdminExecutor;
use crate::agents::local::LocalAgents;
use crate::instance::{self, Platform};
use crate::settings::Settings;
use std::path::Path;
use std::sync::Arc;

/// Executes the request on the store in the data directory. Holds the directory's lock until it is done.
pub async fn perform(
    settings: &Settings,
    config: Option<&Path>,
    request: AdminRequest,
) -> anyhow::Result<AdminReply> {
    let instance = instance::open(settings, Platform::default())?;
    let local_agents = Arc::new(LocalAgents::open(&settings.data, config)?);
    let reply = AdminExecutor::new(&instance, local_agents, false).perform(request).await;
    instance.hub.close().await;
    Ok(reply)
}
