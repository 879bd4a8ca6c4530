//! Administration while no hub is running: opens the store, does one thing, closes it.

use crate::admin::{AdminReply, AdminRequest};
use crate::admin_executor::AdminExecutor;
use crate::agents::local::LocalAgents;
use crate::instance::{self, Platform};
use crate::settings::Settings;
use std::path::Path;
use std::sync::Arc;

/// Performs the request on the store in the data directory, whose lock it holds meanwhile.
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
