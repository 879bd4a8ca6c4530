//! I/O object of the WebSocket library: reads from the connection, and writes to the outbox.
//!
//! The library itself writes pongs and the closing handshake; through the outbox they stay in order with all
//! other frames.

use bytes::Bytes;
use parlor_engine::feed::Outbox;
use std::io;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};

pub struct OutboxIo {
    read: Box<dyn AsyncRead + Send + Sync + Unpin>,
    outbox: Arc<Outbox>,
}

impl OutboxIo {
    pub fn new(read: Box<dyn AsyncRead + Send + Sync + Unpin>, outbox: Arc<Outbox>) -> Self {
        Self { read, outbox }
    }
}

impl AsyncRead for OutboxIo {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.read).poll_read(context, buffer)
    }
}

impl AsyncWrite for OutboxIo {
    fn poll_write(self: Pin<&mut Self>, _: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        // Accept all bytes at once, so that no other frame can be queued in the middle of this one.
        self.outbox.push(Bytes::copy_from_slice(bytes));
        Poll::Ready(Ok(bytes.len()))
    }

    fn poll_flush(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn poll_shutdown(self: Pin<&mut Self>, _: &mut Context<'_>) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }
}
