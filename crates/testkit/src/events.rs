//! A reader of `GET /api/events`, for tests, written from the protocol alone.

use std::time::Duration;

use anyhow::{Context, Result, bail, ensure};
use reqwest::Method;
use serde_json::Value;
use tokio::time::timeout;

use crate::rest::RestClient;
use crate::socket::TEST_TIMEOUT;

/// What every message on the stream is held to.
pub type EventCheck = fn(&Value) -> Result<()>;

/// One stream. Dropping it cuts the connection.
pub struct EventReader {
    response: reqwest::Response,
    read: Vec<u8>,
    lawful: Option<EventCheck>,
    /// The position behind everything that was read.
    pub position: Option<String>,
    /// The highest number that was read.
    seq: u64,
}

impl EventReader {
    /// Opens a stream of this person; `query` is `?session_id=…` and the like, `last` where it was before.
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
        Ok(Self { response, read, lawful: None, position, seq: 0 })
    }

    /// Opens a stream and waits until it is live.
    pub async fn live(person: &RestClient, query: &str) -> Result<Self> {
        let mut stream = Self::open(person, query, None).await?;
        while stream.position.is_none() {
            ensure!(stream.block(TEST_TIMEOUT).await?.is_some(), "ended");
        }
        Ok(stream)
    }

    pub fn hold_to(self, lawful: EventCheck) -> Self {
        Self { lawful: Some(lawful), ..self }
    }

    /// The next message; `None` at the end of the stream.
    pub async fn next(&mut self, within: Duration) -> Result<Option<Value>> {
        // That the hub is alive is no message.
        timeout(within, self.message(within)).await.context("no message came")?
    }

    async fn message(&mut self, within: Duration) -> Result<Option<Value>> {
        loop {
            let Some(block) = self.block(within).await? else { return Ok(None) };
            let Some(data) = block.lines().find_map(|line| line.strip_prefix("data: ")) else { continue };
            let message: Value = serde_json::from_str(data)?;
            let seq = message["seq"].as_u64().context("no seq")?;
            ensure!(seq > self.seq, "{seq} came after {}: {message}", self.seq);
            self.seq = seq;
            if let Some(lawful) = self.lawful {
                lawful(&message).with_context(|| message.to_string())?;
            }
            return Ok(Some(message));
        }
    }

    pub async fn wait_for(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Value> {
        loop {
            match self.next(TEST_TIMEOUT).await? {
                Some(message) if wanted(&message) => return Ok(message),
                Some(_) => {}
                None => bail!("the stream ended"),
            }
        }
    }

    pub async fn wait_for_kind(&mut self, kind: &str) -> Result<Value> {
        self.wait_for(|message| message["kind"] == kind).await.with_context(|| format!("no {kind}"))
    }

    /// Everything up to and with the first that is wanted.
    pub async fn until(&mut self, wanted: impl Fn(&Value) -> bool) -> Result<Vec<Value>> {
        let mut all = Vec::new();
        loop {
            let message = self.next(TEST_TIMEOUT).await?.with_context(|| format!("ended after {all:?}"))?;
            let last = wanted(&message);
            all.push(message);
            if last {
                return Ok(all);
            }
        }
    }

    async fn block(&mut self, within: Duration) -> Result<Option<String>> {
        // Where the search for the end goes on: a large event arrives in many chunks.
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
            let more = timeout(within, self.response.chunk()).await;
            match more.context("nothing came")? {
                Ok(Some(more)) => self.read.extend_from_slice(&more),
                // Cut off is an end too.
                Ok(None) | Err(_) => return Ok(None),
            }
        }
    }
}
