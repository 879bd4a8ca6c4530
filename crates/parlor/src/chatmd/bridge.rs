//! Implements `parlor bridge`: connects a `chat.md` with a room of a hub, over the network.
//!
//! Owns: the arguments, the API key, and the output. The key is never an argument, because other users of the
//! machine could read it.

use super::show;
use crate::agents::gateway::{address, api_key, certificates, trust};
use crate::secret::Secret;
use crate::style::TerminalStyle;
use anyhow::{Context, bail};
use clap::Args;
use parlor_agents::gateway::connect::{Stream, open};
use parlor_agents::gateway::sign_in::ConnectError;
use parlor_agents::gateway::trust::Trust;
use parlor_chatmd::bridge::client::{Client, authenticate, websocket_config};
use parlor_chatmd::bridge::{self, BridgeError, BridgeNotice, BridgeOptions, ConnectFailure};
use std::io::{self, Write};
use std::path::PathBuf;
use tokio::signal::unix::{SignalKind, signal};
use tokio::sync::mpsc;
use url::Url;

/// Maximum number of notices queued for printing. When it is full, notices are dropped: a blocked terminal must
/// not stop the bridge.
const NOTICE_QUEUE_CAPACITY: usize = 1024;

#[derive(Debug, Args)]
pub struct BridgeArguments {
    /// Project directory that contains .workplace
    #[arg(value_name = "DIR")]
    directory: PathBuf,
    /// ID of the room
    #[arg(long, value_name = "ROOM")]
    room: String,
    /// URL of the hub
    #[arg(long, value_name = "URL", env = "PARLOR_SERVER", default_value = "http://127.0.0.1:7878")]
    server: String,
    /// File with an API key; alternatively, set PARLOR_KEY to the key
    #[arg(long, value_name = "FILE", env = "PARLOR_KEY_FILE")]
    key_file: Option<PathBuf>,
    /// Additional certificate to trust, in PEM format
    #[arg(long, value_name = "FILE", env = "PARLOR_CA_FILE")]
    ca_file: Option<PathBuf>,
    /// At the first start, write the messages that the room already has
    #[arg(long)]
    history: bool,
    /// Forget the room and the positions of an earlier bridge
    #[arg(long)]
    reset: bool,
}

pub async fn run(arguments: &BridgeArguments) -> anyhow::Result<()> {
    let server = address(&arguments.server)?;
    let certificates = arguments.ca_file.as_deref().map(certificates).transpose()?;
    let trust = trust(certificates.as_deref())?;
    let Some(key) = api_key(arguments.key_file.as_deref())? else {
        bail!("there is no API key for the hub: use --key-file FILE or PARLOR_KEY");
    };
    let options = BridgeOptions {
        directory: arguments.directory.clone(),
        room: arguments.room.clone(),
        hub: server.to_string(),
        history: arguments.history,
        reset: arguments.reset,
        patient: false,
    };
    let mut terminate = signal(SignalKind::terminate()).context("cannot wait for signals")?;
    let mut interrupt = signal(SignalKind::interrupt()).context("cannot wait for signals")?;
    let mut hang_up = signal(SignalKind::hangup()).context("cannot wait for signals")?;
    let stop = async move {
        tokio::select! {
            _ = terminate.recv() => {}
            _ = interrupt.recv() => {}
            _ = hang_up.recv() => {}
        }
    };
    let terminal_style = TerminalStyle::for_stdout();
    let chat = arguments.directory.join(".workplace/chat.md");
    let startup = show::startup(&server, &chat, &arguments.room, terminal_style);
    let (notices, mut queued_notices) = mpsc::channel(NOTICE_QUEUE_CAPACITY);
    let printing = tokio::spawn(async move {
        // A bridge that cannot start has no notice, and prints only its error.
        let first = queued_notices.recv().await;
        if let Some(notice) = &first {
            print(&startup);
            print_notice(notice, terminal_style);
        }
        while let Some(notice) = queued_notices.recv().await {
            print_notice(&notice, terminal_style);
        }
    });
    let report = |notice| drop(notices.try_send(notice));
    let ended = bridge::run(options, || connect(&server, &trust, &key), stop, report).await;
    drop(notices);
    let _ = printing.await;
    ended.map_err(|error| match error {
        BridgeError::Rejected(why) => anyhow::anyhow!("cannot connect with the room: {why}"),
        other => other.into(),
    })
}

async fn connect(
    server: &Url,
    trust: &Trust,
    key: &Secret,
) -> Result<Client<Box<dyn Stream>>, ConnectFailure> {
    let opened = open(server, "ws/broker", trust, websocket_config()).await;
    let socket = opened.map_err(|error| match error {
        ConnectError::Wrong(why) => ConnectFailure::Permanent(why),
        ConnectError::NotNow(why) => ConnectFailure::Temporary(why),
    })?;
    authenticate(socket, key.expose()).await
}

/// Prints the state of the connection to standard output, and problems to standard error.
fn print_notice(notice: &BridgeNotice, terminal_style: TerminalStyle) {
    match notice {
        BridgeNotice::Connected | BridgeNotice::Lost { .. } => print(&show::notice(notice, terminal_style)),
        // A failed write is ignored: no other output is left to report it on.
        _ => drop(io::stderr().write_all(show::notice(notice, TerminalStyle::PLAIN).as_bytes())),
    }
}

fn print(text: &str) {
    // The bridge keeps running even if standard output is closed.
    let mut stdout = io::stdout().lock();
    let _ = stdout.write_all(text.as_bytes()).and_then(|()| stdout.flush());
}
