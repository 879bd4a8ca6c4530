//! A model behind an HTTP endpoint, as an agent: it answers with what the model says, and remembers nothing by itself.
//!
//! Owns: when a request is made again. Once something was said it never is: a reply has one beginning.

mod dialect;
mod endpoint;
mod error;
mod key;
mod recipe;
mod sse;

pub use dialect::{AnswerEvent, Dialect};
pub use endpoint::{Endpoint, Timeouts};
pub use error::{EndpointError, EndpointErrorKind};
pub use key::Key;

use crate::context::{self, ChatPrompt};
use crate::finding::{Finding, Health};
use crate::run::{OutputClosed, RunInput, RunIo, RunResult};
use parlor_model::{Activity, ChunkKind, RoomId, RunEvent, Usage, UsageReport};
use std::hash::{BuildHasher, RandomState};
use std::time::Duration;

/// Requests for one answer of one model.
const TRIES: u32 = 3;
/// Of one reply.
const MOST_TEXT: usize = 10 * 1024 * 1024;
/// For `doctor`.
const EXAMINATION: Duration = Duration::from_secs(10);

#[derive(Debug)]
pub struct Model {
    pub first: Endpoint,
    /// Asked when the first does not answer.
    pub second: Option<Endpoint>,
    /// What whoever set the agent up wants it to be.
    pub instructions: Option<Box<str>>,
}

/// Why a request came to nothing.
enum AttemptFailure {
    /// Nothing was said: another may be asked.
    Before(EndpointError),
    After(EndpointError),
    Deserted,
}

impl From<OutputClosed> for AttemptFailure {
    fn from(_: OutputClosed) -> Self {
        Self::Deserted
    }
}

impl Model {
    pub async fn execute(&self, turn: &RunInput, stage: &RunIo) -> RunResult {
        let roles = context::roles(turn, self.instructions.as_deref());
        tokio::select! {
            biased;
            () = stage.stopped() => RunResult::Stopped,
            ending = self.answer(&roles, stage) => ending,
        }
    }

    /// The conversation comes with each turn; there is nothing to forget.
    pub fn forget(&self, _: &RoomId) {}

    pub async fn examine(&self) -> Vec<Finding> {
        let mut findings = vec![examined(&self.first).await];
        if let Some(second) = &self.second {
            findings.push(examined(second).await);
        }
        findings
    }

    async fn answer(&self, roles: &ChatPrompt, stage: &RunIo) -> RunResult {
        let endpoint_error = match with_retries(&self.first, roles, stage).await {
            Err(AttemptFailure::Before(endpoint_error)) => endpoint_error,
            other => return ending(other),
        };
        let Some(second) = &self.second else { return ending(Err(AttemptFailure::Before(endpoint_error))) };
        let fallback = RunEvent::ModelFallback {
            preferred: self.first.model.clone(),
            actual: second.model.clone(),
            reason: endpoint_error.to_string().into(),
        };
        // Not every door tells of events, and nobody is to take one model for the other.
        let words = format!(
            "{} did not answer: {endpoint_error}. {} answers instead.",
            self.first.model, second.model
        );
        if stage.tell(fallback).await.is_err() || stage.say(ChunkKind::Error, words).await.is_err() {
            return RunResult::Stopped;
        }
        ending(with_retries(second, roles, stage).await)
    }
}

fn ending(answered: Result<(), AttemptFailure>) -> RunResult {
    match answered {
        Ok(()) => RunResult::Finished,
        Err(AttemptFailure::Before(endpoint_error) | AttemptFailure::After(endpoint_error)) => {
            RunResult::Failed(sentence(&endpoint_error.to_string()).into())
        }
        Err(AttemptFailure::Deserted) => RunResult::Stopped,
    }
}

/// Asks again, later and later, while nothing was said and it may help.
async fn with_retries(endpoint: &Endpoint, roles: &ChatPrompt, stage: &RunIo) -> Result<(), AttemptFailure> {
    let mut tries = 0;
    loop {
        tries += 1;
        let endpoint_error = match attempt(endpoint, roles, stage).await {
            Err(AttemptFailure::Before(endpoint_error)) if endpoint_error.is_retryable() && tries < TRIES => {
                endpoint_error
            }
            other => return other,
        };
        let patience = &endpoint.patience;
        let pause = match endpoint_error.wait {
            Some(wait) if wait > patience.longest_pause => {
                return Err(AttemptFailure::Before(endpoint_error));
            }
            Some(wait) => wait,
            None => with_jitter(patience.pause * 2u32.pow(tries - 1)),
        };
        tokio::time::sleep(pause).await;
    }
}

/// Between the half and the whole of it, so that those who failed together do not come back together.
fn with_jitter(pause: Duration) -> Duration {
    let part = RandomState::new().hash_one(0u8) % 512;
    pause.mul_f64(0.5 + part as f64 / 1024.0)
}

async fn attempt(endpoint: &Endpoint, roles: &ChatPrompt, stage: &RunIo) -> Result<(), AttemptFailure> {
    let detail = Some(format!("Asking {}", endpoint.model).into());
    stage.tell(RunEvent::Status { activity: Activity::ModelLoading, detail, subagent: None }).await?;
    let mut answer = endpoint.ask(roles).await.map_err(AttemptFailure::Before)?;
    let (mut heard, mut said, mut declined) = (false, 0, false);
    let mut usage = Usage::default();
    let told = loop {
        let piece = match answer.next().await {
            Ok(Some(piece)) => piece,
            Ok(None) => break Ok(()),
            Err(endpoint_error) if heard => break Err(AttemptFailure::After(endpoint_error)),
            Err(endpoint_error) => return Err(AttemptFailure::Before(endpoint_error)),
        };
        let (kind, text) = match piece {
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
                (ChunkKind::Error, "The model stopped here: it may not say more at once.".into())
            }
            AnswerEvent::Declined => {
                declined = true;
                continue;
            }
            AnswerEvent::Whole | AnswerEvent::Over => continue,
        };
        heard = true;
        said += text.len();
        if said > MOST_TEXT {
            break Err(AttemptFailure::After(EndpointError::new(EndpointErrorKind::TooMuch)));
        }
        stage.say(kind, text).await?;
    };
    if usage != Usage::default() {
        stage.tell(RunEvent::Usage(UsageReport { spent: Some(usage), context: None })).await?;
    }
    told?;
    match (heard, declined) {
        (_, true) => {
            stage.say(ChunkKind::Error, "The model declined to answer.").await.map_err(AttemptFailure::from)
        }
        (true, false) => Ok(()),
        (false, false) => Err(AttemptFailure::Before(EndpointError::new(EndpointErrorKind::SaidNothing))),
    }
}

async fn examined(endpoint: &Endpoint) -> Finding {
    let (model, host) = (&endpoint.model, endpoint.base.host_str().unwrap_or_default());
    let finding = |state, what: String, fix: Option<String>| Finding {
        state,
        what: what.into(),
        fix: fix.map(Into::into),
    };
    match endpoint.models(EXAMINATION).await {
        Ok(models) if models.iter().any(|known| **known == **model) => {
            finding(Health::Ok, format!("{model} answers at {host}."), None)
        }
        Ok(models) if models.is_empty() => {
            finding(Health::Warning, format!("{host} answers, and names no model."), None)
        }
        Ok(models) => {
            let some = models.iter().take(5).map(String::as_str).collect::<Vec<_>>().join(", ");
            let what = format!("{host} does not list a model named {model}.");
            finding(Health::Warning, what, Some(format!("Choose one that it has, such as {some}.")))
        }
        // Some answer questions and keep no list.
        Err(endpoint_error) if endpoint_error.kind == EndpointErrorKind::ModelUnknown => {
            finding(Health::Warning, format!("{host} is there, and keeps no list of its models."), None)
        }
        Err(endpoint_error) => {
            let fix = match endpoint_error.kind {
                EndpointErrorKind::KeyRefused => {
                    "Give the key of this server, in its environment variable or file."
                }
                EndpointErrorKind::Unreachable | EndpointErrorKind::Silent => {
                    "Check the address, and that the server is running."
                }
                _ => "Check the address.",
            };
            finding(Health::Failure, format!("{host}: {endpoint_error}."), Some(fix.into()))
        }
    }
}

/// With a capital letter and a full stop.
fn sentence(words: &str) -> String {
    let mut letters = words.chars();
    let first: String = letters.next().map(|first| first.to_uppercase().collect()).unwrap_or_default();
    let end = if words.ends_with(['.', '!', '?', '…']) { "" } else { "." };
    format!("{first}{}{end}", letters.as_str())
}
