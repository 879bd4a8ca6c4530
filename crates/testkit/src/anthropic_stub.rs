//! A model endpoint on loopback for programs that use the Messages API of Anthropic, such as the Claude CLI.
//!
//! The last `play:…` in the prompt selects its response; without one it greets. After a tool call it repeats
//! the word after `meanwhile:`, if the prompt contains one. The script is part of the prompt instead of a
//! queue, because such programs send more requests than a test knows of.

use crate::http::{self, Request};
use anyhow::Result;
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::task::JoinSet;

pub const TOOL_COMMAND: &str = "echo made > made-by-claude.txt && cat made-by-claude.txt";

/// The running endpoint. Dropping it stops it.
pub struct AnthropicStub {
    pub url: String,
    _serving: JoinSet<()>,
}

impl AnthropicStub {
    pub async fn start() -> Result<Self> {
        let refused = Arc::<Mutex<HashSet<String>>>::default();
        let (url, _serving) = http::listen(move |request, stream| {
            let refused = refused.clone();
            async move { serve(request, stream, &refused).await }
        })
        .await?;
        Ok(Self { url, _serving })
    }
}

async fn serve(request: Request, mut stream: TcpStream, refused: &Mutex<HashSet<String>>) -> Result<()> {
    let (path, stream) = (request.path, &mut stream);
    if !path.starts_with("/v1/messages") || path.contains("count_tokens") {
        return whole(stream, 404, &json!({ "type": "error" })).await;
    }
    let body: Value = serde_json::from_slice(&request.body)?;
    let messages = body["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let answered = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
    let unanswered = json!(messages[answered..]).to_string();
    let error = |kind: &str| json!({ "type": "error", "error": { "type": kind, "message": "not now" } });
    let mut answer = AnswerWriter { stream, model: body["model"].clone(), blocks: 0 };
    if let Some(result) = result_of_tool(&messages[answered..]) {
        answer.begin().await?;
        answer.say(&["The tool said: ", &result]).await?;
        if let Some(word) = word_after(&unanswered, "meanwhile:") {
            answer.say(&["Meanwhile somebody said: ", &word]).await?;
        }
        return answer.end("end_turn").await;
    }
    // Only requests of the conversation itself have tools; auxiliary requests, such as for a title, have
    // none.
    let script = word_after(&unanswered, "play:")
        .filter(|_| body["tools"].as_array().is_some_and(|tools| !tools.is_empty()))
        .unwrap_or_default();
    match &*script {
        "tool" => {
            answer.begin().await?;
            answer.say(&["I make ", "a file."]).await?;
            answer.call("Bash", &json!({ "command": TOOL_COMMAND, "description": "Make a file" })).await?;
            answer.end("tool_use").await
        }
        "slow" => {
            answer.begin().await?;
            answer.say(&["One "]).await?;
            // Wait until the client closes the connection.
            answer.stream.read_to_end(&mut Vec::new()).await?;
            Ok(())
        }
        "again" => {
            answer.begin().await?;
            let times = messages.iter().filter(|message| message["role"] == "assistant").count();
            answer.say(&[&format!("I have answered {times} times.")]).await?;
            answer.end("end_turn").await
        }
        "busy" if refused.lock().insert("limit".into()) => {
            whole(answer.stream, 429, &error("rate_limit_error")).await
        }
        "busy" if refused.lock().insert("load".into()) => {
            whole(answer.stream, 529, &error("overloaded_error")).await
        }
        "broken" => whole(answer.stream, 400, &error("invalid_request_error")).await,
        _ => {
            answer.begin().await?;
            answer.think("Let me see.").await?;
            answer.say(&["Hello ", "from ", "the ", "model."]).await?;
            answer.end("end_turn").await
        }
    }
}

/// Returns the word after the last occurrence of `mark`.
fn word_after(text: &str, mark: &str) -> Option<String> {
    let (_, rest) = text.rsplit_once(mark)?;
    Some(rest.chars().take_while(char::is_ascii_lowercase).collect())
}

fn result_of_tool(messages: &[Value]) -> Option<String> {
    let mut blocks = messages.iter().filter_map(|message| message["content"].as_array()).flatten();
    let result = blocks.rfind(|block| block["type"] == "tool_result")?;
    Some(match &result["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    })
}

async fn whole(stream: &mut TcpStream, status: u16, body: &Value) -> Result<()> {
    http::whole(stream, status, &[], &body.to_string()).await
}

/// Writes an answer as a stream of server-sent events.
struct AnswerWriter<'a> {
    stream: &'a mut TcpStream,
    model: Value,
    blocks: usize,
}

impl AnswerWriter<'_> {
    async fn begin(&mut self) -> Result<()> {
        http::begin_events(self.stream).await?;
        static COUNT: std::sync::atomic::AtomicUsize = std::sync::atomic::AtomicUsize::new(0);
        let id = format!("msg_{}", COUNT.fetch_add(1, std::sync::atomic::Ordering::Relaxed));
        let message = json!({ "id": id, "type": "message", "role": "assistant", "model": self.model, "content": [],
            "stop_reason": null, "stop_sequence": null, "usage": { "input_tokens": 10, "output_tokens": 1 } });
        self.event(json!({ "type": "message_start", "message": message })).await
    }

    async fn think(&mut self, thought: &str) -> Result<()> {
        let delta = json!({ "type": "thinking_delta", "thinking": thought });
        let signature = json!({ "type": "signature_delta", "signature": "signed" });
        self.block(json!({ "type": "thinking", "thinking": "", "signature": "" }), &[delta, signature]).await
    }

    async fn say(&mut self, words: &[&str]) -> Result<()> {
        let deltas: Vec<Value> =
            words.iter().map(|word| json!({ "type": "text_delta", "text": word })).collect();
        self.block(json!({ "type": "text", "text": "" }), &deltas).await
    }

    async fn call(&mut self, tool: &str, input: &Value) -> Result<()> {
        let id = format!("toolu_{}", self.blocks);
        let delta = json!({ "type": "input_json_delta", "partial_json": input.to_string() });
        self.block(json!({ "type": "tool_use", "id": id, "name": tool, "input": {} }), &[delta]).await
    }

    async fn block(&mut self, block: Value, deltas: &[Value]) -> Result<()> {
        let index = self.blocks;
        self.blocks += 1;
        self.event(json!({ "type": "content_block_start", "index": index, "content_block": block })).await?;
        for delta in deltas {
            self.event(json!({ "type": "content_block_delta", "index": index, "delta": delta })).await?;
        }
        self.event(json!({ "type": "content_block_stop", "index": index })).await
    }

    async fn end(mut self, reason: &str) -> Result<()> {
        let delta = json!({ "stop_reason": reason, "stop_sequence": null });
        self.event(json!({ "type": "message_delta", "delta": delta, "usage": { "output_tokens": 7 } }))
            .await?;
        self.event(json!({ "type": "message_stop" })).await?;
        Ok(self.stream.shutdown().await?)
    }

    async fn event(&mut self, event: Value) -> Result<()> {
        http::event(self.stream, &event).await
    }
}
