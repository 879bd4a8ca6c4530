//! Administration while no hub is running: opens the store, does one thing, closes it.

use crate::admin::{AdminReply, AdminRequest};
use crate::house;
use crate::perform::Operator;
use crate::settings::Settings;

/// Performs the request on the store in the data directory, whose lock it holds meanwhile.
pub async fn perform(settings: &Settings, request: AdminRequest) -> anyhow::Result<AdminReply> {
    let house = house::open(settings)?;
    let reply = Operator::new(&house).perform(request).await;
    house.hub.close().await;
    Ok(reply)
}
