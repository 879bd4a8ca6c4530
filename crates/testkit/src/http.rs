//! Minimal HTTP server for stub endpoints on loopback: reads a request, and responds with a body or an event
//! stream.

use anyhow::{Context, Result};
use serde_json::Value;
use std::collections::BTreeMap;
use tokio::io::{AsyncBufReadExt, AsyncReadExt, AsyncWriteExt, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

/// A received request.
#[derive(Debug)]
pub struct Request {
    pub method: String,
    pub path: String,
    /// Headers by lower-case name.
    pub headers: BTreeMap<String, String>,
    pub body: Vec<u8>,
}

/// Starts a server that calls `serve` for each request. Returns its URL and the task set; dropping the set
/// stops it.
pub async fn listen<Served>(
    serve: impl Fn(Request, TcpStream) -> Served + Clone + Send + 'static,
) -> Result<(String, JoinSet<()>)>
where
    Served: Future<Output = Result<()>> + Send,
{
    let listener = TcpListener::bind("127.0.0.1:0").await?;
    let url = format!("http://{}", listener.local_addr()?);
    let mut serving = JoinSet::new();
    serving.spawn(async move {
        let mut connections = JoinSet::new();
        while let Ok((stream, _)) = listener.accept().await {
            let serve = serve.clone();
            connections.spawn(async move {
                let mut stream = BufReader::new(stream);
                if let Ok(request) = read(&mut stream).await {
                    // Errors are ignored, because the client may disconnect at any time.
                    let _ = serve(request, stream.into_inner()).await;
                }
            });
        }
    });
    Ok((url, serving))
}

async fn read(stream: &mut BufReader<TcpStream>) -> Result<Request> {
    let mut first = String::new();
    stream.read_line(&mut first).await?;
    let mut words = first.split_whitespace();
    let method = words.next().context("no method")?.to_owned();
    let path = words.next().context("no path")?.to_owned();
    let mut headers = BTreeMap::new();
    loop {
        let mut line = String::new();
        stream.read_line(&mut line).await?;
        let Some((name, value)) = line.trim().split_once(':') else { break };
        headers.insert(name.to_ascii_lowercase(), value.trim().to_owned());
    }
    let length = headers.get("content-length").and_then(|length| length.parse().ok()).unwrap_or(0);
    let mut body = vec![0; length];
    stream.read_exact(&mut body).await?;
    Ok(Request { method, path, headers, body })
}

pub async fn whole(
    stream: &mut TcpStream,
    status: u16,
    headers: &[(String, String)],
    body: &str,
) -> Result<()> {
    let headers: String = headers.iter().map(|(name, value)| format!("{name}: {value}\r\n")).collect();
    let length = body.len();
    let head = format!(
        "HTTP/1.1 {status} Said\r\ncontent-type: application/json\r\nconnection: close\r\n{headers}content-length: {length}\r\n\r\n"
    );
    stream.write_all(head.as_bytes()).await?;
    stream.write_all(body.as_bytes()).await?;
    Ok(stream.shutdown().await?)
}

/// Writes the response head of an event stream; the events follow until the connection is closed.
pub async fn begin_events(stream: &mut TcpStream) -> Result<()> {
    let head =
        "HTTP/1.1 200 OK\r\ncontent-type: text/event-stream; charset=utf-8\r\nconnection: close\r\n\r\n";
    Ok(stream.write_all(head.as_bytes()).await?)
}

/// Writes an event. Its `type` field, if present, becomes the event name.
pub async fn event(stream: &mut TcpStream, event: &Value) -> Result<()> {
    let name = event["type"].as_str().map(|name| format!("event: {name}\n")).unwrap_or_default();
    Ok(stream.write_all(format!("{name}data: {event}\n\n").as_bytes()).await?)
}
