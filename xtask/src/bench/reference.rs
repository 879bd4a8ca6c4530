//! The reference server: plain axum WebSockets and server-sent events.
//!
//! `/echo` returns every text frame. `/broadcast` forwards every text frame, without parsing it, to all
//! connections that sent `join`, and to all readers of `/events`.

use anyhow::Result;
use axum::Router;
use axum::extract::State;
use axum::extract::ws::{Message, Utf8Bytes, WebSocket, WebSocketUpgrade};
use axum::response::sse::{Event, Sse};
use axum::routing::get;
use axum::serve::ListenerExt;
use futures_util::{SinkExt, Stream, stream};
use std::convert::Infallible;
use tokio::net::TcpListener;
use tokio::sync::broadcast;

/// Capacity of the broadcast channel; larger than the window of any publisher, so that no receiver lags.
const BROADCAST_CAPACITY: usize = 1024;
/// Read buffer per connection. The default of 128 KiB would make the reference needlessly slow and large.
const READ_BUFFER_BYTES: usize = 4 * 1024;

type Room = broadcast::Sender<Utf8Bytes>;

pub async fn serve() -> Result<()> {
    let room: Room = broadcast::channel(BROADCAST_CAPACITY).0;
    let routes = Router::new()
        .route(
            "/echo",
            get(async |upgrade: WebSocketUpgrade| {
                upgrade.read_buffer_size(READ_BUFFER_BYTES).on_upgrade(echo)
            }),
        )
        .route(
            "/broadcast",
            get(async |upgrade: WebSocketUpgrade, State(room): State<Room>| {
                upgrade.read_buffer_size(READ_BUFFER_BYTES).on_upgrade(move |socket| member(socket, room))
            }),
        )
        .route("/events", get(async |State(room): State<Room>| events(room)))
        .with_state(room);
    listen(routes).await
}

/// Serves on a free port and prints its URL, like the hub.
pub async fn listen(routes: Router) -> Result<()> {
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    println!("http://{}", listener.local_addr()?);
    let listener = listener.tap_io(|stream| {
        let _ = stream.set_nodelay(true);
    });
    Ok(axum::serve(listener, routes).await?)
}

async fn echo(mut socket: WebSocket) {
    while let Some(Ok(message)) = socket.recv().await {
        if let Message::Text(_) = message
            && socket.send(message).await.is_err()
        {
            return;
        }
    }
}

async fn member(mut socket: WebSocket, room: Room) {
    while let Some(Ok(message)) = socket.recv().await {
        match message {
            Message::Text(text) if text.as_str() == "join" => {
                let messages = room.subscribe();
                if socket.send(Message::text("joined")).await.is_ok() {
                    forward(socket, messages).await;
                }
                return;
            }
            Message::Text(text) => {
                let _ = room.send(text);
            }
            _ => {}
        }
    }
}

/// Streams all texts with axum's server-sent events.
fn events(room: Room) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let messages = room.subscribe();
    Sse::new(stream::unfold(messages, async |mut messages| {
        let text = messages.recv().await.ok()?;
        Some((Ok(Event::default().data(text.as_str())), messages))
    }))
}

/// Writes all available messages before each flush; a flush per message would make the reference too slow.
async fn forward(mut socket: WebSocket, mut messages: broadcast::Receiver<Utf8Bytes>) {
    loop {
        tokio::select! {
            text = messages.recv() => {
                let Ok(text) = text else { return };
                let mut next = Some(text);
                while let Some(text) = next {
                    if socket.feed(Message::Text(text)).await.is_err() {
                        return;
                    }
                    next = messages.try_recv().ok();
                }
                if socket.flush().await.is_err() {
                    return;
                }
            }
            message = socket.recv() => {
                if !matches!(message, Some(Ok(_))) {
                    return;
                }
            }
        }
    }
}
