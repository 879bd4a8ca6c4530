//! Checks of the running hub for `parlor doctor`: status, listener and open-file limit.

use super::{Finding, fail, ok, warn};
use crate::admin::{AdminReply, AdminRequest};
use crate::control;
use crate::settings::Settings;
use rustix::process::{Resource, getrlimit};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

/// Timeout for the status request, and for connecting to the listener.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);
/// Number of file descriptors reserved for everything but WebSockets: database, log, HTTP requests.
const NON_SOCKET_FILES: u64 = 512;

/// Status of the hub; `None` if no hub is running.
pub type StatusReply = Result<Option<AdminReply>, String>;

pub async fn status(settings: &Settings) -> StatusReply {
    match timeout(PROBE_TIMEOUT, control::ask(&settings.data, &AdminRequest::Status)).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(error)) => Err(format!("{error:#}")),
        Err(_) => Err("the hub did not answer in time".into()),
    }
}

pub async fn hub(settings: &Settings, status: &StatusReply) -> Finding {
    let listen = settings.listen;
    let (version, store) = match status {
        Ok(None) => return not_running(settings).await,
        Ok(Some(AdminReply::Status { version, store, .. })) => (version, store.as_str()),
        Ok(Some(_)) => {
            return fail(
                "hub",
                "Another version is running, which does not support the status request.",
                "Restart the hub with this version.",
            );
        }
        Err(error) => {
            let message = format!("The status of the hub is unavailable: {error}.");
            return fail("hub", message, "Check the log of the hub, and restart the hub.");
        }
    };
    match store {
        "ok" => {}
        "full" => {
            return fail(
                "hub",
                "The hub is running, but the disk is full: it stores nothing.",
                "Free disk space; the hub recovers without a restart.",
            );
        }
        _ => {
            return fail(
                "hub",
                "The hub is running, but its disk failed: it stores nothing until it is restarted.",
                "Check the disk (dmesg), then restart the hub.",
            );
        }
    }
    if listen.port() != 0 && !matches!(timeout(PROBE_TIMEOUT, TcpStream::connect(listen)).await, Ok(Ok(_))) {
        let message = format!("The hub is running, but does not accept connections at {listen}.");
        return warn("hub", message, "Run this command with the same --listen and --config as the hub.");
    }
    if version != env!("CARGO_PKG_VERSION") {
        let message =
            format!("The hub runs version {version}, but this is version {}.", env!("CARGO_PKG_VERSION"));
        return warn("hub", message, "Restart the hub to run the new version.");
    }
    ok("hub", format!("The hub is running and stores data (version {version})."))
}

async fn not_running(settings: &Settings) -> Finding {
    let listen = settings.listen;
    match TcpListener::bind(listen).await {
        Ok(_) => ok("hub", format!("No hub is running, and {listen} is free.")),
        Err(error) => fail(
            "hub",
            format!("No hub is running, and {listen} is not available: {error}."),
            format!(
                "Find the process that uses the port (ss -ltnp 'sport = :{}'), or set another address with --listen.",
                listen.port()
            ),
        ),
    }
}

pub fn open_files(settings: &Settings, status: &StatusReply) -> Finding {
    let (process, limit) = match status {
        Ok(Some(AdminReply::Status { open_files: Some(limit), .. })) => ("The hub", *limit),
        _ => ("A hub started from this shell", limit().unwrap_or(u64::MAX)),
    };
    let needed = settings.max_total_ws_connections as u64 + NON_SOCKET_FILES;
    if limit >= needed {
        return ok("open files", format!("{process} may open enough files for max_total_ws_connections."));
    }
    warn(
        "open files",
        format!(
            "{process} may open {limit} files, but needs {needed} for {} WebSocket connections.",
            settings.max_total_ws_connections
        ),
        "Set LimitNOFILE=65536 in the systemd unit, run ulimit -n 65536, or lower max_total_ws_connections.",
    )
}

/// Maximum number of open files of this process; `None` if unlimited.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
