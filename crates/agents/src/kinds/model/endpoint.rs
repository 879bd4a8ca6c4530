//! HTTP client for one model at one address: sends a request and streams the answer.
//!
//! Owns: timeouts and size limits, so that a faulty or hostile server cannot use unbounded time or memory.

use super::dialect::{AnswerEvent, Dialect, message};
use super::error::{EndpointError, EndpointErrorKind};
use super::key::Key;
use super::sse::SseParser;
use crate::context::{ChatPrompt, PromptMessage};
use parlor_model::characters::is_deceptive;
use parlor_outbound::{self as outbound, AddressPolicy};
use reqwest::header::HeaderValue;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

/// Maximum bytes of a streaming answer, including the event framing.
const MAX_STREAM_BYTES: usize = 64 * 1024 * 1024;
/// Maximum bytes of a response that is not a stream: a list of models or an error.
const MAX_BODY_BYTES: usize = 1024 * 1024;
/// Maximum characters of an endpoint's error message; the rest is cut off.
const MAX_ERROR_CHARS: usize = 300;

#[derive(Debug, Clone)]
pub struct Endpoint {
    pub dialect: Dialect,
    pub base: Url,
    pub key: Option<Key>,
    pub model: Box<str>,
    pub most_tokens: Option<u32>,
    pub timeouts: Timeouts,
    client: Client,
}

/// Timeouts and retry delays for an endpoint.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Timeout for the response headers, and between two chunks of the body.
    pub idle: Duration,
    /// Timeout for a complete answer.
    pub total: Duration,
    /// Delay before the first retry; it doubles with each further retry.
    pub retry_delay: Duration,
    /// Maximum `Retry-After` that is honoured; a longer one fails the request at once.
    pub max_retry_delay: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            idle: Duration::from_secs(120),
            total: Duration::from_secs(15 * 60),
            retry_delay: Duration::from_millis(500),
            max_retry_delay: Duration::from_secs(30),
        }
    }
}

impl Endpoint {
    pub fn new(
        dialect: Dialect,
        base: Url,
        key: Option<Key>,
        model: &str,
        address_policy: AddressPolicy,
    ) -> Self {
        Self::through(outbound::client(address_policy), dialect, base, key, model)
    }

    /// Creates an endpoint that uses a shared HTTP client.
    pub fn through(client: Client, dialect: Dialect, base: Url, key: Option<Key>, model: &str) -> Self {
        let timeouts = Timeouts::default();
        Self { dialect, base, key, model: model.into(), most_tokens: None, timeouts, client }
    }

    /// An endpoint for another model on the same server.
    pub fn with_model(&self, model: &str) -> Self {
        Self { model: model.into(), ..self.clone() }
    }

    /// Sends the prompt and returns the streaming answer.
    pub async fn ask(&self, prompt: &ChatPrompt) -> Result<AnswerStream<'_>, EndpointError> {
        let deadline = Instant::now() + self.timeouts.total;
        let body = self.dialect.request(&self.model, prompt, self.most_tokens);
        let request = self.client.post(self.dialect.endpoint(&self.base)).json(&body);
        let response = self.send(request.header("accept", "text/event-stream"), deadline).await?;
        let content_type = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if !content_type.is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with("text/event-stream"))
        {
            return Err(EndpointError::new(EndpointErrorKind::InvalidResponse));
        }
        let events = SseParser::default();
        Ok(AnswerStream {
            endpoint: self,
            response,
            events,
            pending: Vec::new(),
            deadline,
            bytes: 0,
            is_complete: false,
            error: None,
        })
    }

    /// Sends one question and returns its complete, short answer.
    pub async fn ask_briefly(
        &self,
        system: &str,
        question: &str,
        max_duration: Duration,
    ) -> Result<String, EndpointError> {
        /// Maximum bytes of the answer, which should be a word or two.
        const MAX_ANSWER_BYTES: usize = 16 * 1024;
        let messages = vec![PromptMessage { own: false, text: question.into() }];
        let prompt = ChatPrompt { system: system.into(), messages };
        let complete_answer = async {
            let mut answer = self.ask(&prompt).await?;
            let mut text = String::new();
            while let Some(event) = answer.next().await? {
                if let AnswerEvent::Text(delta) = event {
                    text.push_str(&delta);
                }
                if text.len() > MAX_ANSWER_BYTES {
                    return Err(EndpointError::new(EndpointErrorKind::TooLarge));
                }
            }
            Ok(text)
        };
        timeout(max_duration, complete_answer)
            .await
            .unwrap_or(Err(EndpointError::new(EndpointErrorKind::TimedOut)))
    }

    /// Names of the models that the server lists.
    pub async fn models(&self, timeout: Duration) -> Result<Vec<String>, EndpointError> {
        let deadline = Instant::now() + timeout;
        let request = self.client.get(self.dialect.url_for(&self.base, "models"));
        let response = self.send(request, deadline).await?;
        let body = self.body(response, deadline).await?;
        let list: Value = serde_json::from_slice(&body)
            .map_err(|_| EndpointError::new(EndpointErrorKind::InvalidResponse))?;
        let list = list["data"].as_array().ok_or(EndpointError::new(EndpointErrorKind::InvalidResponse))?;
        Ok(list.iter().filter_map(|model| model["id"].as_str()).map(str::to_owned).collect())
    }

    async fn send(
        &self,
        mut request: reqwest::RequestBuilder,
        deadline: Instant,
    ) -> Result<Response, EndpointError> {
        for (name, value) in self.dialect.headers(self.key.as_ref().map(Key::expose)) {
            // Sensitive headers are not printed by the logs of the HTTP libraries.
            let Ok(mut value) = HeaderValue::from_str(&value) else { continue };
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let deadline = deadline.min(Instant::now() + self.timeouts.idle);
        let sent = timeout_at(deadline, request.send()).await;
        let response = sent
            .map_err(|_| EndpointError::new(EndpointErrorKind::TimedOut))?
            .map_err(|error| transport_error(&error))?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => Err(self.error_response(status, response, deadline).await),
        }
    }

    async fn error_response(
        &self,
        status: StatusCode,
        response: Response,
        deadline: Instant,
    ) -> EndpointError {
        let retry_after = response.headers().get("retry-after").and_then(|value| value.to_str().ok());
        // Only seconds are supported: a date is unreliable, because clocks differ.
        let retry_after = retry_after.and_then(|value| value.trim().parse().ok()).map(Duration::from_secs);
        let body = self.body(response, deadline).await.unwrap_or_default();
        let body: Option<Value> = serde_json::from_slice(&body).ok();
        let detail = body.and_then(|body| message(&body["error"]).or_else(|| message(&body)));
        let detail = detail.and_then(|detail| self.sanitize(&detail));
        EndpointError { kind: EndpointError::of_status(status.as_u16()), detail, retry_after }
    }

    /// Makes an endpoint's error message safe to show: one short line without the key; `None` if nothing
    /// remains.
    fn sanitize(&self, detail: &str) -> Option<Box<str>> {
        let detail = match &self.key {
            Some(key) => key.cut_from(detail),
            None => detail.to_owned(),
        };
        let words: Vec<&str> = detail.split(|c: char| c.is_whitespace() || is_deceptive(c)).collect();
        let line: String = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let mut short: String = line.chars().take(MAX_ERROR_CHARS).collect();
        if short.len() < line.len() {
            short.push('…');
        }
        (!short.is_empty()).then(|| short.into())
    }

    async fn body(&self, mut response: Response, deadline: Instant) -> Result<Vec<u8>, EndpointError> {
        let mut body = Vec::new();
        loop {
            let next_deadline = deadline.min(Instant::now() + self.timeouts.idle);
            let read = timeout_at(next_deadline, response.chunk()).await;
            let read = read
                .map_err(|_| EndpointError::new(EndpointErrorKind::TimedOut))?
                .map_err(|error| transport_error(&error))?;
            let Some(bytes) = read else { return Ok(body) };
            if body.len() + bytes.len() > MAX_BODY_BYTES {
                return Err(EndpointError::new(EndpointErrorKind::TooLarge));
            }
            body.extend_from_slice(&bytes);
        }
    }
}

/// A streaming answer.
pub struct AnswerStream<'a> {
    endpoint: &'a Endpoint,
    response: Response,
    events: SseParser,
    /// Decoded events in reverse order, so that the next one is popped from the end.
    pending: Vec<AnswerEvent>,
    deadline: Instant,
    bytes: usize,
    is_complete: bool,
    /// Error to return after all `pending` events, which arrived before it.
    error: Option<EndpointError>,
}

impl AnswerStream<'_> {
    /// Returns the next event, or `None` at the end of the answer.
    pub async fn next(&mut self) -> Result<Option<AnswerEvent>, EndpointError> {
        loop {
            match self.pending.pop() {
                Some(AnswerEvent::End) => return Ok(None),
                Some(AnswerEvent::Complete) => self.is_complete = true,
                Some(event) => return Ok(Some(event)),
                None => match self.fill().await {
                    Ok(true) => {}
                    // Only a usage report can follow a complete answer; it is optional.
                    Ok(false) | Err(_) if self.is_complete => return Ok(None),
                    Ok(false) => return Err(EndpointError::new(EndpointErrorKind::ConnectionLost)),
                    Err(endpoint_error) => return Err(endpoint_error),
                },
            }
        }
    }

    /// Fills `pending` from the response, or returns the stored error. `false` means end of the response.
    async fn fill(&mut self) -> Result<bool, EndpointError> {
        match self.error.take() {
            Some(endpoint_error) => Err(endpoint_error),
            None => self.read_chunk().await,
        }
    }

    async fn read_chunk(&mut self) -> Result<bool, EndpointError> {
        let deadline = self.deadline.min(Instant::now() + self.endpoint.timeouts.idle);
        let read = timeout_at(deadline, self.response.chunk()).await;
        let read = read
            .map_err(|_| EndpointError::new(EndpointErrorKind::TimedOut))?
            .map_err(|error| transport_error(&error))?;
        let Some(bytes) = read else { return Ok(false) };
        self.bytes += bytes.len();
        if self.bytes > MAX_STREAM_BYTES {
            return Err(EndpointError::new(EndpointErrorKind::TooLarge));
        }
        let mut found = Vec::new();
        let too_long = self.events.feed(&bytes, &mut found).is_err();
        for data in found {
            match self.endpoint.dialect.read(&data) {
                Ok(events) => self.pending.extend(events),
                Err(endpoint_error) => {
                    let detail =
                        endpoint_error.detail.as_deref().and_then(|detail| self.endpoint.sanitize(detail));
                    self.error = Some(EndpointError { detail, ..endpoint_error });
                    break;
                }
            }
        }
        if too_long && self.error.is_none() {
            self.error = Some(EndpointError::new(EndpointErrorKind::TooLarge));
        }
        self.pending.reverse();
        Ok(true)
    }
}

/// Classifies a transport error. The text of the error is dropped: it contains the URL, which may hold
/// secrets.
fn transport_error(error: &reqwest::Error) -> EndpointError {
    EndpointError::new(if outbound::is_address_rejected(error) {
        EndpointErrorKind::AddressBlocked
    } else if error.is_timeout() {
        EndpointErrorKind::TimedOut
    } else if error.is_connect() || error.is_request() {
        EndpointErrorKind::Unreachable
    } else if error.is_body() || error.is_decode() {
        EndpointErrorKind::ConnectionLost
    } else {
        EndpointErrorKind::InvalidResponse
    })
}
