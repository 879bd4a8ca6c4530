//! The reference server: axum's WebSocket and nothing else.
//!
//! `/echo` answers every text with itself. `/broadcast` sends every text, unread, to all who said `join`, and to those who
//! read `/events`.

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

/// More than any publisher's window, so nobody ever lags.
const RING: usize = 1024;
/// The default of 128 KiB for each connection would make the reference slow and fat for no reason.
const READ_BUFFER: usize = 4 * 1024;

type Room = broadcast::Sender<Utf8Bytes>;

pub async fn serve() -> Result<()> {
    let room: Room = broadcast::channel(RING).0;
    let routes = Router::new()
        .route(
            "/echo",
            get(async |upgrade: WebSocketUpgrade| upgrade.read_buffer_size(READ_BUFFER).on_upgrade(echo)),
        )
        .route(
            "/broadcast",
            get(async |upgrade: WebSocketUpgrade, State(room): State<Room>| {
                upgrade.read_buffer_size(READ_BUFFER).on_upgrade(move |socket| member(socket, room))
            }),
        )
        .route("/events", get(async |State(room): State<Room>| events(room)))
        .with_state(room);
    listen(routes).await
}

/// Serves on a free port and prints its address, as the hub does.
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
                let heard = room.subscribe();
                if socket.send(Message::text("joined")).await.is_ok() {
                    forward(socket, heard).await;
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

/// Server-sent events as axum has them.
fn events(room: Room) -> Sse<impl Stream<Item = Result<Event, Infallible>>> {
    let heard = room.subscribe();
    Sse::new(stream::unfold(heard, async |mut heard| {
        let text = heard.recv().await.ok()?;
        Some((Ok(Event::default().data(text.as_str())), heard))
    }))
}

/// Writes what is there in one go: flushing message by message would make the reference an easy one.
async fn forward(mut socket: WebSocket, mut heard: broadcast::Receiver<Utf8Bytes>) {
    loop {
        tokio::select! {
            text = heard.recv() => {
                let Ok(text) = text else { return };
                let mut next = Some(text);
                while let Some(text) = next {
                    if socket.feed(Message::Text(text)).await.is_err() {
                        return;
                    }
                    next = heard.try_recv().ok();
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
