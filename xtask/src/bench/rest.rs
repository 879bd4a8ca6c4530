//! Minimal HTTP client for setup requests, with one connection per request.

use super::socket::RESPONSE_TIMEOUT;
use anyhow::{Context, Result, bail};
use serde_json::Value;
use std::net::SocketAddr;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::timeout;

/// Posts JSON and returns `data` of the response.
pub async fn post(address: SocketAddr, path: &str, token: Option<&str>, body: &Value) -> Result<Value> {
    let mut answer = request(address, &format!("POST {path}"), token, &body.to_string()).await?;
    Ok(answer["data"].take())
}

/// Sends a GET request and returns the response body.
pub async fn get(address: SocketAddr, path: &str, token: &str) -> Result<Value> {
    request(address, &format!("GET {path}"), Some(token), "").await
}

async fn request(address: SocketAddr, what: &str, token: Option<&str>, body: &str) -> Result<Value> {
    let answer = timeout(RESPONSE_TIMEOUT, exchange(address, what, token, body)).await;
    let answer = answer.with_context(|| format!("no answer to {what} within {RESPONSE_TIMEOUT:?}"))??;
    let (head, content) = answer.split_once("\r\n\r\n").context("a response without an end of its head")?;
    let status = head.split(' ').nth(1).unwrap_or("no status");
    if !status.starts_with('2') {
        bail!("{what} was answered with {status}: {content}");
    }
    serde_json::from_str(content).with_context(|| format!("the answer to {what}"))
}

async fn exchange(address: SocketAddr, what: &str, token: Option<&str>, body: &str) -> Result<String> {
    let mut stream = TcpStream::connect(address).await?;
    let authorization = token.map(|token| format!("Authorization: Bearer {token}\r\n")).unwrap_or_default();
    let request = format!(
        "{what} HTTP/1.1\r\nHost: {address}\r\nConnection: close\r\nContent-Type: application/json\r\n\
         {authorization}Content-Length: {}\r\n\r\n{body}",
        body.len()
    );
    stream.write_all(request.as_bytes()).await?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await?;
    Ok(answer)
}
