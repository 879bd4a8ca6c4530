//! A connection that gives up on a peer who does not take what it is told.
//!
//! Without it an answer that nobody reads stays in memory for as long as its reader likes.

use crate::connection::stream::Stream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

pub struct WriteTimeoutStream {
    stream: Stream,
    patience: Duration,
    /// Runs from the first write that had to wait until everything is written.
    waiting: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeoutStream {
    pub fn new(stream: Stream, patience: Duration) -> Self {
        Self { stream, patience, waiting: None }
    }

    pub fn into_inner(self) -> Stream {
        self.stream
    }

    /// What a write came to; an error once it has waited too long.
    fn written<T>(&mut self, written: Poll<io::Result<T>>, context: &mut Context<'_>) -> Poll<io::Result<T>> {
        if written.is_pending() {
            let waiting = self.waiting.get_or_insert_with(|| Box::pin(sleep(self.patience)));
            ready!(waiting.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        written
    }
}

impl AsyncRead for WriteTimeoutStream {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for WriteTimeoutStream {
    fn poll_write(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        bytes: &[u8],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write(context, bytes);
        self.written(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.written(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Asked for when nothing is left to write.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_ready() {
            self.waiting = None;
        }
        self.written(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.written(ended, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    async fn pair(patience: Duration) -> (WriteTimeoutStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, connected) = tokio::join!(listener.accept(), TcpStream::connect(address));
        (WriteTimeoutStream::new(Stream::Plain(accepted.unwrap().0), patience), connected.unwrap())
    }

    const MUCH: usize = 32 * 1024 * 1024;

    #[tokio::test]
    async fn a_peer_that_reads_nothing_is_given_up() {
        let (mut patient, _peer) = pair(Duration::from_millis(100)).await;
        let error = patient.write_all(&vec![0; MUCH]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_peer_that_reads_in_time_gets_everything() {
        let (mut patient, mut peer) = pair(Duration::from_secs(20)).await;
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            peer.read_to_end(&mut read).await.unwrap();
            read.len()
        });
        patient.write_all(&vec![0; MUCH]).await.unwrap();
        patient.flush().await.unwrap();
        assert!(patient.waiting.is_none(), "the next answer has its own time");
        drop(patient);
        assert_eq!(reading.await.unwrap(), MUCH);
    }
}
