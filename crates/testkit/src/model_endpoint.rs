//! A scripted model endpoint on loopback, with the OpenAI and the Anthropic API.

use crate::http::{self, Request};
use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;
use std::time::Duration;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::sync::{Notify, mpsc};
use tokio::task::JoinSet;

/// Response to one request.
#[derive(Debug, Clone)]
pub enum ScriptedResponse {
    /// Streams thoughts and then text in chunks, and the token usage.
    Say {
        thoughts: Vec<String>,
        text: Vec<String>,
    },
    /// Streams text, then sends nothing more while the connection stays open.
    Stall(String),
    /// Streams text, waits for the notification, then streams the rest.
    Wait(String, Arc<Notify>, String),
    /// Streams text and closes the connection before the end of the answer.
    BreakOff(String),
    /// Streams text, then an error event.
    SayAndFail(String),
    /// Streams text that ends because of the token limit.
    CutShort(String),
    /// Reads the request and never responds.
    Hang,
    Status {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// Streams data that is not a valid event.
    Garbage,
    /// Streams one line without an end.
    EndlessLine,
    /// Streams chunks without an end, as fast as the client reads.
    Flood,
    /// Responds with a complete JSON answer instead of a stream.
    NotAStream,
}

impl ScriptedResponse {
    pub fn say(text: &str) -> Self {
        let text = text.split_inclusive(' ').map(str::to_owned).collect();
        Self::Say { thoughts: Vec::new(), text }
    }

    pub fn status(status: u16, message: &str) -> Self {
        let body = json!({ "error": { "message": message, "type": "some_error" } }).to_string();
        Self::Status { status, headers: Vec::new(), body }
    }
}

/// A received request.
#[derive(Debug)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

pub struct ModelEndpoint {
    pub url: String,
    responses: Arc<Mutex<VecDeque<ScriptedResponse>>>,
    requests: mpsc::UnboundedReceiver<RecordedRequest>,
    _serving: JoinSet<()>,
}

impl ModelEndpoint {
    pub async fn start() -> Result<Self> {
        let responses = Arc::new(Mutex::new(VecDeque::new()));
        let (record, requests) = mpsc::unbounded_channel();
        let queue = responses.clone();
        let (url, _serving) = http::listen(move |request, stream| {
            let (queue, record) = (queue.clone(), record.clone());
            async move { serve(request, stream, &queue, &record).await }
        })
        .await?;
        Ok(Self { url, responses, requests, _serving })
    }

    /// Queues a response. Each request takes the next one; without any, the endpoint responds with a
    /// greeting.
    pub fn respond_with(&self, response: ScriptedResponse) -> &Self {
        self.responses.lock().push_back(response);
        self
    }

    /// Waits for the next request.
    pub async fn asked(&mut self) -> Result<RecordedRequest> {
        let request = tokio::time::timeout(Duration::from_secs(20), self.requests.recv()).await;
        request.context("no request arrived in time")?.context("the endpoint has stopped")
    }

    /// Discards the requests that were not read with [`asked`](Self::asked), and returns their number.
    pub fn unseen(&mut self) -> usize {
        std::iter::from_fn(|| self.requests.try_recv().ok()).count()
    }
}

async fn serve(
    request: Request,
    mut stream: TcpStream,
    responses: &Mutex<VecDeque<ScriptedResponse>>,
    record: &mpsc::UnboundedSender<RecordedRequest>,
) -> Result<()> {
    let Request { method, path, headers, body } = request;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    let request = RecordedRequest { method, path, headers, body };
    let (is_anthropic, is_listing) = (request.path.ends_with("/messages"), request.method == "GET");
    let model = request.body["model"].as_str().unwrap_or_default().to_owned();
    let stream = &mut stream;
    if is_listing {
        let body = json!({ "data": [{ "id": "small" }, { "id": "large" }] }).to_string();
        let _ = record.send(request);
        return http::whole(stream, 200, &[], &body).await;
    }
    let response = responses.lock().pop_front();
    let _ = record.send(request);
    let mut writer = StreamWriter { stream, is_anthropic };
    match response.unwrap_or_else(|| ScriptedResponse::say(&format!("Hello from {model}"))) {
        ScriptedResponse::Say { thoughts, text } => {
            writer.begin().await?;
            for thought in thoughts {
                writer.chunk("thinking", &thought).await?;
            }
            for chunk in text {
                writer.chunk("text", &chunk).await?;
            }
            writer.end("end_turn", "stop").await
        }
        ScriptedResponse::CutShort(text) => {
            writer.begin().await?;
            writer.chunk("text", &text).await?;
            writer.end("max_tokens", "length").await
        }
        ScriptedResponse::Stall(text) => {
            writer.begin().await?;
            writer.chunk("text", &text).await?;
            wait_for_close(writer.stream).await
        }
        ScriptedResponse::Wait(text, notify, rest) => {
            writer.begin().await?;
            writer.chunk("text", &text).await?;
            notify.notified().await;
            writer.chunk("text", &rest).await?;
            writer.end("end_turn", "stop").await
        }
        ScriptedResponse::BreakOff(text) => {
            writer.begin().await?;
            writer.chunk("text", &text).await
        }
        ScriptedResponse::SayAndFail(text) => {
            writer.begin().await?;
            writer.chunk("text", &text).await?;
            let error = json!({ "type": "overloaded_error", "message": "Overloaded" });
            writer.event(&json!({ "type": "error", "error": error })).await
        }
        ScriptedResponse::Hang => wait_for_close(writer.stream).await,
        ScriptedResponse::Status { status, headers, body } => {
            http::whole(writer.stream, status, &headers, &body).await
        }
        ScriptedResponse::Garbage => {
            http::begin_events(writer.stream).await?;
            Ok(writer.stream.write_all(b"data: <html>\x00\xff\n\n").await?)
        }
        ScriptedResponse::EndlessLine => {
            http::begin_events(writer.stream).await?;
            writer.stream.write_all(b"data: ").await?;
            loop {
                writer.stream.write_all(&[b'x'; 64 * 1024]).await?;
            }
        }
        ScriptedResponse::Flood => {
            writer.begin().await?;
            loop {
                writer.chunk("text", &"flood ".repeat(2_000)).await?;
            }
        }
        ScriptedResponse::NotAStream => {
            let body = json!({ "choices": [{ "message": { "content": "hello" } }] }).to_string();
            http::whole(writer.stream, 200, &[], &body).await
        }
    }
}

/// Waits until the client closes the connection.
async fn wait_for_close(stream: &mut TcpStream) -> Result<()> {
    let mut rest = [0; 64];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

struct StreamWriter<'a> {
    stream: &'a mut TcpStream,
    /// Whether to use the Anthropic API; otherwise the OpenAI API.
    is_anthropic: bool,
}

impl StreamWriter<'_> {
    async fn begin(&mut self) -> Result<()> {
        http::begin_events(self.stream).await?;
        if self.is_anthropic {
            let usage = json!({ "input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 1 });
            self.event(&json!({ "type": "message_start", "message": { "usage": usage } })).await?;
            self.event(&json!({ "type": "ping" })).await?;
        }
        Ok(())
    }

    async fn chunk(&mut self, kind: &str, text: &str) -> Result<()> {
        let event = match self.is_anthropic {
            true => {
                let delta = json!({ "type": format!("{kind}_delta"), kind: text });
                json!({ "type": "content_block_delta", "index": 0, "delta": delta })
            }
            false => {
                let field = if kind == "text" { "content" } else { "reasoning_content" };
                json!({ "choices": [{ "index": 0, "delta": { field: text }, "finish_reason": null }] })
            }
        };
        self.event(&event).await
    }

    async fn end(&mut self, anthropic: &str, openai: &str) -> Result<()> {
        if self.is_anthropic {
            let end = json!({ "type": "message_delta", "delta": { "stop_reason": anthropic }, "usage": { "output_tokens": 7 } });
            self.event(&end).await?;
            return self.event(&json!({ "type": "message_stop" })).await;
        }
        self.event(&json!({ "choices": [{ "index": 0, "delta": {}, "finish_reason": openai }] })).await?;
        self.event(&json!({ "choices": [], "usage": { "prompt_tokens": 25, "completion_tokens": 7 } }))
            .await?;
        Ok(self.stream.write_all(b"data: [DONE]\n\n").await?)
    }

    async fn event(&mut self, event: &Value) -> Result<()> {
        http::event(self.stream, event).await
    }
}
