//! Client of the control socket: sends one request to a running hub.

use super::{MAX_REPLY_BYTES, SOCKET_NAME, path::socket_address};
use crate::admin::{AdminReply, AdminRequest};
use anyhow::{Context, bail};
use std::{io, path::Path, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    time::timeout,
};

/// Timeout for the reply. It is long, because a request can wait for other password hashes to finish.
const REPLY_TIMEOUT: Duration = Duration::from_secs(30);

/// Sends the request to the hub of this data directory. Returns `None` if no hub is running.
pub async fn ask(data: &Path, request: &AdminRequest) -> anyhow::Result<Option<AdminReply>> {
    let Some(stream) = connect(data).await? else { return Ok(None) };
    let reply = timeout(REPLY_TIMEOUT, exchange(stream, request)).await;
    let late = || format!("the hub did not reply within {} seconds", REPLY_TIMEOUT.as_secs());
    reply.with_context(late)?.map(Some)
}

async fn connect(data: &Path) -> anyhow::Result<Option<UnixStream>> {
    let shown = data.join(SOCKET_NAME);
    let connected = match socket_address(data, SOCKET_NAME) {
        Ok(address) => UnixStream::connect(&address.path).await,
        Err(error) => Err(error),
    };
    match connected {
        Ok(stream) => Ok(Some(stream)),
        // NotFound: no hub is running. ConnectionRefused: a killed hub left its socket file behind.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("cannot reach the hub at {}", shown.display())),
    }
}

async fn exchange(mut stream: UnixStream, request: &AdminRequest) -> anyhow::Result<AdminReply> {
    let mut line = serde_json::to_vec(request).context("cannot encode the request")?;
    line.push(b'\n');
    stream.write_all(&line).await.context("the hub closed the connection")?;
    let mut reply = Vec::new();
    let mut reader = BufReader::new(stream.take(MAX_REPLY_BYTES));
    reader.read_until(b'\n', &mut reply).await.context("the hub closed the connection")?;
    if reply.is_empty() {
        bail!("the hub closed the connection without a reply");
    }
    serde_json::from_slice(&reply).context("this version does not understand the reply of the hub")
}
