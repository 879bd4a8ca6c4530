//! A client of `GET /api/events` for tests, implemented from the protocol document alone.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::Method;
use serde_json::Value;
use tokio::time::timeout;

use crate::rest::RestClient;
use crate::socket::TEST_TIMEOUT;

/// A check that every message on the stream must pass.
pub type EventCheck = fn(&Value) -> Result<()>;

/// An open event stream. Dropping it closes the connection.
pub struct EventReader {
    response: reqwest::Response,
    read: Vec<u8>,
    check: Option<EventCheck>,
    /// Position after the last message that was read.
    pub position: Option<String>,
    /// Highest `seq` that was read.
    seq: u64,
}

impl EventReader {
    /// Opens a stream of this user. `query` is the query string, such as `?session_id=…`; `last` is the
    /// position to resume from.
    pub async fn open(person: &RestClient, query: &str, last: Option<&str>) -> Result<Self> {
        let mut request = person.request(Method::GET, &format!("/api/events{query}"));
        if let Some(last) = last {
            request = request.header("last-event-id", last);
        }
        let response = request.send().await?;
        ensure!(response.status() == 200, "refused: {}", response.status());
        let kind = response.headers().get("content-type").context("no content type")?;
        ensure!(kind == "text/event-stream", "{kind:?}");
        let (read, position) = (Vec::new(), last.map(str::to_owned));
        Ok(Self { response, read, check: None, position, seq: 0 })
    }

    /// Opens a stream and waits until it is live.
    pub async fn live(person: &RestClient, query: &str) -> Result<Self> {
        let mut stream = Self::open(person, query, None).await?;
        while stream.position.is_none() {
            ensure!(stream.block(TEST_TIMEOUT).await?.is_some(), "ended");
        }
        Ok(stream)
    }

    /// Applies a check to every message from now on.
    pub fn hold_to(self, check: EventCheck) -> Self {
        Self { check: Some(check), ..self }
    }

    /// Returns the next message, or `None` at the end of the stream.
    pub async fn next(&mut self, limit: Duration) -> Result<Option<Value>> {
        // The outer timeout is needed because keep-alive comments restart the inner one.
        timeout(limit, self.message(limit)).await.context("no message arrived in time")?
    }

    async fn message(&mut self, limit: Duration) -> Result<Option<Value>> {
        loop {
            let Some(block) = self.block(limit).await? else { return Ok(None) };
            let Some(data) = block.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
            let message: Value = serde_json::from_str(data)?;
            let seq = message["seq"].as_u64().context("no seq")?;
            ensure!(seq > self.seq, "{seq} came after {}: {message}", self.seq);
            self.seq = seq;
            if let Some(check) = self.check {
                check(&message).with_context(|| message.to_string())?;
            }
            return Ok(Some(message));
        }
    }

    pub async fn wait_for(&mut self, matches: impl Fn(&Value) -> bool) -> Result<Value> {
        loop {
            match self.next(TEST_TIMEOUT).await? {
                Some(message) if matches(&message) => return Ok(message),
                Some(_) => {}
                None => bail!("the stream ended"),
            }
        }
    }

    pub async fn wait_for_kind(&mut self, kind: &str) -> Result<Value> {
        self.wait_for(|message| message["kind"] == kind).await.with_context(|| format!("no {kind}"))
    }

    /// Returns all messages up to and including the first match.
    pub async fn until(&mut self, matches: impl Fn(&Value) -> bool) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        loop {
            let message = self.next(TEST_TIMEOUT).await?.with_context(|| format!("ended after {all:?}"))?;
            let last = matches(&message);
            all.push(message);
            if last {
                return Ok(all);
            }
        }
    }

    /// Returns the next block of the event stream, up to an empty line, or `None` at the end of the stream.
    async fn block(&mut self, limit: Duration) -> Result<Option<String>> {
        // Offset at which the search for the end continues, because a large event arrives in many chunks.
        let mut searched = 0;
        loop {
            let unsearched = &self.read[searched..];
            if let Some(end) = unsearched.windows(2).position(|pair| pair == b"\n\n").map(|at| searched + at)
            {
                let block: Vec<u8> = self.read.drain(..end + 2).collect();
                let block = String::from_utf8(block)?;
                if let Some(id) = block.lines().find_map(|line| line.strip_prefix("id: ")) {
                    self.position = Some(id.to_owned());
                }
                return Ok(Some(block));
            }
            searched = self.read.len().saturating_sub(1);
            let chunk = timeout(limit, self.response.chunk()).await;
            match chunk.context("no data arrived in time")? {
                Ok(Some(chunk)) => self.read.extend_from_slice(&chunk),
                // A lost connection also ends the stream.
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }
}
