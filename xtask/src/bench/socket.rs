//! A WebSocket client for the parts of a scenario that are not time-critical: upgrade, sign in, join, close.

use super::frames;
use anyhow::{Context, Result, bail};
use std::net::SocketAddr;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpSocket, TcpStream};
use tokio::time::timeout;

/// Timeout for a single response; longer than a loaded machine needs.
pub const RESPONSE_TIMEOUT: Duration = Duration::from_secs(20);

pub struct Socket {
    pub stream: TcpStream,
    /// Bytes that were read, but not yet parsed as frames.
    pub unread: Vec<u8>,
}

impl Socket {
    async fn connect(address: SocketAddr) -> Result<TcpStream> {
        let socket = TcpSocket::new_v4()?;
        // A close without lingering leaves no ports in TIME_WAIT, which the next run could not use.
        socket.set_zero_linger()?;
        let stream = socket.connect(address).await.context("connecting")?;
        stream.set_nodelay(true)?;
        Ok(stream)
    }

    /// Connects and requests an endless response, such as an event stream.
    pub async fn get(address: SocketAddr, path: &str, token: Option<&str>) -> Result<Self> {
        let mut stream = Self::connect(address).await?;
        let token = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
        let request = format!("GET {path} HTTP/1.1\r\nHost: {address}\r\n{token}\r\n");
        stream.write_all(request.as_bytes()).await?;
        let mut socket = Self { stream, unread: Vec::with_capacity(512) };
        socket.read_to(b"\r\n\r\n").await?;
        if !socket.unread.starts_with(b"HTTP/1.1 200") {
            bail!("refused: {}", String::from_utf8_lossy(&socket.unread));
        }
        Ok(socket)
    }

    /// Reads until `end` was received.
    pub async fn read_to(&mut self, end: &[u8]) -> Result<()> {
        while !self.unread.windows(end.len()).any(|window| window == end) {
            self.read_more("the beginning").await?;
        }
        Ok(())
    }

    /// Connects and upgrades to a WebSocket.
    pub async fn open(address: SocketAddr, path: &str) -> Result<Self> {
        let mut stream = Self::connect(address).await?;
        let request = format!(
            "GET {path} HTTP/1.1\r\nHost: {address}\r\nConnection: Upgrade\r\nUpgrade: websocket\r\n\
             Sec-WebSocket-Version: 13\r\nSec-WebSocket-Key: cGFybG9yIGJlbmNobWFyaw==\r\n\r\n"
        );
        stream.write_all(request.as_bytes()).await?;
        let mut socket = Self { stream, unread: Vec::with_capacity(512) };
        loop {
            socket.read_more("the answer to the upgrade").await?;
            if let Some(end) = socket.unread.windows(4).position(|window| window == b"\r\n\r\n") {
                if !socket.unread.starts_with(b"HTTP/1.1 101") {
                    bail!("upgrade refused: {}", String::from_utf8_lossy(&socket.unread));
                }
                socket.unread.drain(..end + 4);
                return Ok(socket);
            }
        }
    }

    pub async fn send(&mut self, text: &str) -> Result<()> {
        let mut out = Vec::with_capacity(text.len() + 14);
        frames::push_text(&mut out, text.as_bytes());
        Ok(self.stream.write_all(&out).await?)
    }

    /// Sends frames that are already encoded.
    pub async fn send_frames(&mut self, frames: &[u8]) -> Result<()> {
        Ok(self.stream.write_all(frames).await?)
    }

    /// Reads until a frame, text or binary, contains `part`. Other frames before it are skipped.
    pub async fn expect_bytes(&mut self, part: &str) -> Result<Vec<u8>> {
        let mut last = Vec::new();
        loop {
            let awaited =
                || format!("a frame with {part:?}; the last one was {:?}", String::from_utf8_lossy(&last));
            let (opcode, payload) = self.receive().await.with_context(awaited)?;
            if payload.windows(part.len()).any(|window| window == part.as_bytes()) {
                return Ok(payload);
            }
            if opcode == frames::CLOSE {
                bail!("closed instead of {part:?}; the last frame was {:?}", String::from_utf8_lossy(&last));
            }
            last = payload;
        }
    }

    /// Reads until a frame contains all of `parts`. Other frames before it are skipped.
    pub async fn expect(&mut self, parts: &[&str]) -> Result<String> {
        let mut last = None;
        loop {
            let awaited = || format!("a frame with {parts:?}; the last one was {last:?}");
            let (_, payload) = self.receive().await.with_context(awaited)?;
            let text = String::from_utf8(payload).context("a text frame that is not UTF-8")?;
            if parts.iter().all(|part| text.contains(part)) {
                return Ok(text);
            }
            if text.contains("server:error") || text.contains("\"ok\":false") {
                bail!("expected a frame with {parts:?}, got {text}");
            }
            last = Some(text);
        }
    }

    /// Closes with the closing handshake: sends a close frame and waits for that of the peer.
    pub async fn close(mut self) -> Result<()> {
        let mut out = Vec::new();
        frames::push_close(&mut out);
        self.stream.write_all(&out).await?;
        while self.receive().await.context("the other side's close frame")?.0 != frames::CLOSE {}
        Ok(())
    }

    async fn receive(&mut self) -> Result<(u8, Vec<u8>)> {
        loop {
            if let Some((opcode, header_length, payload_length)) = frames::header(&self.unread) {
                let end = header_length + payload_length as usize;
                if self.unread.len() >= end {
                    let payload = self.unread[header_length..end].to_vec();
                    self.unread.drain(..end);
                    return Ok((opcode, payload));
                }
            }
            self.read_more("a frame").await?;
        }
    }

    async fn read_more(&mut self, awaited: &str) -> Result<()> {
        let read = timeout(RESPONSE_TIMEOUT, self.stream.read_buf(&mut self.unread)).await;
        match read.with_context(|| format!("no {awaited} within {RESPONSE_TIMEOUT:?}"))?? {
            0 => bail!("the connection ended instead of {awaited}"),
            _ => Ok(()),
        }
    }
}
