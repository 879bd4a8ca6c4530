//! Answers at the control socket.

use super::{LONGEST_REQUEST, SOCKET_NAME, path::socket_address};
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

/// Where the socket is made before it is shown.
const STAGING_DIRECTORY: &str = ".control-new";
/// One that connects must say its line within this time.
const REQUEST_TIMEOUT: Duration = Duration::from_secs(10);
/// More at once wait to be accepted.
const MOST_AT_ONCE: usize = 16;

/// The bound socket; its file goes away with it.
#[derive(Debug)]
pub struct ControlSocket {
    listener: UnixListener,
    path: PathBuf,
}

impl ControlSocket {
    /// Binds the socket in the data directory. The caller holds the directory's lock, so a socket
    /// that is there is a leftover and is replaced.
    pub fn bind(data: &Path) -> io::Result<Self> {
        // Bound inside a directory that only we can enter, then protected, then moved: at no moment
        // can another user connect.
        let workshop = data.join(STAGING_DIRECTORY);
        remove_leftover(&workshop)?;
        DirBuilder::new().mode(0o700).create(&workshop)?;
        let address = socket_address(&workshop, SOCKET_NAME)?;
        let listener = UnixListener::bind(&address.path)?;
        let made = workshop.join(SOCKET_NAME);
        fs::set_permissions(&made, Permissions::from_mode(0o600))?;
        let path = data.join(SOCKET_NAME);
        fs::rename(&made, &path)?;
        fs::remove_dir(&workshop)?;
        Ok(Self { listener, path })
    }

    /// Answers until told to stop; what was begun is finished first.
    pub async fn serve<P, F>(self, perform: P, stop: impl Future<Output = ()>)
    where
        P: Fn(AdminRequest) -> F + Send + Sync + 'static,
        F: Future<Output = AdminReply> + Send + 'static,
    {
        let perform = Arc::new(perform);
        let (stopping, _) = watch::channel(false);
        let mut conversations = JoinSet::new();
        tokio::pin!(stop);
        loop {
            tokio::select! {
                () = &mut stop => break,
                Some(_) = conversations.join_next() => {}
                accepted = self.listener.accept(), if conversations.len() < MOST_AT_ONCE => match accepted {
                    Ok((stream, _)) => {
                        conversations.spawn(converse(stream, Arc::clone(&perform), stopping.subscribe()));
                    }
                    // Out of file descriptors: nothing tells when one is free again.
                    Err(_) => tokio::time::sleep(Duration::from_millis(100)).await,
                },
            }
        }
        stopping.send_replace(true);
        while conversations.join_next().await.is_some() {}
    }
}

impl Drop for ControlSocket {
    fn drop(&mut self) {
        // If it cannot be removed, connecting is refused all the same.
        let _ = fs::remove_file(&self.path);
    }
}

fn remove_leftover(workshop: &Path) -> io::Result<()> {
    match fs::remove_dir_all(workshop) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

async fn converse<P, F>(mut stream: UnixStream, perform: Arc<P>, mut stopping: watch::Receiver<bool>)
where
    P: Fn(AdminRequest) -> F,
    F: Future<Output = AdminReply>,
{
    let request = tokio::select! {
        // One that has not asked yet need not be waited for.
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
    let mut line =
        serde_json::to_vec(&reply).expect("a reply is made of text and lists, which JSON can hold");
    line.push(b'\n');
    // The asker may be gone; what it asked for is done all the same.
    let _ = timeout(REQUEST_TIMEOUT, stream.write_all(&line)).await;
}

async fn read_request(stream: &mut UnixStream) -> io::Result<Result<AdminRequest, String>> {
    let mut line = Vec::new();
    BufReader::new(stream.take(LONGEST_REQUEST)).read_until(b'\n', &mut line).await?;
    if line.last() != Some(&b'\n') {
        return Ok(Err("a request is one line of JSON, and not a long one".into()));
    }
    // The parser's own words could repeat a password.
    Ok(serde_json::from_slice(&line)
        .map_err(|_| "this hub does not know such a request; is it another version?".into()))
}
