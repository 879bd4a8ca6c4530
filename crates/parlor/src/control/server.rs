//! Server of the control socket.

use super::{MAX_REQUEST_BYTES, SOCKET_NAME, path::socket_address};
use crate::admin::{AdminReply, AdminRequest};
use std::{
    fs::{self, DirBuilder, Permissions},
    io,
    os::unix::fs::{DirBuilderExt, PermissionsExt},
    path::{Path, PathBuf},
    sync::Arc,
    time::Duration,
};
use tokio::{
    io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader},
    net::{UnixListener, UnixStream},
    sync::watch,
    task::JoinSet,
    time::timeout,
};

/// Private directory in which the socket is created before it is moved to its final path.
const STAGING_DIRECTORY: &str = ".control-new";
/// Timeout for reading the request, and for writing the reply.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// Maximum number of concurrent connections. Further connections wait in the listen queue.
const MAX_CONCURRENT_CONNECTIONS: usize = 16;

/// The bound socket. Dropping it removes the socket file.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Binds the socket in the data directory. The caller holds the directory's lock, so an existing socket
    /// is the leftover of a killed hub and is replaced.
    pub fn bind(data: &Path) -> io::Result<Self> {
        // Bind inside a private directory, restrict the permissions, then move the socket: other users can
        // never connect, not even between bind and chmod.
        let staging = data.join(STAGING_DIRECTORY);
        remove_leftover(&staging)?;
        DirBuilder::new().mode(0o700).create(&staging)?;
        let address = socket_address(&staging, SOCKET_NAME)?;
        let listener = UnixListener::bind(&address.path)?;
        let staged = staging.join(SOCKET_NAME);
        fs::set_permissions(&staged, Permissions::from_mode(0o600))?;
        let path = data.join(SOCKET_NAME);
        fs::rename(&staged, &path)?;
        fs::remove_dir(&staging)?;
        Ok(Self { listener, path })
    }

    /// Serves requests until `stop` resolves. Requests that were received before are finished first.
    pub async fn serve<P, F>(self, perform: P, stop: impl Future<Output = ()>)
    where
        P: Fn(AdminRequest) -> F + Send + Sync + 'static,
        F: Future<Output = AdminReply> + Send + 'static,
    {
        let perform = Arc::new(perform);
        let (stopping, _) = watch::channel(false);
        let mut connections = JoinSet::new();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = connections.join_next() => {}
                accepted = self.listener.accept(), if connections.len() < MAX_CONCURRENT_CONNECTIONS => match accepted {
                    Ok((stream, _)) => {
                        connections.spawn(serve_connection(stream, Arc::clone(&perform), stopping.subscribe()));
                    }
                    // Usually out of file descriptors. There is no notification when one becomes free, so
                    // retry.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
            }
        }
        stopping.send_replace(true);
        while connections.join_next().await.is_some() {}
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // A leftover file is harmless: without a listener, connections to it are refused.
        let _ = fs::remove_file(&self.path);
    }
}

fn remove_leftover(staging: &Path) -> io::Result<()> {
    match fs::remove_dir_all(staging) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn serve_connection<P, F>(mut stream: UnixStream, perform: Arc<P>, mut stopping: watch::Receiver<bool>)
where
    P: Fn(AdminRequest) -> F,
    F: Future<Output = AdminReply>,
{
    let request = tokio::select! {
        // A shutdown does not wait for a client that has not sent its request.
        _ = stopping.wait_for(|stopping| *stopping) => return,
        request = timeout(REQUEST_TIMEOUT, read_request(&mut stream)) => match request {
            Ok(Ok(request)) => request,
            Ok(Err(_)) | Err(_) => return,
        },
    };
    let reply = match request {
        Ok(request) => perform(request).await,
        Err(reason) => AdminReply::Refused { reason },
    };
    let mut line = serde_json::to_vec(&reply)
        .expect("replies contain only strings, numbers and lists, which JSON can represent");
    line.push(b'\n');
    // The client may have disconnected; the request has been executed anyway.
    let _ = timeout(REQUEST_TIMEOUT, stream.write_all(&line)).await;
}

async fn read_request(stream: &mut UnixStream) -> io::Result<Result<AdminRequest, String>> {
    let mut line = Vec::new();
    BufReader::new(stream.take(MAX_REQUEST_BYTES)).read_until(b'\n', &mut line).await?;
    if line.last() != Some(&b'\n') {
        return Ok(Err(format!("a request must be one line of JSON of at most {MAX_REQUEST_BYTES} bytes")));
    }
    // The parser's error message is not passed on, because it could contain a password.
    Ok(serde_json::from_slice(&line)
        .map_err(|_| "the hub does not support this request; does it run another version?".into()))
}
