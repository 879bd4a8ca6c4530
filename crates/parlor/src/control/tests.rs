//! Tests of the control socket with real Unix sockets.

use super::{path::socket_address, *};
use crate::{
    admin::{AdminReply, AdminRequest},
    secret::Secret,
};
use std::{
    os::unix::fs::PermissionsExt,
    path::{Path, PathBuf},
    sync::Arc,
};
use tempfile::TempDir;
use tokio::{
    io::{AsyncReadExt, AsyncWriteExt},
    net::UnixStream,
    sync::{Notify, oneshot},
    task::JoinHandle,
};

/// A fake hub: it replies to `RemoveUser` with the username, and refuses every other request.
struct Hub {
    stop: oneshot::Sender<()>,
    serving: JoinHandle<()>,
}

impl Hub {
    fn start(data: &Path) -> Self {
        let socket = ControlSocket::bind(data).unwrap();
        let (stop, stopped) = oneshot::channel();
        let serving = tokio::spawn(socket.serve(answer, async {
            let _ = stopped.await;
        }));
        Self { stop, serving }
    }

    async fn stop(self) {
        self.stop.send(()).unwrap();
        self.serving.await.unwrap();
    }
}

async fn answer(request: AdminRequest) -> AdminReply {
    match request {
        AdminRequest::RemoveUser { username } => AdminReply::UserRemoved { username },
        other => AdminReply::Refused { reason: format!("{other:?}") },
    }
}

fn remove(name: &str) -> AdminRequest {
    AdminRequest::RemoveUser { username: name.into() }
}

#[tokio::test]
async fn a_request_is_answered_by_the_running_hub() {
    let data = TempDir::new().unwrap();
    let hub = Hub::start(data.path());
    let (first, second) = (remove("ada"), remove("grace"));
    let (first, second) = tokio::join!(ask(data.path(), &first), ask(data.path(), &second));
    assert_eq!(first.unwrap(), Some(AdminReply::UserRemoved { username: "ada".into() }));
    assert_eq!(second.unwrap(), Some(AdminReply::UserRemoved { username: "grace".into() }));
    hub.stop().await;
}

#[tokio::test]
async fn a_password_is_sent_over_the_socket_and_masked_in_debug_output() {
    let data = TempDir::new().unwrap();
    let hub = Hub::start(data.path());
    let request = AdminRequest::ResetPassword { username: "ada".into(), password: Secret::new("canary") };
    let reply = ask(data.path(), &request).await.unwrap();
    let Some(AdminReply::Refused { reason }) = reply else { panic!("{reply:?}") };
    assert!(reason.contains("ada") && !reason.contains("canary"), "{reason}");
    hub.stop().await;
}

#[tokio::test]
async fn without_a_running_hub_the_client_returns_none() {
    let data = TempDir::new().unwrap();
    assert_eq!(ask(data.path(), &remove("ada")).await.unwrap(), None);
    assert_eq!(ask(Path::new("/nowhere/at/all"), &remove("ada")).await.unwrap(), None);
    let hub = Hub::start(data.path());
    hub.stop().await;
    assert!(!data.path().join(SOCKET_NAME).exists());
    assert_eq!(ask(data.path(), &remove("ada")).await.unwrap(), None);
}

#[tokio::test]
async fn the_leftover_socket_of_a_killed_hub_is_ignored_and_replaced() {
    let data = TempDir::new().unwrap();
    drop(std::os::unix::net::UnixListener::bind(data.path().join(SOCKET_NAME)).unwrap());
    std::fs::create_dir(data.path().join(".control-new")).unwrap();
    assert_eq!(ask(data.path(), &remove("ada")).await.unwrap(), None);
    let hub = Hub::start(data.path());
    assert!(ask(data.path(), &remove("ada")).await.unwrap().is_some());
    hub.stop().await;
}

#[tokio::test]
async fn only_the_owner_can_open_the_socket() {
    let data = TempDir::new().unwrap();
    let hub = Hub::start(data.path());
    let mode = std::fs::metadata(data.path().join(SOCKET_NAME)).unwrap().permissions().mode();
    assert_eq!(mode & 0o777, 0o600);
    hub.stop().await;
}

#[tokio::test]
async fn a_data_directory_with_a_long_name_works() {
    let directory = TempDir::new().unwrap();
    let data: PathBuf = directory.path().join("d".repeat(120)).join("e".repeat(120));
    std::fs::create_dir_all(&data).unwrap();
    let hub = Hub::start(&data);
    assert!(ask(&data, &remove("ada")).await.unwrap().is_some());
    hub.stop().await;
    assert!(!data.join(SOCKET_NAME).exists());
}

#[tokio::test]
async fn an_invalid_request_is_refused_without_quoting_it() {
    let data = TempDir::new().unwrap();
    let hub = Hub::start(data.path());
    check_refused(data.path(), b"hello canary\n", "does not support this request").await;
    check_refused(data.path(), b"{\"request\":\"canary\"}\n", "does not support this request").await;
    check_refused(data.path(), &[b'x'; 70_000], "at most 65536 bytes").await;
    hub.stop().await;
}

async fn check_refused(data: &Path, bytes: &[u8], reason: &str) {
    let mut stream = connect(data).await;
    // The hub may stop reading and close before everything is written.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut reply = Vec::new();
    // Unread bytes turn the close into a reset, but the reply has arrived before it.
    let _ = stream.read_to_end(&mut reply).await;
    let reply = String::from_utf8(reply).unwrap();
    assert!(reply.starts_with("{\"reply\":\"refused\"") && reply.contains(reason), "{reply}");
    assert!(!reply.contains("canary"), "{reply}");
}

#[tokio::test]
async fn stopping_does_not_wait_for_a_client_without_a_request() {
    let data = TempDir::new().unwrap();
    let hub = Hub::start(data.path());
    let mut silent = connect(data.path()).await;
    // This request is answered after the silent client connected, so the hub has accepted both.
    assert!(ask(data.path(), &remove("ada")).await.unwrap().is_some());
    hub.stop().await;
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0, "closed without an answer");
}

#[tokio::test]
async fn stopping_finishes_received_requests() {
    let data = TempDir::new().unwrap();
    let socket = ControlSocket::bind(data.path()).unwrap();
    let (started, may_finish) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (stop, stopped) = oneshot::channel::<()>();
    let (on_start, on_finish) = (Arc::clone(&started), Arc::clone(&may_finish));
    let perform = move |request| {
        let (on_start, on_finish) = (Arc::clone(&on_start), Arc::clone(&on_finish));
        async move {
            on_start.notify_one();
            on_finish.notified().await;
            answer(request).await
        }
    };
    let serving = tokio::spawn(socket.serve(perform, async {
        let _ = stopped.await;
    }));
    let path = data.path().to_owned();
    let request = tokio::spawn(async move { ask(&path, &remove("ada")).await });
    started.notified().await;
    stop.send(()).unwrap();
    may_finish.notify_one();
    serving.await.unwrap();
    assert_eq!(request.await.unwrap().unwrap(), Some(AdminReply::UserRemoved { username: "ada".into() }));
}

async fn connect(data: &Path) -> UnixStream {
    UnixStream::connect(&socket_address(data, SOCKET_NAME).unwrap().path).await.unwrap()
}
