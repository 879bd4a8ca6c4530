//! Administration while no hub is running: opens the store, does one thing, closes it.

use crate::admin::{AdminReply, AdminRequest};
use crate::agents::local::Roster;
use crate::house::{self, Platform};
use crate::perform::Operator;
use crate::settings::Settings;
use std::path::Path;
use std::sync::Arc;

/// Performs the request on the store in the data directory, whose lock it holds meanwhile.
pub async fn perform(
    settings: &Settings,
    config: Option<&Path>,
    request: AdminRequest,
) -> anyhow::Result<AdminReply> {
    let house = house::open(settings, Platform::default())?;
    let roster = Arc::new(Roster::open(&settings.data, config)?);
    let reply = Operator::new(&house, roster, false).perform(request).await;
    house.hub.close().await;
    Ok(reply)
}
