//! A model on loopback for programs that are made for the Messages API of Anthropic, such as the Claude CLI.
//!
//! What it does is said by the last `play:…` of what it is asked; without one it greets. Such programs ask more than a
//! test wants to know of, so it is told with the question and not beforehand.

use anyhow::{Context, Result};
use parking_lot::Mutex;
use serde_json::{Value, json};
use std::collections::HashSet;
use std::sync::Arc;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

pub const TOOL_COMMAND: &str = "echo made > made-by-claude.txt && cat made-by-claude.txt";

/// Serves as long as it lives.
pub struct Messages {
    pub url: String,
    _serving: JoinSet<()>,
}

impl Messages {
    pub async fn start() -> Result<Self> {
        let listener = TcpListener::bind("127.0.0.1:0").await?;
        let url = format!("http://{}", listener.local_addr()?);
        let refused = Arc::<Mutex<HashSet<String>>>::default();
        let mut serving = JoinSet::new();
        serving.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let refused = refused.clone();
                // Whoever asked may be gone at any moment.
                connections.spawn(async move { drop(serve(stream, &refused).await) });
            }
        });
        Ok(Self { url, _serving: serving })
    }
}

async fn serve(stream: TcpStream, refused: &Mutex<HashSet<String>>) -> Result<()> {
    let mut stream = BufReader::new(stream);
    let (path, body) = request(&mut stream).await?;
    let stream = stream.get_mut();
    if !path.starts_with("/v1/messages") || path.contains("count_tokens") {
        return whole(stream, 404, &json!({ "type": "error" })).await;
    }
    let asked: Value = serde_json::from_slice(&body)?;
    let messages = asked["messages"].as_array().map(Vec::as_slice).unwrap_or_default();
    let answered = messages.iter().rposition(|message| message["role"] == "assistant").map_or(0, |at| at + 1);
    let news = json!(messages[answered..]).to_string();
    let error = |kind: &str| json!({ "type": "error", "error": { "type": kind, "message": "not now" } });
    let mut voice = Voice { stream, model: asked["model"].clone(), blocks: 0 };
    if let Some(result) = result_of_tool(&messages[answered..]) {
        voice.begin().await?;
        voice.say(&["The tool said: ", &result]).await?;
        return voice.end("end_turn").await;
    }
    // Only the conversation itself has tools; there are questions beside it, such as for a title.
    let act = news
        .rsplit_once("play:")
        .filter(|_| asked["tools"].as_array().is_some_and(|tools| !tools.is_empty()));
    let act: String =
        act.map(|(_, act)| act.chars().take_while(char::is_ascii_lowercase).collect()).unwrap_or_default();
    match &*act {
        "tool" => {
            voice.begin().await?;
            voice.say(&["I make ", "a file."]).await?;
            voice.call("Bash", &json!({ "command": TOOL_COMMAND, "description": "Make a file" })).await?;
            voice.end("tool_use").await
        }
        "slow" => {
            voice.begin().await?;
            voice.say(&["One "]).await?;
            // Until whoever asked hangs up.
            voice.stream.read_to_end(&mut Vec::new()).await?;
            Ok(())
        }
        "again" => {
            voice.begin().await?;
            let times = messages.iter().filter(|message| message["role"] == "assistant").count();
            voice.say(&[&format!("I have answered {times} times.")]).await?;
            voice.end("end_turn").await
        }
        "busy" if refused.lock().insert("limit".into()) => {
            whole(voice.stream, 429, &error("rate_limit_error")).await
        }
        "busy" if refused.lock().insert("load".into()) => {
            whole(voice.stream, 529, &error("overloaded_error")).await
        }
        "broken" => whole(voice.stream, 400, &error("invalid_request_error")).await,
        _ => {
            voice.begin().await?;
            voice.think("Let me see.").await?;
            voice.say(&["Hello ", "from ", "the ", "model."]).await?;
            voice.end("end_turn").await
        }
    }
}

fn result_of_tool(news: &[Value]) -> Option<String> {
    let mut blocks = news.iter().filter_map(|message| message["content"].as_array()).flatten();
    let result = blocks.rfind(|block| block["type"] == "tool_result")?;
    Some(match &result["content"] {
        Value::String(text) => text.clone(),
        blocks => blocks[0]["text"].as_str().unwrap_or_default().to_owned(),
    })
}

/// Path and body.
async fn request(stream: &mut BufReader<TcpStream>) -> Result<(String, Vec<u8>)> {
    let mut line = String::new();
    stream.read_line(&mut line).await?;
    let path = line.split(' ').nth(1).context("no request")?.to_owned();
    let mut length = 0;
    loop {
        line.clear();
        stream.read_line(&mut line).await?;
        match line.trim_end().split_once(": ") {
            Some((name, value)) if name.eq_ignore_ascii_case("content-length") => length = value.parse()?,
            Some(_) => {}
            None => break,
        }
    }
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok((path, body))
}

async fn whole(stream: &mut TcpStream, status: u16, body: &Value) -> Result<()> {
    let body = body.to_string();
    let head = format!(
        "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\nconnection: close\r\ncontent-length: {}\r\n\r\n",
        body.len()
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

/// An answer as a stream of events.
struct Voice<'a> {
    stream: &'a mut TcpStream,
    model: Value,
    blocks: usize,
}

impl Voice<'_> {
    async fn begin(&mut self) -> Result<()> {
        let head = "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream\r\nconnection: close\r\n\r\n";
        self.stream.write_all(head.as_bytes()).await?;
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
        let kind = event["type"].as_str().unwrap_or_default();
        self.stream.write_all(format!("event: {kind}\ndata: {event}\n\n").as_bytes()).await?;
        Ok(self.stream.flush().await?)
    }
}
