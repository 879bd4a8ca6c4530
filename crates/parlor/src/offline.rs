//! Administration while no hub is running: opens the store, does one thing, closes it.

use crate::{
    admin::{AdminReply, AdminRequest},
    settings::Settings,
};

/// Performs the request on the store in the data directory, whose lock it holds meanwhile.
pub async fn perform(settings: &Settings, request: AdminRequest) -> anyhow::Result<AdminReply> {
    anyhow::bail!(
        "no hub is running at {} and the store cannot be opened yet for {request:?}",
        settings.data.display()
    )
}
