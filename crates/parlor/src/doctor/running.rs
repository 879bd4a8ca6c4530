//! The hub itself, if it runs.

use super::{Finding, fail, ok, warn};
use crate::admin::{AdminReply, AdminRequest};
use crate::control;
use crate::settings::Settings;
use rustix::process::{Resource, getrlimit};
use std::time::Duration;
use tokio::net::{TcpListener, TcpStream};
use tokio::time::timeout;

const PATIENCE: Duration = Duration::from_secs(5);
/// The database, the log, requests under way, and what else is open besides sockets.
const BESIDES_SOCKETS: u64 = 512;

/// What the hub said of itself; `None` if none runs.
pub type StatusReply = Result<Option<AdminReply>, String>;

pub async fn ask(settings: &Settings) -> StatusReply {
    match timeout(PATIENCE, control::ask(&settings.data, &AdminRequest::Status)).await {
        Ok(Ok(reply)) => Ok(reply),
        Ok(Err(error)) => Err(format!("{error:#}")),
        Err(_) => Err("the hub did not answer in time".into()),
    }
}

pub async fn hub(settings: &Settings, said: &StatusReply) -> Finding {
    let listen = settings.listen;
    let (version, store) = match said {
        Ok(None) => return none_runs(settings).await,
        Ok(Some(AdminReply::Status { version, store, .. })) => (version, store.as_str()),
        Ok(Some(_)) => {
            return fail(
                "hub",
                "Another version runs, which does not know this question.",
                "Restart it with this version.",
            );
        }
        Err(error) => {
            return fail("hub", format!("It cannot be asked: {error}."), "Look at its log, and restart it.");
        }
    };
    match store {
        "ok" => {}
        "full" => {
            return fail(
                "hub",
                "It runs, but the disk is full: it keeps nothing.",
                "Make room; it goes on by itself.",
            );
        }
        _ => {
            return fail(
                "hub",
                "It runs, but its disk failed: it keeps nothing until it is restarted.",
                "Look at the disk (dmesg), then restart the hub.",
            );
        }
    }
    if listen.port() != 0 && !matches!(timeout(PATIENCE, TcpStream::connect(listen)).await, Ok(Ok(_))) {
        let says = format!("It runs, but nobody answers at {listen}.");
        return warn(
            "hub",
            says,
            "Are these the settings it was started with? Give the same --listen and --config.",
        );
    }
    if version != env!("CARGO_PKG_VERSION") {
        let says = format!("Version {version} runs; this is {}.", env!("CARGO_PKG_VERSION"));
        return warn("hub", says, "Restart it to have the new version.");
    }
    ok("hub", format!("It runs and keeps what it is told (version {version})."))
}

async fn none_runs(settings: &Settings) -> Finding {
    let listen = settings.listen;
    match TcpListener::bind(listen).await {
        Ok(_) => ok("hub", format!("None runs here, and {listen} is free.")),
        Err(error) => fail(
            "hub",
            format!("None runs here, and {listen} cannot be had: {error}."),
            format!(
                "See who has it (ss -ltnp 'sport = :{}'), or choose another with --listen.",
                listen.port()
            ),
        ),
    }
}

pub fn open_files(settings: &Settings, said: &StatusReply) -> Finding {
    let (whose, most) = match said {
        Ok(Some(AdminReply::Status { open_files: Some(most), .. })) => ("The hub", *most),
        _ => ("A hub started from here", limit().unwrap_or(u64::MAX)),
    };
    let needed = settings.max_total_ws_connections as u64 + BESIDES_SOCKETS;
    if most >= needed {
        return ok("open files", format!("{whose} may have enough for every socket it may have."));
    }
    warn(
        "open files",
        format!(
            "{whose} may have {most}, and needs {needed} for {} sockets.",
            settings.max_total_ws_connections
        ),
        "LimitNOFILE=65536 in the systemd unit, or ulimit -n 65536; or a smaller max_total_ws_connections.",
    )
}

/// How many files this process may have open; `None` if as many as it likes.
pub fn limit() -> Option<u64> {
    getrlimit(Resource::Nofile).current
}
