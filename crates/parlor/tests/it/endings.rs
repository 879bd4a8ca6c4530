//! Connections closed by the hub: revocation of a sign-in, and shutdown.

use std::time::Duration;

use parlor_testkit::agentim::{Client, message};
use parlor_testkit::socket::{SocketEvent, TEST_TIMEOUT};
use serde_json::json;

use crate::scene::{PASSWORD, Scene, auth_error, following, heard, next};

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_sign_in_is_notified_and_its_connections_are_closed() {
    let scene = Scene::start().await;
    let alice = scene.person("alice").await;
    let room = alice.make_room("kitchen", &[]).await.unwrap();
    let sign_in = || async { scene.hub.sign_in("alice", PASSWORD).await.unwrap() };

    // Signing out closes the connections of that sign-in and no others.
    let other = sign_in().await;
    let (mut revoked_client, mut stays) = (following(&alice, &room).await, following(&other, &room).await);
    alice.post("/api/auth/logout", json!({})).await.unwrap();
    assert_session_revoked(&mut revoked_client).await;
    let sessions = other.get("/api/auth/sessions").await.unwrap().data().unwrap();
    assert_eq!(sessions.as_array().unwrap().len(), 1);
    other.post_message(&room, "still here").await.unwrap();
    assert_eq!(heard(&mut stays).await["content"], "still here");

    // Revoking a sign-in from another device closes its connections.
    let third = sign_in().await;
    let mut revoked_client = following(&third, &room).await;
    let sessions = third.get("/api/auth/sessions").await.unwrap().data().unwrap();
    let own = sessions.as_array().unwrap().iter().find(|session| session["current"] == true).unwrap();
    other.delete(&format!("/api/auth/sessions/{}", own["id"].as_str().unwrap())).await.unwrap();
    assert_session_revoked(&mut revoked_client).await;
    assert_eq!(auth_error(&third).await, "Invalid token");

    // A new password revokes every sign-in.
    const NEW: &str = "Better-horse-8";
    let mut revoked_clients = [following(&other, &room).await, following(&sign_in().await, &room).await];
    let body = json!({ "currentPassword": PASSWORD, "newPassword": NEW });
    assert_eq!(other.put("/api/users/me/password", body).await.unwrap().status, 200);
    for client in revoked_clients.iter_mut().chain([&mut stays]) {
        assert_session_revoked(client).await;
    }
    let alice = scene.hub.sign_in("alice", NEW).await.unwrap();
    let mut revoked_client = following(&alice, &room).await;
    let path = format!("/api/users/{}", alice.user_id());
    scene.admin.put(&path, json!({ "password": PASSWORD })).await.unwrap().data().unwrap();
    assert_session_revoked(&mut revoked_client).await;

    // Deleting the account revokes every sign-in.
    let mut revoked_client = following(&sign_in().await, &room).await;
    scene.admin.delete(&path).await.unwrap();
    assert_session_revoked(&mut revoked_client).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn a_shutdown_notifies_and_closes_every_connection() {
    let mut scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..100 {
        clients.push(following(&scene.admin, &room).await);
    }
    let mut unauthenticated = Client::open(scene.url()).await.unwrap();
    let readers = tokio::spawn(async move {
        for client in &mut clients {
            let error = next(client, "server:error").await;
            assert_eq!(error["code"], "SERVER_SHUTDOWN");
            assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 1001);
        }
        assert_eq!(unauthenticated.closed(TEST_TIMEOUT).await.unwrap(), 1001);
    });
    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    readers.await.unwrap();
    scene.assert_never_panicked();
}

#[tokio::test(flavor = "multi_thread")]
async fn every_message_acknowledged_before_a_shutdown_is_stored() {
    let mut scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut client = Client::connect(&scene.admin).await.unwrap();
    for n in 0..200 {
        client.feed(&message(&room, "hello", &format!("m{n}"))).await.unwrap();
    }
    client.flush().await.unwrap();
    next(&mut client, "server:message_ack").await;
    let reader = tokio::spawn(async move {
        let mut acknowledged = 1;
        loop {
            match client.next(TEST_TIMEOUT).await.unwrap() {
                SocketEvent::Frame(frame) => {
                    acknowledged += usize::from(frame["type"] == "server:message_ack");
                }
                SocketEvent::Closed(_) => return acknowledged,
            }
        }
    });
    scene.hub.stop(Duration::from_secs(10)).await.unwrap();
    let acknowledged = reader.await.unwrap();
    scene.hub = scene.command.start().await.unwrap();
    let history = scene.admin.at(scene.hub.url()).history(&room).await.unwrap();
    assert!(
        history.len() >= acknowledged,
        "only {} of {acknowledged} acknowledged messages are stored",
        history.len()
    );
    scene.ends_well().await;
}

/// Asserts that the hub sends `SESSION_REVOKED` and closes the connection with 1008.
async fn assert_session_revoked(client: &mut Client) {
    let error = next(client, "server:error").await;
    assert_eq!(error["code"], "SESSION_REVOKED");
    assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 1008);
}
