//! One WebSocket connection: a reader that hands out whole messages, a writer that drains an outbox.
//!
//! Owns: frames of one socket in order; nobody stays unauthenticated longer than the deadline; a connection
//! that is ending ends, also when its peer no longer reads.

pub mod admission;
pub mod concurrency;
pub mod fixed_window;
pub mod frame;
pub mod open_sockets;
mod outbox_io;
pub mod stream;
pub mod upgrade;

use bytes::Bytes;
use futures_util::StreamExt;
use outbox_io::OutboxIo;
use parlor_engine::fanout::{Drained, Outbox, OutboxLimits};
use std::io::IoSlice;
use std::sync::Arc;
use std::time::Duration;
use stream::Stream;
use tokio::io::{AsyncRead, AsyncWrite, AsyncWriteExt};
use tokio::task::JoinHandle;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::error::{CapacityError, ProtocolError};
use tokio_tungstenite::tungstenite::protocol::{Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message, Utf8Bytes};

/// How often a connection asks whether its sign-in still stands.
pub const AUTH_RECHECK_INTERVAL: Duration = Duration::from_secs(60);
/// Buffers written with one system call.
const MAX_WRITE_BUFFERS: usize = 64;

pub struct Socket {
    stream: WebSocketStream<OutboxIo>,
    pub outbox: Arc<Outbox>,
    writer: JoinHandle<()>,
}

/// What the peer did next.
pub enum SocketInput {
    Text(Utf8Bytes),
    Binary,
    /// Larger than can be skipped: the connection cannot go on.
    TooLarge,
    NotUtf8,
    Malformed,
    Gone,
}

impl Socket {
    /// `already_read` is what came right behind the handshake. Messages up to `hard_limit` bytes are read whole.
    pub async fn open(
        stream: Stream,
        already_read: Bytes,
        hard_limit: usize,
        caps: OutboxLimits,
        too_slow: Bytes,
    ) -> Self {
        let outbox = Arc::new(Outbox::new(caps, too_slow));
        let (read, writer): (Box<dyn AsyncRead + Send + Sync + Unpin>, _) = match stream {
            Stream::Plain(tcp) => {
                let (read, write) = tcp.into_split();
                (Box::new(read), tokio::spawn(write_out(write, outbox.clone())))
            }
            Stream::Tls(tls) => {
                let (read, write) = tokio::io::split(*tls);
                (Box::new(read), tokio::spawn(write_out(write, outbox.clone())))
            }
        };
        // Small buffers: thousands of connections are mostly silent.
        let config = WebSocketConfig::default()
            .read_buffer_size(2048)
            .write_buffer_size(0)
            .max_write_buffer_size(4096)
            .max_message_size(Some(hard_limit))
            .max_frame_size(Some(hard_limit));
        let line = OutboxIo::new(read, outbox.clone());
        let stream =
            WebSocketStream::from_partially_read(line, already_read.to_vec(), Role::Server, Some(config))
                .await;
        Self { stream, outbox, writer }
    }

    pub async fn next(&mut self) -> SocketInput {
        loop {
            return match self.stream.next().await {
                Some(Ok(Message::Text(text))) => SocketInput::Text(text),
                Some(Ok(Message::Binary(_))) => SocketInput::Binary,
                // Answered by the stream itself; reading on until the end closes cleanly.
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

    pub fn send_text(&self, text: &str) {
        self.outbox.push(frame::text(text));
    }

    pub fn close(&self, code: u16, reason: &str) {
        self.outbox.close(frame::close(code, reason));
    }

    /// Writes what is left, reads until the peer has closed too, and gives up after `timeout`.
    pub async fn finish(mut self, timeout: Duration) {
        self.outbox.close(Bytes::new());
        let goodbye = async {
            let _ = (&mut self.writer).await;
            while let Some(Ok(_)) = self.stream.next().await {}
            // After a malformed frame there is more to come. Closing before it is read would reset the
            // connection, and a reset can take our last words along.
            let _ = tokio::io::copy(self.stream.get_mut(), &mut tokio::io::sink()).await;
        };
        let _ = tokio::time::timeout(timeout, goodbye).await;
        self.writer.abort();
    }
}

async fn write_out(mut half: impl AsyncWrite + Unpin, outbox: Arc<Outbox>) {
    let mut buffers = Vec::new();
    loop {
        let taken = outbox.take(&mut buffers, MAX_WRITE_BUFFERS).await;
        let written = write_all(&mut half, &buffers).await;
        buffers = Vec::new();
        if written.is_err() || taken == Drained::Last {
            break;
        }
    }
    // Whoever reads from this connection notices that nothing can be said any more.
    outbox.close(Bytes::new());
    let _ = half.shutdown().await;
}

async fn write_all(half: &mut (impl AsyncWrite + Unpin), buffers: &[Bytes]) -> std::io::Result<()> {
    let mut slices: Vec<IoSlice<'_>> = buffers.iter().map(|buffer| IoSlice::new(buffer)).collect();
    let mut left = &mut slices[..];
    IoSlice::advance_slices(&mut left, 0);
    while !left.is_empty() {
        match half.write_vectored(left).await? {
            0 => return Err(std::io::ErrorKind::WriteZero.into()),
            written => IoSlice::advance_slices(&mut left, written),
        }
    }
    // What is encrypted may still lie in a buffer.
    half.flush().await
}
