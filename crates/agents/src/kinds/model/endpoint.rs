//! One model at one address: a request goes out, pieces of the answer come back.
//!
//! Owns: time limits and bounds. Whatever the other side does, it costs no more than these.

use super::dialect::{AnswerEvent, Dialect, message};
use super::error::{EndpointError, EndpointErrorKind};
use super::key::Key;
use super::sse::SseParser;
use crate::context::{ChatPrompt, PromptMessage};
use crate::outbound::{self, AddressPolicy};
use parlor_model::characters::is_deceptive;
use reqwest::header::HeaderValue;
use reqwest::{Client, Response, StatusCode};
use serde_json::Value;
use std::time::Duration;
use tokio::time::{Instant, timeout, timeout_at};
use url::Url;

/// Of a whole answer with everything around it.
const MOST_BYTES: usize = 64 * 1024 * 1024;
/// Of an answer that is no stream: a list of models, or what went wrong.
const MOST_OTHER_BYTES: usize = 1024 * 1024;
/// Of what an endpoint says about an error.
const MOST_SAID: usize = 300;

#[derive(Debug, Clone)]
pub struct Endpoint {
    pub dialect: Dialect,
    pub base: Url,
    pub key: Option<Key>,
    pub model: Box<str>,
    pub most_tokens: Option<u32>,
    pub patience: Timeouts,
    client: Client,
}

/// How long an endpoint is waited for.
#[derive(Debug, Clone, Copy)]
pub struct Timeouts {
    /// Between two signs of life.
    pub silence: Duration,
    /// For a whole answer.
    pub whole: Duration,
    /// Before a request is made again for the first time; then twice as long each time.
    pub pause: Duration,
    /// The longest that an endpoint may ask to be left alone.
    pub longest_pause: Duration,
}

impl Default for Timeouts {
    fn default() -> Self {
        Self {
            silence: Duration::from_secs(120),
            whole: Duration::from_secs(15 * 60),
            pause: Duration::from_millis(500),
            longest_pause: Duration::from_secs(30),
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

    /// Over a client that others share.
    pub fn through(client: Client, dialect: Dialect, base: Url, key: Option<Key>, model: &str) -> Self {
        let patience = Timeouts::default();
        Self { dialect, base, key, model: model.into(), most_tokens: None, patience, client }
    }

    /// Another model of the same server.
    pub fn with_model(&self, model: &str) -> Self {
        Self { model: model.into(), ..self.clone() }
    }

    /// Asks for an answer, which comes piece by piece.
    pub async fn ask(&self, roles: &ChatPrompt) -> Result<AnswerStream<'_>, EndpointError> {
        let until = Instant::now() + self.patience.whole;
        let body = self.dialect.request(&self.model, roles, self.most_tokens);
        let request = self.client.post(self.dialect.endpoint(&self.base)).json(&body);
        let response = self.send(request.header("accept", "text/event-stream"), until).await?;
        let stream = response.headers().get("content-type").and_then(|kind| kind.to_str().ok());
        if !stream.is_some_and(|kind| kind.trim().to_ascii_lowercase().starts_with("text/event-stream")) {
            return Err(EndpointError::new(EndpointErrorKind::NotUnderstood));
        }
        let events = SseParser::default();
        Ok(AnswerStream {
            endpoint: self,
            response,
            events,
            waiting: Vec::new(),
            until,
            bytes: 0,
            is_whole: false,
            failed: None,
        })
    }

    /// A short answer to one question, whole.
    pub async fn ask_briefly(
        &self,
        system: &str,
        question: &str,
        within: Duration,
    ) -> Result<String, EndpointError> {
        /// Of an answer that is a word or two.
        const MOST: usize = 16 * 1024;
        let said = vec![PromptMessage { own: false, text: question.into() }];
        let roles = ChatPrompt { system: system.into(), said };
        let answering = async {
            let mut answer = self.ask(&roles).await?;
            let mut text = String::new();
            while let Some(piece) = answer.next().await? {
                if let AnswerEvent::Text(more) = piece {
                    text.push_str(&more);
                }
                if text.len() > MOST {
                    return Err(EndpointError::new(EndpointErrorKind::TooMuch));
                }
            }
            Ok(text)
        };
        timeout(within, answering).await.unwrap_or(Err(EndpointError::new(EndpointErrorKind::Silent)))
    }

    /// The names of the models that are there, if the endpoint tells.
    pub async fn models(&self, within: Duration) -> Result<Vec<String>, EndpointError> {
        let until = Instant::now() + within;
        let request = self.client.get(self.dialect.url_for(&self.base, "models"));
        let response = self.send(request, until).await?;
        let body = self.body(response, until).await?;
        let list: Value = serde_json::from_slice(&body)
            .map_err(|_| EndpointError::new(EndpointErrorKind::NotUnderstood))?;
        let list = list["data"].as_array().ok_or(EndpointError::new(EndpointErrorKind::NotUnderstood))?;
        Ok(list.iter().filter_map(|model| model["id"].as_str()).map(str::to_owned).collect())
    }

    async fn send(
        &self,
        mut request: reqwest::RequestBuilder,
        until: Instant,
    ) -> Result<Response, EndpointError> {
        for (name, value) in self.dialect.headers(self.key.as_ref().map(Key::expose)) {
            // No log of a library shows it either.
            let Ok(mut value) = HeaderValue::from_str(&value) else { continue };
            value.set_sensitive(true);
            request = request.header(name, value);
        }
        let patience = until.min(Instant::now() + self.patience.silence);
        let sent = timeout_at(patience, request.send()).await;
        let response = sent
            .map_err(|_| EndpointError::new(EndpointErrorKind::Silent))?
            .map_err(|error| trouble(&error))?;
        match response.status() {
            StatusCode::OK => Ok(response),
            status => Err(self.refusal(status, response, patience).await),
        }
    }

    async fn refusal(&self, status: StatusCode, response: Response, until: Instant) -> EndpointError {
        let wait = response.headers().get("retry-after").and_then(|wait| wait.to_str().ok());
        // A date is as good as nothing: clocks differ.
        let wait = wait.and_then(|wait| wait.trim().parse().ok()).map(Duration::from_secs);
        let body = self.body(response, until).await.unwrap_or_default();
        let said: Option<Value> = serde_json::from_slice(&body).ok();
        let said = said.and_then(|said| message(&said["error"]).or_else(|| message(&said)));
        let said = said.and_then(|said| self.presentable(&said));
        EndpointError { kind: EndpointError::of_status(status.as_u16()), said, wait }
    }

    /// What the other side says: one line, not long, and without the key.
    fn presentable(&self, said: &str) -> Option<Box<str>> {
        let said = match &self.key {
            Some(key) => key.cut_from(said),
            None => said.to_owned(),
        };
        let words: Vec<&str> = said.split(|c: char| c.is_whitespace() || is_deceptive(c)).collect();
        let line: String = words.into_iter().filter(|word| !word.is_empty()).collect::<Vec<_>>().join(" ");
        let mut short: String = line.chars().take(MOST_SAID).collect();
        if short.len() < line.len() {
            short.push('…');
        }
        (!short.is_empty()).then(|| short.into())
    }

    async fn body(&self, mut response: Response, until: Instant) -> Result<Vec<u8>, EndpointError> {
        let mut body = Vec::new();
        loop {
            let patience = until.min(Instant::now() + self.patience.silence);
            let read = timeout_at(patience, response.chunk()).await;
            let read = read
                .map_err(|_| EndpointError::new(EndpointErrorKind::Silent))?
                .map_err(|error| trouble(&error))?;
            let Some(bytes) = read else { return Ok(body) };
            if body.len() + bytes.len() > MOST_OTHER_BYTES {
                return Err(EndpointError::new(EndpointErrorKind::TooMuch));
            }
            body.extend_from_slice(&bytes);
        }
    }
}

/// An answer that is on its way.
pub struct AnswerStream<'a> {
    endpoint: &'a Endpoint,
    response: Response,
    events: SseParser,
    /// In reverse.
    waiting: Vec<AnswerEvent>,
    until: Instant,
    bytes: usize,
    is_whole: bool,
    /// What went wrong behind what waits: that was said before it.
    failed: Option<EndpointError>,
}

impl AnswerStream<'_> {
    /// `None` when it is over.
    pub async fn next(&mut self) -> Result<Option<AnswerEvent>, EndpointError> {
        loop {
            match self.waiting.pop() {
                Some(AnswerEvent::Over) => return Ok(None),
                Some(AnswerEvent::Whole) => self.is_whole = true,
                Some(piece) => return Ok(Some(piece)),
                None => match self.further().await {
                    Ok(true) => {}
                    // What follows the answer is welcome and not needed.
                    Ok(false) | Err(_) if self.is_whole => return Ok(None),
                    Ok(false) => return Err(EndpointError::new(EndpointErrorKind::ConnectionLost)),
                    Err(endpoint_error) => return Err(endpoint_error),
                },
            }
        }
    }

    async fn further(&mut self) -> Result<bool, EndpointError> {
        match self.failed.take() {
            Some(endpoint_error) => Err(endpoint_error),
            None => self.more().await,
        }
    }

    async fn more(&mut self) -> Result<bool, EndpointError> {
        let patience = self.until.min(Instant::now() + self.endpoint.patience.silence);
        let read = timeout_at(patience, self.response.chunk()).await;
        let read = read
            .map_err(|_| EndpointError::new(EndpointErrorKind::Silent))?
            .map_err(|error| trouble(&error))?;
        let Some(bytes) = read else { return Ok(false) };
        self.bytes += bytes.len();
        if self.bytes > MOST_BYTES {
            return Err(EndpointError::new(EndpointErrorKind::TooMuch));
        }
        let mut found = Vec::new();
        let too_long = self.events.feed(&bytes, &mut found).is_err();
        for data in found {
            match self.endpoint.dialect.read(&data) {
                Ok(pieces) => self.waiting.extend(pieces),
                Err(endpoint_error) => {
                    let said =
                        endpoint_error.said.as_deref().and_then(|said| self.endpoint.presentable(said));
                    self.failed = Some(EndpointError { said, ..endpoint_error });
                    break;
                }
            }
        }
        if too_long && self.failed.is_none() {
            self.failed = Some(EndpointError::new(EndpointErrorKind::TooMuch));
        }
        self.waiting.reverse();
        Ok(true)
    }
}

/// Its own words would show the address, and with it whatever somebody put there.
fn trouble(error: &reqwest::Error) -> EndpointError {
    EndpointError::new(if outbound::is_barred(error) {
        EndpointErrorKind::AddressBlocked
    } else if error.is_timeout() {
        EndpointErrorKind::Silent
    } else if error.is_connect() || error.is_request() {
        EndpointErrorKind::Unreachable
    } else if error.is_body() || error.is_decode() {
        EndpointErrorKind::ConnectionLost
    } else {
        EndpointErrorKind::NotUnderstood
    })
}
