//! One prompt in one session, from its first word to its end.
//!
//! Owns: that a stop ends it soon, whatever the agent does; that a question is answered, or called off.

use super::connection::{Connection, Listener, PendingPermission, SessionEvent, told};
use super::translate::{AcpOutput, AcpTranslator};
use crate::kinds::tools;
use crate::run::{OutputClosed, RunIo, RunResult};
use agent_client_protocol::v1::schema::{
    ContentBlock, LoadSessionRequest, PermissionOption, PermissionOptionKind, PromptRequest, PromptResponse,
    RequestPermissionOutcome, ResumeSessionRequest, SelectedPermissionOutcome, SessionId, StopReason,
    TextContent, ToolCallUpdate,
};
use agent_client_protocol::{Error, ErrorCode};
use futures_util::stream::{FuturesUnordered, StreamExt};
use parlor_model::{RunEvent, Usage, UsageReport};
use parlor_wire::agentim::gateway::host::ingress::PermissionOutcome;
use std::path::Path;
use std::pin::{Pin, pin};
use std::time::Duration;
use tokio::time::timeout;

/// For an agent that was told to stop; then its program is ended.
const GRACE: Duration = Duration::from_millis(300);
/// Questions that are open at once; the hub takes no more of a turn.
const MOST_QUESTIONS: usize = 20;

/// Opens a session of an earlier process again, if the agent can and knows it still.
pub(super) async fn resume_session(connection: &Connection, session: &SessionId, folder: &Path) -> bool {
    let (abilities, id) = (&connection.abilities, session.clone());
    let opened = if abilities.session_capabilities.resume.is_some() {
        connection.request(ResumeSessionRequest::new(id, folder)).await.is_ok()
    } else if abilities.load_session {
        connection.request(LoadSessionRequest::new(id, folder)).await.is_ok()
    } else {
        false
    };
    if opened {
        connection.has_session(session, None);
    }
    opened
}

pub(super) async fn play(
    connection: &Connection,
    session: &SessionId,
    name: &str,
    words: String,
    stage: &RunIo,
) -> RunResult {
    let cost_before = connection.cost(session);
    let mut listener = connection.listen(session);
    let words = ContentBlock::Text(TextContent::new(words));
    // Whoever drops this turn in the middle wants the agent to stop, too.
    let unfinished = KillUnlessFinished(Some(connection));
    let mut answer = pin!(connection.begin(PromptRequest::new(session.clone(), vec![words])));
    let mut performance = PromptRun { stage, translation: AcpTranslator::default() };
    let outcome = tokio::select! {
        biased;
        () = stage.stopped() => Err(OutputClosed),
        outcome = performance.follow(&mut listener, answer.as_mut()) => outcome,
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(OutputClosed) => {
            connection.cancel(session);
            if !await_stop(&mut listener, answer.as_mut()).await {
                connection.forget(session);
                return RunResult::Stopped;
            }
            unfinished.settle();
            return RunResult::Stopped;
        }
    };
    unfinished.settle();
    let spent = outcome.as_ref().ok().and_then(|answer| spent(answer, cost_before, connection.cost(session)));
    let report = spent.map(|spent| RunEvent::Usage(UsageReport { spent: Some(spent), context: None }));
    for event in performance.translation.changes().into_iter().chain(report) {
        if stage.tell(event).await.is_err() {
            return RunResult::Stopped;
        }
    }
    match outcome.map(|answer| answer.stop_reason) {
        Ok(StopReason::EndTurn) => RunResult::Finished,
        Ok(StopReason::Cancelled) => RunResult::Stopped,
        Ok(StopReason::MaxTokens) => {
            RunResult::Failed("The answer grew longer than the model may write.".into())
        }
        Ok(StopReason::MaxTurnRequests) => {
            RunResult::Failed("The agent asked its model as often as it may in one turn.".into())
        }
        Ok(StopReason::Refusal) => RunResult::Failed("The model refuses to go on with this.".into()),
        Ok(_) => RunResult::Failed("The agent ended its turn for a reason that is not known here.".into()),
        Err(error) => failure(connection, name, &error).await,
    }
}

/// Ends the program when it is dropped before the prompt was answered.
struct KillUnlessFinished<'a>(Option<&'a Connection>);

impl KillUnlessFinished<'_> {
    fn settle(mut self) {
        self.0 = None;
    }
}

impl Drop for KillUnlessFinished<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            connection.kill();
        }
    }
}

/// Whether the agent has ended its turn by itself; what it still says is not heard.
async fn await_stop<A: Future>(listener: &mut Listener, mut answer: Pin<&mut A>) -> bool {
    let ended = async {
        loop {
            tokio::select! {
                _ = answer.as_mut() => return,
                heard = listener.heard.recv() => drop(heard),
            }
        }
    };
    timeout(GRACE, ended).await.is_ok()
}

struct PromptRun<'a> {
    stage: &'a RunIo,
    translation: AcpTranslator,
}

impl PromptRun<'_> {
    /// Until the agent answers the prompt.
    async fn follow(
        &mut self,
        listener: &mut Listener,
        mut answer: Pin<&mut impl Future<Output = Result<PromptResponse, Error>>>,
    ) -> Result<Result<PromptResponse, Error>, OutputClosed> {
        let mut questions = FuturesUnordered::new();
        let answer = loop {
            let heard = tokio::select! {
                biased;
                Some(asked) = questions.next() => {
                    asked?;
                    continue;
                }
                Some(heard) = listener.heard.recv() => heard,
                answer = answer.as_mut() => break answer,
            };
            if let Some((call, options, question)) = self.show(heard).await?
                && questions.len() < MOST_QUESTIONS
            {
                let (tool, input) = self.translation.question(call);
                questions.push(ask(self.stage, tool, input, options, question));
            }
        };
        // Whatever was told before the answer is here already; questions are called off with the turn.
        while let Ok(heard) = listener.heard.try_recv() {
            self.show(heard).await?;
        }
        Ok(answer)
    }

    async fn show(
        &mut self,
        heard: SessionEvent,
    ) -> Result<Option<(ToolCallUpdate, Vec<PermissionOption>, PendingPermission)>, OutputClosed> {
        match heard {
            SessionEvent::Update(update) => {
                for shown in self.translation.of(*update) {
                    match shown {
                        AcpOutput::Chunk(chunk) => self.stage.show(chunk).await?,
                        AcpOutput::Event(event) => self.stage.tell(event).await?,
                    }
                }
                Ok(None)
            }
            SessionEvent::Permission(asked) => {
                let (asked, question) = *asked;
                Ok(Some((asked.tool_call, asked.options, question)))
            }
        }
    }
}

async fn ask(
    stage: &RunIo,
    tool: String,
    input: String,
    options: Vec<PermissionOption>,
    question: PendingPermission,
) -> Result<(), OutputClosed> {
    let verdict = tools::may(stage, &tool, &input).await?;
    question.answer(chosen(&verdict, &options));
    Ok(())
}

/// What people decided holds for this once: rules about always are the hub's, where they can be seen and taken back.
fn chosen(verdict: &PermissionOutcome, options: &[PermissionOption]) -> RequestPermissionOutcome {
    let wanted = match verdict {
        PermissionOutcome::Allowed => PermissionOptionKind::AllowOnce,
        PermissionOutcome::Denied { .. } | PermissionOutcome::Expired => PermissionOptionKind::RejectOnce,
    };
    match options.iter().find(|option| option.kind == wanted) {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    }
}

/// Of this turn, if it said so. What a session has cost before it was taken up is not this turn's.
fn spent(answer: &PromptResponse, cost_before: Option<u64>, cost: Option<u64>) -> Option<Usage> {
    let cost = cost.zip(cost_before).map(|(now, before)| now.saturating_sub(before));
    let usage = match &answer.usage {
        Some(usage) => Usage {
            input_tokens: usage.input_tokens
                + usage.cached_read_tokens.unwrap_or(0)
                + usage.cached_write_tokens.unwrap_or(0),
            output_tokens: usage.output_tokens,
            cost,
        },
        None => Usage { cost: Some(cost.filter(|cost| *cost > 0)?), ..Usage::default() },
    };
    Some(usage)
}

pub(super) async fn failure(connection: &Connection, name: &str, error: &Error) -> RunResult {
    if error.code == ErrorCode::AUTH_REQUIRED {
        return RunResult::Failed(
            format!("{name} is not signed in on this machine. `parlor doctor` says how to do it.").into(),
        );
    }
    let lost = agent_client_protocol::is_incoming_transport_closed(error)
        || agent_client_protocol::is_connection_terminated(error);
    let why = if lost { connection.exit_reason().await } else { None };
    RunResult::Failed(why.unwrap_or_else(|| format!("{name} says: {}.", told(error)).into()))
}
