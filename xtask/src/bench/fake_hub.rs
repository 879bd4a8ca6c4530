//! A fake hub for tests of the benchmark itself. It implements only the requests and frames that the
//! scenarios use, in memory and without checks, so its numbers are meaningless.

use super::reference::listen;
use anyhow::Result;
use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::http::StatusCode;
use axum::routing::{get, post};
use axum::{Json, Router};
use serde_json::{Value, json};
use std::collections::HashMap;
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex};
use tokio::sync::broadcast::{self, error::RecvError};

#[derive(Default)]
struct FakeHub {
    next: AtomicU64,
    rooms: Mutex<HashMap<String, broadcast::Sender<Utf8Bytes>>>,
}

pub async fn serve() -> Result<()> {
    let routes = Router::new()
        .route("/api/auth/login", post(login))
        .route("/api/users", post(create))
        .route("/api/rooms", post(create))
        .route(
            "/ws/client",
            get(async |upgrade: WebSocketUpgrade, State(hub): State<Arc<FakeHub>>| {
                upgrade.read_buffer_size(4 * 1024).on_upgrade(move |socket| client(socket, hub))
            }),
        )
        .with_state(Arc::new(FakeHub::default()));
    listen(routes).await
}

async fn login(Json(credentials): Json<Value>) -> Json<Value> {
    let user = json!({"id": credentials["username"], "username": credentials["username"]});
    Json(json!({"ok": true, "data": {"user": user, "accessToken": "token", "refreshToken": "token"}}))
}

async fn create(State(hub): State<Arc<FakeHub>>) -> (StatusCode, Json<Value>) {
    let id = hub.next.fetch_add(1, Ordering::Relaxed).to_string();
    (StatusCode::CREATED, Json(json!({"ok": true, "data": {"id": id}})))
}

async fn client(mut socket: WebSocket, hub: Arc<FakeHub>) {
    let mut subscription: Option<broadcast::Receiver<Utf8Bytes>> = None;
    loop {
        let answer = tokio::select! {
            message = socket.recv() => match message {
                Some(Ok(Message::Text(text))) => answer(&text, &hub, &mut subscription),
                Some(Ok(_)) => None,
                _ => return,
            },
            text = next(&mut subscription) => match text {
                Ok(text) => Some(text),
                // The receiver lagged: close the connection, so that the measurement fails instead of
                // waiting.
                Err(_) => return,
            },
        };
        if let Some(answer) = answer
            && socket.send(Message::Text(answer)).await.is_err()
        {
            return;
        }
    }
}

async fn next(subscription: &mut Option<broadcast::Receiver<Utf8Bytes>>) -> Result<Utf8Bytes, RecvError> {
    match subscription {
        Some(receiver) => receiver.recv().await,
        None => std::future::pending().await,
    }
}

fn answer(
    text: &str,
    hub: &FakeHub,
    subscription: &mut Option<broadcast::Receiver<Utf8Bytes>>,
) -> Option<Utf8Bytes> {
    let frame: Value = serde_json::from_str(text).ok()?;
    let room = || {
        let mut rooms = hub.rooms.lock().expect("no thread panics while holding the lock");
        let name = frame["roomId"].as_str().unwrap_or_default().to_string();
        rooms.entry(name).or_insert_with(|| broadcast::channel(1024).0).clone()
    };
    let answer = match frame["type"].as_str()? {
        "client:auth" => json!({"type": "server:auth_result", "ok": true}),
        "client:join_room" => {
            *subscription = Some(room().subscribe());
            json!({"type": "server:room_joined", "roomId": frame["roomId"], "position": "1-0"})
        }
        "client:send_message" => {
            let seq = hub.next.fetch_add(1, Ordering::Relaxed);
            let message =
                json!({"id": seq.to_string(), "roomId": frame["roomId"], "content": frame["content"]});
            // Formatted by hand, because the hub writes the type first, while a JSON map would sort it.
            let delivery =
                format!(r#"{{"type":"server:new_message","message":{message},"position":"1-{seq}"}}"#);
            let _ = room().send(delivery.into());
            let key = frame.get("clientMessageId")?;
            json!({"type": "server:message_ack", "clientMessageId": key, "seq": seq, "epoch": 1})
        }
        kind => json!({"type": "server:error", "code": "INVALID_MESSAGE", "message": kind}),
    };
    Some(answer.to_string().into())
}
