//! A stream whose writes fail when the peer does not read in time.
//!
//! Without this timeout, a client that never reads its response would keep it in memory indefinitely.

use crate::connection::stream::Stream;
use std::io::{self, IoSlice};
use std::pin::Pin;
use std::task::{Context, Poll, ready};
use std::time::Duration;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::time::{Sleep, sleep};

pub struct WriteTimeoutStream {
    stream: Stream,
    timeout: Duration,
    /// Runs from the first write that had to wait until all data is flushed.
    timer: Option<Pin<Box<Sleep>>>,
}

impl WriteTimeoutStream {
    pub fn new(stream: Stream, timeout: Duration) -> Self {
        Self { stream, timeout, timer: None }
    }

    pub fn into_inner(self) -> Stream {
        self.stream
    }

    /// Passes the result of a write through; a pending write becomes an error once the timer has expired.
    fn check_timeout<T>(
        &mut self,
        result: Poll<io::Result<T>>,
        context: &mut Context<'_>,
    ) -> Poll<io::Result<T>> {
        if result.is_pending() {
            let timer = self.timer.get_or_insert_with(|| Box::pin(sleep(self.timeout)));
            ready!(timer.as_mut().poll(context));
            return Poll::Ready(Err(io::ErrorKind::TimedOut.into()));
        }
        result
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
        self.check_timeout(written, context)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffers: &[IoSlice<'_>],
    ) -> Poll<io::Result<usize>> {
        let written = Pin::new(&mut self.stream).poll_write_vectored(context, buffers);
        self.check_timeout(written, context)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    /// Stops the timer: a completed flush means that all data is written.
    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let flushed = Pin::new(&mut self.stream).poll_flush(context);
        if flushed.is_ready() {
            self.timer = None;
        }
        self.check_timeout(flushed, context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        let ended = Pin::new(&mut self.stream).poll_shutdown(context);
        self.check_timeout(ended, context)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};
    use tokio::net::{TcpListener, TcpStream};

    async fn pair(timeout: Duration) -> (WriteTimeoutStream, TcpStream) {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (accepted, connected) = tokio::join!(listener.accept(), TcpStream::connect(address));
        (WriteTimeoutStream::new(Stream::Plain(accepted.unwrap().0), timeout), connected.unwrap())
    }

    const PAYLOAD_BYTES: usize = 32 * 1024 * 1024;

    #[tokio::test]
    async fn a_write_to_a_peer_that_reads_nothing_times_out() {
        let (mut stream, _peer) = pair(Duration::from_millis(100)).await;
        let error = stream.write_all(&vec![0; PAYLOAD_BYTES]).await.unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::TimedOut);
    }

    #[tokio::test]
    async fn a_peer_that_reads_in_time_receives_everything() {
        let (mut stream, mut peer) = pair(Duration::from_secs(20)).await;
        let reading = tokio::spawn(async move {
            let mut read = Vec::new();
            peer.read_to_end(&mut read).await.unwrap();
            read.len()
        });
        stream.write_all(&vec![0; PAYLOAD_BYTES]).await.unwrap();
        stream.flush().await.unwrap();
        assert!(stream.timer.is_none(), "the timer of the next response must start from zero");
        drop(stream);
        assert_eq!(reading.await.unwrap(), PAYLOAD_BYTES);
    }
}
