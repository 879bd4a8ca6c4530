//! Bridges inside the hub's process, one for each `[[chatmd]]` entry of the settings file.
//!
//! They follow their rooms with feeds and submit commands as connectors, so the engine applies the same rules to them as
//! to `parlor bridge`. What is missing when the hub starts (directory, account, room) is retried.

use super::configured::ConfiguredChat;
use super::room_feed::RoomFeed;
use super::show;
use crate::agents::local::owner;
use parlor_chatmd::bridge::{self, BridgeNotice, BridgeOptions, ConnectFailure};
use parlor_engine::Hub;
use parlor_model::Refusal;
use std::time::Duration;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::sleep;

/// Pause before a bridge starts again whose directory or state cannot be used.
const RESTART_DELAY: Duration = Duration::from_secs(10);

/// The running bridges. Dropping it aborts them, as a crash would.
pub struct HostedBridges {
    stop: watch::Sender<bool>,
    tasks: Vec<JoinHandle<()>>,
}

impl HostedBridges {
    /// Starts the bridges. `public_url` precedes the paths of attached files.
    pub fn start(hub: &Hub, entries: Vec<ConfiguredChat>, public_url: &str) -> Self {
        let stop = watch::Sender::new(false);
        let tasks = entries.into_iter().map(|entry| {
            let options = BridgeOptions {
                directory: entry.dir.clone(),
                room: entry.room.clone(),
                hub: public_url.to_owned(),
                history: false,
                reset: false,
                patient: true,
            };
            tokio::spawn(run_loop(hub.clone(), entry, options, stop.subscribe()))
        });
        let tasks = tasks.collect();
        Self { stop, tasks }
    }

    /// Tells the bridges to stop.
    pub fn begin_stop(&self) {
        self.stop.send_replace(true);
    }

    /// Waits until the bridges have saved their state and ended.
    pub async fn stopped(&mut self) {
        for task in &mut self.tasks {
            let _ = task.await;
        }
    }
}

impl Drop for HostedBridges {
    fn drop(&mut self) {
        self.tasks.iter().for_each(JoinHandle::abort);
    }
}

async fn run_loop(hub: Hub, entry: ConfiguredChat, options: BridgeOptions, mut stop: watch::Receiver<bool>) {
    let directory = entry.dir.display();
    let report = |notice: BridgeNotice| {
        let notice_text = show::text(&notice);
        match notice {
            BridgeNotice::Connected => tracing::info!(%directory, "chat.md: {notice_text}"),
            _ => tracing::warn!(%directory, "chat.md: {notice_text}"),
        }
    };
    loop {
        let stopped = wait_for_stop(stop.clone());
        let ended = bridge::run(options.clone(), || connect(&hub, &entry.account), stopped, report).await;
        let Err(error) = ended else { return };
        let error = crate::style::escape_control(&error.to_string());
        tracing::warn!(%directory, error, "chat.md: the bridge cannot run");
        tokio::select! {
            () = sleep(RESTART_DELAY) => {}
            _ = stop.wait_for(|stop| *stop) => return,
        }
    }
}

async fn wait_for_stop(mut stop: watch::Receiver<bool>) {
    // An error means that the hub was dropped, which aborts this task.
    let _ = stop.wait_for(|stop| *stop).await;
}

async fn connect(hub: &Hub, account: &str) -> Result<RoomFeed, ConnectFailure> {
    let user = owner(hub, Some(account)).await.map_err(|refusal| {
        ConnectFailure::Temporary(match refusal {
            Refusal::NotFound(_) => format!("there is no account {account}"),
            other => parlor_wire::broker::codes::sentence(&other, None),
        })
    })?;
    Ok(RoomFeed::new(hub.clone(), user))
}
