//! A model endpoint on loopback that says what a test wants, in the two ways that models are spoken to.

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

/// How one request is answered.
#[derive(Debug, Clone)]
pub enum ScriptedResponse {
    /// Streams thoughts and then text, piece by piece, and what it cost.
    Say {
        thoughts: Vec<String>,
        text: Vec<String>,
    },
    /// Streams text and then nothing more, with the connection open.
    Stall(String),
    /// Streams text, and the rest when it is rung for.
    Wait(String, Arc<Notify>, String),
    /// Streams text and ends the connection in the middle.
    BreakOff(String),
    /// Streams text, and then an error as an event.
    SayAndFail(String),
    /// Streams text that is as long as allowed.
    CutShort(String),
    /// Takes the request and never answers.
    Hang,
    Status {
        status: u16,
        headers: Vec<(String, String)>,
        body: String,
    },
    /// A stream of something that is no answer.
    Garbage,
    /// A stream that is one line without end.
    EndlessLine,
    /// Pieces without end, as fast as they are taken.
    Flood,
    /// No stream, but an answer.
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

/// A request as it came.
#[derive(Debug)]
pub struct RecordedRequest {
    pub method: String,
    pub path: String,
    pub headers: BTreeMap<String, String>,
    pub body: Value,
}

pub struct ModelEndpoint {
    pub url: String,
    acts: Arc<Mutex<VecDeque<ScriptedResponse>>>,
    asked: mpsc::UnboundedReceiver<RecordedRequest>,
    _serving: JoinSet<()>,
}

impl ModelEndpoint {
    pub async fn start() -> Result<Self> {
        let acts = Arc::new(Mutex::new(VecDeque::new()));
        let (tell, asked) = mpsc::unbounded_channel();
        let queue = acts.clone();
        let (url, _serving) = http::listen(move |request, stream| {
            let (queue, tell) = (queue.clone(), tell.clone());
            async move { serve(request, stream, &queue, &tell).await }
        })
        .await?;
        Ok(Self { url, acts, asked, _serving })
    }

    /// How the next request that has no answer yet is answered; without any, with a greeting.
    pub fn respond_with(&self, act: ScriptedResponse) -> &Self {
        self.acts.lock().push_back(act);
        self
    }

    /// Waits for the next request.
    pub async fn asked(&mut self) -> Result<RecordedRequest> {
        let asked = tokio::time::timeout(Duration::from_secs(20), self.asked.recv()).await;
        asked.context("nobody asked")?.context("the endpoint is over")
    }

    /// How many requests came that nobody looked at.
    pub fn unseen(&mut self) -> usize {
        std::iter::from_fn(|| self.asked.try_recv().ok()).count()
    }
}

async fn serve(
    request: Request,
    mut stream: TcpStream,
    acts: &Mutex<VecDeque<ScriptedResponse>>,
    tell: &mpsc::UnboundedSender<RecordedRequest>,
) -> Result<()> {
    let Request { method, path, headers, body } = request;
    let body = if body.is_empty() { Value::Null } else { serde_json::from_slice(&body)? };
    let asked = RecordedRequest { method, path, headers, body };
    let (messages, lists) = (asked.path.ends_with("/messages"), asked.method == "GET");
    let model = asked.body["model"].as_str().unwrap_or_default().to_owned();
    let stream = &mut stream;
    if lists {
        let body = json!({ "data": [{ "id": "small" }, { "id": "large" }] }).to_string();
        let _ = tell.send(asked);
        return http::whole(stream, 200, &[], &body).await;
    }
    let act = acts.lock().pop_front();
    let _ = tell.send(asked);
    let mut voice = StreamWriter { stream, messages };
    match act.unwrap_or_else(|| ScriptedResponse::say(&format!("Hello from {model}"))) {
        ScriptedResponse::Say { thoughts, text } => {
            voice.begin().await?;
            for thought in thoughts {
                voice.piece("thinking", &thought).await?;
            }
            for piece in text {
                voice.piece("text", &piece).await?;
            }
            voice.end("end_turn", "stop").await
        }
        ScriptedResponse::CutShort(text) => {
            voice.begin().await?;
            voice.piece("text", &text).await?;
            voice.end("max_tokens", "length").await
        }
        ScriptedResponse::Stall(text) => {
            voice.begin().await?;
            voice.piece("text", &text).await?;
            gone(voice.stream).await
        }
        ScriptedResponse::Wait(text, bell, rest) => {
            voice.begin().await?;
            voice.piece("text", &text).await?;
            bell.notified().await;
            voice.piece("text", &rest).await?;
            voice.end("end_turn", "stop").await
        }
        ScriptedResponse::BreakOff(text) => {
            voice.begin().await?;
            voice.piece("text", &text).await
        }
        ScriptedResponse::SayAndFail(text) => {
            voice.begin().await?;
            voice.piece("text", &text).await?;
            let error = json!({ "type": "overloaded_error", "message": "Overloaded" });
            voice.event(&json!({ "type": "error", "error": error })).await
        }
        ScriptedResponse::Hang => gone(voice.stream).await,
        ScriptedResponse::Status { status, headers, body } => {
            http::whole(voice.stream, status, &headers, &body).await
        }
        ScriptedResponse::Garbage => {
            http::begin_events(voice.stream).await?;
            Ok(voice.stream.write_all(b"data: <html>\x00\xff\n\n").await?)
        }
        ScriptedResponse::EndlessLine => {
            http::begin_events(voice.stream).await?;
            voice.stream.write_all(b"data: ").await?;
            loop {
                voice.stream.write_all(&[b'x'; 64 * 1024]).await?;
            }
        }
        ScriptedResponse::Flood => {
            voice.begin().await?;
            loop {
                voice.piece("text", &"flood ".repeat(2_000)).await?;
            }
        }
        ScriptedResponse::NotAStream => {
            let body = json!({ "choices": [{ "message": { "content": "hello" } }] }).to_string();
            http::whole(voice.stream, 200, &[], &body).await
        }
    }
}

/// Until whoever asked is gone.
async fn gone(stream: &mut TcpStream) -> Result<()> {
    let mut rest = [0; 64];
    while stream.read(&mut rest).await? > 0 {}
    Ok(())
}

struct StreamWriter<'a> {
    stream: &'a mut TcpStream,
    /// As Anthropic speaks, or else as OpenAI does.
    messages: bool,
}

impl StreamWriter<'_> {
    async fn begin(&mut self) -> Result<()> {
        http::begin_events(self.stream).await?;
        if self.messages {
            let usage = json!({ "input_tokens": 20, "cache_read_input_tokens": 5, "output_tokens": 1 });
            self.event(&json!({ "type": "message_start", "message": { "usage": usage } })).await?;
            self.event(&json!({ "type": "ping" })).await?;
        }
        Ok(())
    }

    async fn piece(&mut self, kind: &str, text: &str) -> Result<()> {
        let event = match self.messages {
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
        if self.messages {
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
