//! One WebSocket connection: a reader that returns complete messages, a writer task that drains the outbox, and
//! the loop between them, which each protocol completes by implementing `Protocol`.
//!
//! Guarantees: the frames of a socket are written in order, and a closing connection ends even if its peer no
//! longer reads.

pub mod admission;
pub mod concurrency;
pub mod fixed_window;
pub mod frame;
pub mod open_sockets;
mod outbox_io;
pub mod peer;
mod pending_replies;
pub mod protocol;
pub mod session_loop;
pub mod stream;
pub mod upgrade;

use crate::encoders::ConnectionEncoder;
use bytes::Bytes;
use futures_util::StreamExt;
use outbox_io::OutboxIo;
use parlor_engine::feed::{Codec, Drained, Encoded, Entry, Item, Outbox, OutboxLimits};
use parlor_engine::tasks::Tasks;
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;
use stream::Stream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio::time::Instant;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// Maximum buffers written with one system call.
const MAX_WRITE_BUFFERS: usize = 64;

pub struct Socket {
    stream: WebSocketStream<OutboxIo>,
    pub outbox: Arc<Outbox>,
    writer: JoinHandle<()>,
    /// Time of the newest frame from the client, control frames included.
    last_received: Instant,
}

/// Next input of a WebSocket.
pub enum SocketInput {
    Message(SocketMessage),
    /// A message above the hard limit: the rest of the connection cannot be read.
    TooLarge,
    NotUtf8,
    Malformed,
    Gone,
}

/// A complete message.
pub enum SocketMessage {
    Text(Utf8Bytes),
    Binary(Bytes),
}

impl SocketMessage {
    pub fn len(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }
}

impl Socket {
    /// Starts reading and writing on an upgraded connection. `already_read` holds bytes received together
    /// with the handshake. A message above `hard_limit` bytes ends the connection; `encoder` encodes
    /// the items of its outbox. `tasks` owns the writer.
    pub async fn open(
        stream: Stream,
        already_read: Bytes,
        hard_limit: usize,
        limits: OutboxLimits,
        encoder: ConnectionEncoder,
        tasks: &Tasks,
    ) -> Self {
        let outbox = Arc::new(Outbox::new(limits));
        let (read, writer): (Box<dyn AsyncRead + Send + Sync + Unpin>, _) = match stream {
            Stream::Plain(tcp) => {
                let (read, write) = tcp.into_split();
                (Box::new(read), tasks.spawn(write_out(write, outbox.clone(), encoder)))
            }
            Stream::Tls(tls) => {
                let (read, write) = tokio::io::split(*tls);
                (Box::new(read), tasks.spawn(write_out(write, outbox.clone(), encoder)))
            }
        };
        // Small buffers, because a hub has thousands of mostly idle connections.
        let config = WebSocketConfig::default()
            .read_buffer_size(2048)
            .write_buffer_size(0)
            .max_write_buffer_size(4096)
            .max_message_size(Some(hard_limit))
            .max_frame_size(Some(hard_limit));
        let io = OutboxIo::new(read, outbox.clone());
        let stream =
            WebSocketStream::from_partially_read(io, already_read.to_vec(), Role::Server, Some(config)).await;
        Self { stream, outbox, writer, last_received: Instant::now() }
    }

    pub async fn next(&mut self) -> SocketInput {
        loop {
            let received = self.stream.next().await;
            self.last_received = Instant::now();
            return match received {
                Some(Ok(Message::Text(text))) => SocketInput::Message(SocketMessage::Text(text)),
                Some(Ok(Message::Binary(bytes))) => SocketInput::Message(SocketMessage::Binary(bytes)),
                // The stream answers these itself; reading until its end completes the closing handshake.
                Some(Ok(Message::Ping(_) | Message::Pong(_) | Message::Frame(_) | Message::Close(_))) => {
                    continue;
                }
                Some(Err(Error::Capacity(CapacityError::MessageTooLong { .. }))) => SocketInput::TooLarge,
                Some(Err(Error::Utf8(_))) => SocketInput::NotUtf8,
                Some(Err(Error::Protocol(ProtocolError::ResetWithoutClosingHandshake))) => SocketInput::Gone,
                Some(Err(Error::Protocol(_))) => SocketInput::Malformed,
                Some(Err(_)) | None => SocketInput::Gone,
            };
        }
    }

    /// Writes the rest of the outbox and reads until the peer has closed too, for at most `timeout`.
    pub async fn finish(mut self, timeout: Duration) {
        self.outbox.close(Bytes::new());
        let closing = async {
            let _ = (&mut self.writer).await;
            while let Some(Ok(_)) = self.stream.next().await {}
            // Drain the bytes that follow a malformed frame: closing with unread data would reset the
            // connection, and a reset can discard the last frames of the hub.
            let _ = tokio::io::copy(self.stream.get_mut(), &mut tokio::io::sink()).await;
        };
        let _ = tokio::time::timeout(timeout, closing).await;
        // The owner of the writer awaits it.
        self.writer.abort();
    }
}

async fn write_out(mut half: impl AsyncWrite + Unpin, outbox: Arc<Outbox>, encoder: ConnectionEncoder) {
    loop {
        let mut entries = Vec::new();
        let taken = outbox.take(&mut entries, MAX_WRITE_BUFFERS).await;
        if let Drained::Last(Some(reason)) = taken {
            let last = Item::Frames(encoder.disconnect(reason));
            entries.push(Entry { codec: Codec::PRIVATE, item: last });
        }
        entries.iter_mut().for_each(|entry| encoder.settle(entry));
        let written = write_all(&mut half, &entries, &encoder).await;
        if written.is_err() || matches!(taken, Drained::Last(_)) {
            break;
        }
    }
    // Makes the reading side notice that this connection can no longer send.
    outbox.close(Bytes::new());
    let _ = half.shutdown().await;
}

/// Writes the encoded items without copying them.
async fn write_all(
    half: &mut (impl AsyncWrite + Unpin),
    entries: &[Entry],
    encoder: &ConnectionEncoder,
) -> std::io::Result<()> {
    let encoded = entries.iter().filter_map(|entry| match encoder.encode(entry) {
        Some(Encoded::Shared(bytes)) => Some(IoSlice::new(bytes)),
        Some(Encoded::Own(_)) | None => None,
    });
    let mut slices: Vec<IoSlice<'_>> = encoded.collect();
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match half.write_vectored(left).await? {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            written => IoSlice::advance_slices(&mut left, written),
        }
    }
    // TLS may still hold encrypted bytes in its buffer.
    half.flush().await
}
