//! The control socket over real sockets.

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

/// A hub that only answers: removing a user echoes the name, everything else is refused.
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
    let (one, other) = (remove("ada"), remove("grace"));
    let (one, other) = tokio::join!(ask(data.path(), &one), ask(data.path(), &other));
    assert_eq!(one.unwrap(), Some(AdminReply::UserRemoved { username: "ada".into() }));
    assert_eq!(other.unwrap(), Some(AdminReply::UserRemoved { username: "grace".into() }));
    hub.stop().await;
}

#[tokio::test]
async fn a_password_crosses_the_socket_and_no_debug_text_shows_it() {
    let data = TempDir::new().unwrap();
    let hub = Hub::start(data.path());
    let request = AdminRequest::ResetPassword { username: "ada".into(), password: Secret::new("canary") };
    let reply = ask(data.path(), &request).await.unwrap();
    let Some(AdminReply::Refused { reason }) = reply else { panic!("{reply:?}") };
    assert!(reason.contains("ada") && !reason.contains("canary"), "{reason}");
    hub.stop().await;
}

#[tokio::test]
async fn no_hub_is_told_apart_from_a_hub_that_refuses() {
    let data = TempDir::new().unwrap();
    assert_eq!(ask(data.path(), &remove("ada")).await.unwrap(), None);
    assert_eq!(ask(Path::new("/nowhere/at/all"), &remove("ada")).await.unwrap(), None);
    let hub = Hub::start(data.path());
    hub.stop().await;
    assert!(!data.path().join(SOCKET_NAME).exists());
    assert_eq!(ask(data.path(), &remove("ada")).await.unwrap(), None);
}

#[tokio::test]
async fn the_leftover_of_a_killed_hub_is_no_hub_and_is_replaced() {
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
async fn what_is_no_request_is_refused_without_repeating_it() {
    let data = TempDir::new().unwrap();
    let hub = Hub::start(data.path());
    check_refused(data.path(), b"hello canary\n", "does not know such a request").await;
    check_refused(data.path(), b"{\"request\":\"canary\"}\n", "does not know such a request").await;
    check_refused(data.path(), &[b'x'; 70_000], "not a long one").await;
    hub.stop().await;
}

async fn check_refused(data: &Path, bytes: &[u8], reason: &str) {
    let mut stream = connect(data).await;
    // The hub may stop reading and close before everything is written.
    let _ = stream.write_all(bytes).await;
    let _ = stream.shutdown().await;
    let mut reply = Vec::new();
    // Unread bytes make the close a reset; what was answered before it has arrived all the same.
    let _ = stream.read_to_end(&mut reply).await;
    let reply = String::from_utf8(reply).unwrap();
    assert!(reply.starts_with("{\"reply\":\"refused\"") && reply.contains(reason), "{reply}");
    assert!(!reply.contains("canary"), "{reply}");
}

#[tokio::test]
async fn stopping_does_not_wait_for_one_who_says_nothing() {
    let data = TempDir::new().unwrap();
    let hub = Hub::start(data.path());
    let mut silent = connect(data.path()).await;
    // Answered after the silent one connected, so the hub has accepted both.
    assert!(ask(data.path(), &remove("ada")).await.unwrap().is_some());
    hub.stop().await;
    assert_eq!(silent.read(&mut [0; 1]).await.unwrap(), 0, "closed without an answer");
}

#[tokio::test]
async fn stopping_finishes_what_was_begun() {
    let data = TempDir::new().unwrap();
    let socket = ControlSocket::bind(data.path()).unwrap();
    let (begun, may_end) = (Arc::new(Notify::new()), Arc::new(Notify::new()));
    let (stop, stopped) = oneshot::channel::<()>();
    let (at_begin, at_end) = (Arc::clone(&begun), Arc::clone(&may_end));
    let perform = move |request| {
        let (at_begin, at_end) = (Arc::clone(&at_begin), Arc::clone(&at_end));
        async move {
            at_begin.notify_one();
            at_end.notified().await;
            answer(request).await
        }
    };
    let serving = tokio::spawn(socket.serve(perform, async {
        let _ = stopped.await;
    }));
    let path = data.path().to_owned();
    let asking = tokio::spawn(async move { ask(&path, &remove("ada")).await });
    begun.notified().await;
    stop.send(()).unwrap();
    may_end.notify_one();
    serving.await.unwrap();
    assert_eq!(asking.await.unwrap().unwrap(), Some(AdminReply::UserRemoved { username: "ada".into() }));
}

async fn connect(data: &Path) -> UnixStream {
    UnixStream::connect(&socket_address(data, SOCKET_NAME).unwrap().path).await.unwrap()
}
