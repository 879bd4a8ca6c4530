//! The socket as the WebSocket reader sees it: it reads from the wire, and what it answers by itself (pongs,
//! the closing handshake) goes into the outbox, in order with everything else.

use bytes::Bytes;
use parlor_engine::fanout::Outbox;
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
        // Taken whole, so that no frame of ours can come between the parts of one of these.
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
