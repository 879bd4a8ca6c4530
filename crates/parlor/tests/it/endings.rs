//! How connections end from the hub's side: a session revoked, the hub shut down.

use std::time::Duration;

use parlor_testkit::agentim::{Client, message};
use parlor_testkit::socket::{SocketEvent, TEST_TIMEOUT};
use serde_json::json;

use crate::scene::{PASSWORD, Scene, auth_error, following, heard, next};

#[tokio::test(flavor = "multi_thread")]
async fn a_revoked_session_is_told_and_closed_within_a_second() {
    let scene = Scene::start().await;
    let alice = scene.person("alice").await;
    let room = alice.make_room("kitchen", &[]).await.unwrap();
    let again = || async { scene.hub.sign_in("alice", PASSWORD).await.unwrap() };

    // Logging out ends that session's connections and no others.
    let other = again().await;
    let (mut gone, mut stays) = (following(&alice, &room).await, following(&other, &room).await);
    alice.post("/api/auth/logout", json!({})).await.unwrap();
    revoked(&mut gone).await;
    let sessions = other.get("/api/auth/sessions").await.unwrap().data().unwrap();
    assert_eq!(sessions.as_array().unwrap().len(), 1);
    other.post_message(&room, "still here").await.unwrap();
    assert_eq!(heard(&mut stays).await["content"], "still here");

    // So does ending it from another device.
    let third = again().await;
    let mut gone = following(&third, &room).await;
    let sessions = third.get("/api/auth/sessions").await.unwrap().data().unwrap();
    let own = sessions.as_array().unwrap().iter().find(|session| session["current"] == true).unwrap();
    other.delete(&format!("/api/auth/sessions/{}", own["id"].as_str().unwrap())).await.unwrap();
    revoked(&mut gone).await;
    assert_eq!(auth_error(&third).await, "Invalid token");

    // A new password ends all of them.
    const NEW: &str = "Better-horse-8";
    let mut gone = [following(&other, &room).await, following(&again().await, &room).await];
    let body = json!({ "currentPassword": PASSWORD, "newPassword": NEW });
    assert_eq!(other.put("/api/users/me/password", body).await.unwrap().status, 200);
    for client in gone.iter_mut().chain([&mut stays]) {
        revoked(client).await;
    }
    let alice = scene.hub.sign_in("alice", NEW).await.unwrap();
    let mut gone = following(&alice, &room).await;
    let path = format!("/api/users/{}", alice.user_id());
    scene.admin.put(&path, json!({ "password": PASSWORD })).await.unwrap().data().unwrap();
    revoked(&mut gone).await;

    // And so does the end of the account.
    let mut gone = following(&again().await, &room).await;
    scene.admin.delete(&path).await.unwrap();
    revoked(&mut gone).await;
    scene.ends_well().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn at_shutdown_everyone_is_told_at_once_and_the_process_ends() {
    let mut scene = Scene::start().await;
    let room = scene.admin.make_room("kitchen", &[]).await.unwrap();
    let mut clients = Vec::new();
    for _ in 0..100 {
        clients.push(following(&scene.admin, &room).await);
    }
    let mut stranger = Client::open(scene.url()).await.unwrap();
    let readers = tokio::spawn(async move {
        for client in &mut clients {
            let told = next(client, "server:error").await;
            assert_eq!(told["code"], "SERVER_SHUTDOWN");
            assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 1001);
        }
        assert_eq!(stranger.closed(TEST_TIMEOUT).await.unwrap(), 1001);
    });
    scene.hub.stop(TEST_TIMEOUT).await.unwrap();
    readers.await.unwrap();
    scene.assert_never_panicked();
}

#[tokio::test(flavor = "multi_thread")]
async fn what_was_sent_before_a_shutdown_is_acknowledged_or_not_there() {
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
    assert!(history.len() >= acknowledged, "{} of {acknowledged} are there", history.len());
    scene.ends_well().await;
}

async fn revoked(client: &mut Client) {
    let told = next(client, "server:error").await;
    assert_eq!(told["code"], "SESSION_REVOKED");
    assert_eq!(client.closed(TEST_TIMEOUT).await.unwrap(), 1008);
}
