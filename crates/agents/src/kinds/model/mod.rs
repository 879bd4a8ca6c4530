//! The agent kind `model`: replies with the answer of a model behind an HTTP endpoint, without state of its
//! own.
//!
//! Owns: retries and the fallback to a second model. Neither happens once output was sent, because output
//! cannot be taken back.

mod config;
mod dialect;
mod endpoint;
mod error;
mod key;
mod sse;

pub use dialect::{AnswerEvent, Dialect};
pub use endpoint::{Endpoint, Timeouts};
pub use error::{EndpointError, EndpointErrorKind};
pub use key::Key;

use crate::context::{self, ChatPrompt};
use crate::finding::{Finding, Health};
use crate::run::{OutputClosed, RunInput, RunIo, RunResult};
use parlor_model::{Activity, ChunkKind, RunContext, RunEvent, Usage, UsageReport};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Maximum number of requests to one model for one answer.
const MAX_ATTEMPTS: u32 = 3;
/// Maximum bytes of one reply.
const MAX_REPLY_BYTES: usize = 10 * 1024 * 1024;
/// Timeout for listing the models of a server in `examine`.
const EXAMINE_TIMEOUT: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Model {
    pub first: Endpoint,
    /// Fallback, used when the first endpoint fails before sending any output.
    pub second: Option<Endpoint>,
    /// Instructions from the agent's configuration, for the system prompt.
    pub instructions: Option<Box<str>>,
}

/// Why an attempt failed.
enum AttemptFailure {
    /// Before any output was sent, so a retry or the fallback is possible.
    Before(EndpointError),
    /// After output was sent, which rules out a retry.
    After(EndpointError),
    OutputClosed,
}

impl From<OutputClosed> for AttemptFailure {
    fn from(_: OutputClosed) -> Self {
        Self::OutputClosed
    }
}

impl Model {
    pub async fn execute(&self, run_input: &RunInput, run_io: &RunIo) -> RunResult {
        let prompt = context::roles(run_input, self.instructions.as_deref());
        tokio::select! {
            biased;
            () = run_io.stopped() => RunResult::Stopped,
            result = self.answer(&prompt, run_io) => result,
        }
    }

    /// Does nothing: each run brings the whole conversation, so there is no session.
    pub fn forget(&self, _: &RunContext) {}

    pub async fn examine(&self) -> Vec<Finding> {
        let mut findings = vec![examine_endpoint(&self.first).await];
        if let Some(second) = &self.second {
            findings.push(examine_endpoint(second).await);
        }
        findings
    }

    async fn answer(&self, prompt: &ChatPrompt, run_io: &RunIo) -> RunResult {
        let endpoint_error = match with_retries(&self.first, prompt, run_io).await {
            Err(AttemptFailure::Before(endpoint_error)) => endpoint_error,
            other => return run_result(other),
        };
        let Some(second) = &self.second else {
            return run_result(Err(AttemptFailure::Before(endpoint_error)));
        };
        let fallback = RunEvent::ModelFallback {
            preferred: self.first.model.clone(),
            actual: second.model.clone(),
            reason: endpoint_error.to_string().into(),
        };
        // Not every protocol carries run events, so the change of the model is also sent as text.
        let notice = format!(
            "{} did not answer: {endpoint_error}. {} answers instead.",
            self.first.model, second.model
        );
        if run_io.send_event(fallback).await.is_err()
            || run_io.send_text(ChunkKind::Error, notice).await.is_err()
        {
            return RunResult::Stopped;
        }
        run_result(with_retries(second, prompt, run_io).await)
    }
}

fn run_result(result: Result<(), AttemptFailure>) -> RunResult {
    match result {
        Ok(()) => RunResult::Finished,
        Err(AttemptFailure::Before(endpoint_error) | AttemptFailure::After(endpoint_error)) => {
            RunResult::Failed(sentence(&endpoint_error.to_string()).into())
        }
        Err(AttemptFailure::OutputClosed) => RunResult::Stopped,
    }
}

/// Retries with exponential backoff, while the error is retryable and no output was sent.
async fn with_retries(
    endpoint: &Endpoint,
    prompt: &ChatPrompt,
    run_io: &RunIo,
) -> Result<(), AttemptFailure> {
    let mut attempts = 0;
    loop {
        attempts += 1;
        let endpoint_error = match attempt(endpoint, prompt, run_io).await {
            Err(AttemptFailure::Before(endpoint_error))
                if endpoint_error.is_retryable() && attempts < MAX_ATTEMPTS =>
            {
                endpoint_error
            }
            other => return other,
        };
        let timeouts = &endpoint.timeouts;
        let delay = match endpoint_error.retry_after {
            Some(delay) if delay > timeouts.max_retry_delay => {
                return Err(AttemptFailure::Before(endpoint_error));
            }
            Some(delay) => delay,
            None => with_jitter(timeouts.retry_delay * 2u32.pow(attempts - 1)),
        };
        tokio::time::sleep(delay).await;
    }
}

/// Returns a random delay between half of `delay` and all of it, so that requests that failed together do not
/// retry together.
fn with_jitter(delay: Duration) -> Duration {
    let random = RandomState::new().hash_one(0u8) % 512;
    delay.mul_f64(0.5 + random as f64 / 1024.0)
}

async fn attempt(endpoint: &Endpoint, prompt: &ChatPrompt, run_io: &RunIo) -> Result<(), AttemptFailure> {
    let detail = Some(format!("Asking {}", endpoint.model).into());
    run_io.send_event(RunEvent::Status { activity: Activity::ModelLoading, detail, subagent: None }).await?;
    let mut answer = endpoint.ask(prompt).await.map_err(AttemptFailure::Before)?;
    let (mut has_output, mut bytes, mut declined) = (false, 0, false);
    let mut usage = Usage::default();
    let streamed = loop {
        let event = match answer.next().await {
            Ok(Some(event)) => event,
            Ok(None) => break Ok(()),
            Err(endpoint_error) if has_output => break Err(AttemptFailure::After(endpoint_error)),
            Err(endpoint_error) => return Err(AttemptFailure::Before(endpoint_error)),
        };
        let (kind, text) = match event {
            AnswerEvent::Text(text) => (ChunkKind::Text, text),
            AnswerEvent::Thinking(text) => (ChunkKind::Thinking, text),
            AnswerEvent::Input(tokens) => {
                usage.input_tokens = tokens;
                continue;
            }
            AnswerEvent::Output(tokens) => {
                usage.output_tokens = tokens;
                continue;
            }
            AnswerEvent::CutShort => {
                (ChunkKind::Error, "The answer is cut off here: it reached the maximum length.".into())
            }
            AnswerEvent::Declined => {
                declined = true;
                continue;
            }
            AnswerEvent::Complete | AnswerEvent::End => continue,
        };
        has_output = true;
        bytes += text.len();
        if bytes > MAX_REPLY_BYTES {
            break Err(AttemptFailure::After(EndpointError::new(EndpointErrorKind::TooLarge)));
        }
        run_io.send_text(kind, text).await?;
    };
    if usage != Usage::default() {
        run_io.send_event(RunEvent::Usage(UsageReport { spent: Some(usage), context: None })).await?;
    }
    streamed?;
    match (has_output, declined) {
        (_, true) => run_io
            .send_text(ChunkKind::Error, "The model declined to answer.")
            .await
            .map_err(AttemptFailure::from),
        (true, false) => Ok(()),
        (false, false) => Err(AttemptFailure::Before(EndpointError::new(EndpointErrorKind::EmptyAnswer))),
    }
}

async fn examine_endpoint(endpoint: &Endpoint) -> Finding {
    let (model, host) = (&endpoint.model, endpoint.base.host_str().unwrap_or_default());
    let finding = |state, what: String, fix: Option<String>| Finding {
        state,
        what: what.into(),
        fix: fix.map(Into::into),
    };
    match endpoint.models(EXAMINE_TIMEOUT).await {
        Ok(models) if models.iter().any(|name| **name == **model) => {
            finding(Health::Ok, format!("{host} is reachable and has the model {model}."), None)
        }
        Ok(models) if models.is_empty() => {
            finding(Health::Warning, format!("{host} is reachable, but lists no models."), None)
        }
        Ok(models) => {
            let some = models.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
            let what = format!("{host} does not list a model named {model}.");
            finding(Health::Warning, what, Some(format!("Choose a model that it has, such as {some}.")))
        }
        // Some servers work but have no list of models, which is reported as 404.
        Err(endpoint_error) if endpoint_error.kind == EndpointErrorKind::ModelUnknown => {
            finding(Health::Warning, format!("{host} is reachable, but has no list of its models."), None)
        }
        Err(endpoint_error) => {
            let fix = match endpoint_error.kind {
                EndpointErrorKind::KeyRefused => "Set the key of this server, with key_env or key_file.",
                EndpointErrorKind::Unreachable | EndpointErrorKind::TimedOut => {
                    "Check the address, and that the server is running."
                }
                _ => "Check the address.",
            };
            finding(Health::Failure, format!("{host}: {endpoint_error}."), Some(fix.into()))
        }
    }
}

/// Turns an error text into a sentence, with a capital letter and a full stop.
fn sentence(text: &str) -> String {
    let mut letters = text.chars();
    let first: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    let end = if text.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}
