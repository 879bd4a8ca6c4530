//! Asks a running hub.

use super::{LONGEST_REPLY, SOCKET_NAME, path::socket_address};
use crate::admin::{AdminReply, AdminRequest};
use anyhow::{Context, bail};
use std::{io, path::Path, time::Duration};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::UnixStream,
    time::timeout,
};

/// Hashing a password behind others takes a while; a hub that needs longer is stuck.
const PATIENCE: Duration = Duration::from_secs(30);

/// Sends the request to the hub of this data directory; `None` if no hub is running.
pub async fn ask(data: &Path, request: &AdminRequest) -> anyhow::Result<Option<AdminReply>> {
    let Some(stream) = connect(data).await? else { return Ok(None) };
    let reply = timeout(PATIENCE, exchange(stream, request)).await;
    reply.with_context(|| format!("the hub did not answer within {} seconds", PATIENCE.as_secs()))?.map(Some)
}

async fn connect(data: &Path) -> anyhow::Result<Option<UnixStream>> {
    let shown = data.join(SOCKET_NAME);
    let connected = match socket_address(data, SOCKET_NAME) {
        Ok(address) => UnixStream::connect(&address.path).await,
        Err(error) => Err(error),
    };
    match connected {
        Ok(stream) => Ok(Some(stream)),
        // No file: no hub has run here. Refused: one has, and was killed before it could clean up.
        Err(error) if matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::ConnectionRefused) => {
            Ok(None)
        }
        Err(error) => Err(error).with_context(|| format!("cannot reach the hub at {}", shown.display())),
    }
}

async fn exchange(mut stream: UnixStream, request: &AdminRequest) -> anyhow::Result<AdminReply> {
    let mut line = serde_json::to_vec(request).context("cannot write the request")?;
    line.push(b'\n');
    stream.write_all(&line).await.context("the hub closed the connection")?;
    let mut reply = Vec::new();
    let mut reader = BufReader::new(stream.take(LONGEST_REPLY));
    reader.read_until(b'\n', &mut reply).await.context("the hub closed the connection")?;
    if reply.is_empty() {
        bail!("the hub closed the connection without an answer");
    }
    serde_json::from_slice(&reply).context("the hub answered in a way this version does not understand")
}
