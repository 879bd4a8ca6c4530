//! Executes one prompt in one ACP session and forwards its output.
//!
//! Owns: a stop ends the prompt within `STOP_GRACE`, whatever the agent does; every permission request is
//! answered or cancelled.

use super::connection::{Connection, Listener, PendingPermission, SessionEvent, error_text};
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

/// Time for an agent to end a cancelled prompt before its program is killed.
const STOP_GRACE: Duration = Duration::from_millis(300);
/// Maximum number of open permission requests, which is the hub's limit per run. Further requests are
/// cancelled.
const MAX_OPEN_REQUESTS: usize = 20;

/// Reopens a session of an earlier process. Returns `false` if the agent does not support this or lost the
/// session.
pub(super) async fn resume_session(connection: &Connection, session: &SessionId, folder: &Path) -> bool {
    let (capabilities, id) = (&connection.capabilities, session.clone());
    let opened = if capabilities.session_capabilities.resume.is_some() {
        connection.request(ResumeSessionRequest::new(id, folder)).await.is_ok()
    } else if capabilities.load_session {
        connection.request(LoadSessionRequest::new(id, folder)).await.is_ok()
    } else {
        false
    };
    if opened {
        connection.add_session(session, None);
    }
    opened
}

pub(super) async fn execute_prompt(
    connection: &Connection,
    session: &SessionId,
    name: &str,
    prompt: String,
    run_io: &RunIo,
) -> RunResult {
    let cost_before = connection.cost(session);
    let mut listener = connection.listen(session);
    let prompt = ContentBlock::Text(TextContent::new(prompt));
    // If the caller drops this future before the prompt is answered, the agent must stop too.
    let kill_guard = KillUnlessFinished(Some(connection));
    let mut answer =
        pin!(connection.request_without_timeout(PromptRequest::new(session.clone(), vec![prompt])));
    let mut prompt_run = PromptRun { run_io, translator: AcpTranslator::default() };
    let outcome = tokio::select! {
        biased;
        () = run_io.stopped() => Err(OutputClosed),
        outcome = prompt_run.follow(&mut listener, answer.as_mut()) => outcome,
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(OutputClosed) => {
            connection.cancel(session);
            if !await_stop(&mut listener, answer.as_mut()).await {
                connection.forget(session);
                return RunResult::Stopped;
            }
            kill_guard.disarm();
            return RunResult::Stopped;
        }
    };
    kill_guard.disarm();
    let usage = outcome.as_ref().ok().and_then(|answer| usage(answer, cost_before, connection.cost(session)));
    let report = usage.map(|usage| RunEvent::Usage(UsageReport { spent: Some(usage), context: None }));
    for event in prompt_run.translator.changes().into_iter().chain(report) {
        if run_io.send_event(event).await.is_err() {
            return RunResult::Stopped;
        }
    }
    match outcome.map(|answer| answer.stop_reason) {
        Ok(StopReason::EndTurn) => RunResult::Finished,
        Ok(StopReason::Cancelled) => RunResult::Stopped,
        Ok(StopReason::MaxTokens) => {
            RunResult::Failed("The answer reached the maximum length of the model.".into())
        }
        Ok(StopReason::MaxTurnRequests) => {
            RunResult::Failed("The agent reached the maximum number of model requests for one turn.".into())
        }
        Ok(StopReason::Refusal) => RunResult::Failed("The model refused to continue.".into()),
        Ok(_) => RunResult::Failed("The agent ended its turn for an unknown reason.".into()),
        Err(error) => failure(connection, name, &error).await,
    }
}

/// Kills the program when dropped, unless it was disarmed because the prompt has ended.
struct KillUnlessFinished<'a>(Option<&'a Connection>);

impl KillUnlessFinished<'_> {
    fn disarm(mut self) {
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

/// Waits for the agent to end a cancelled prompt, and discards its output. Returns `false` after the grace
/// period.
async fn await_stop<A: Future>(listener: &mut Listener, mut answer: Pin<&mut A>) -> bool {
    let ended = async {
        loop {
            tokio::select! {
                _ = answer.as_mut() => return,
                event = listener.events.recv() => drop(event),
            }
        }
    };
    timeout(STOP_GRACE, ended).await.is_ok()
}

struct PromptRun<'a> {
    run_io: &'a RunIo,
    translator: AcpTranslator,
}

impl PromptRun<'_> {
    /// Forwards output and permission requests until the agent answers the prompt.
    async fn follow(
        &mut self,
        listener: &mut Listener,
        mut answer: Pin<&mut impl Future<Output = Result<PromptResponse, Error>>>,
    ) -> Result<Result<PromptResponse, Error>, OutputClosed> {
        let mut requests = FuturesUnordered::new();
        let answer = loop {
            let event = tokio::select! {
                biased;
                Some(answered) = requests.next() => {
                    answered?;
                    continue;
                }
                Some(event) = listener.events.recv() => event,
                answer = answer.as_mut() => break answer,
            };
            if let Some((call, options, pending)) = self.forward(event).await?
                && requests.len() < MAX_OPEN_REQUESTS
            {
                let (tool, input) = self.translator.permission_request(call);
                requests.push(request_permission(self.run_io, tool, input, options, pending));
            }
        };
        // All events sent before the answer are already queued. Open permission requests are dropped, which
        // cancels them.
        while let Ok(event) = listener.events.try_recv() {
            self.forward(event).await?;
        }
        Ok(answer)
    }

    /// Sends the output for an event; returns a permission request, which the caller has to answer.
    async fn forward(
        &mut self,
        event: SessionEvent,
    ) -> Result<Option<(ToolCallUpdate, Vec<PermissionOption>, PendingPermission)>, OutputClosed> {
        match event {
            SessionEvent::Update(update) => {
                for output in self.translator.translate(*update) {
                    match output {
                        AcpOutput::Chunk(chunk) => self.run_io.send_chunk(chunk).await?,
                        AcpOutput::Event(event) => self.run_io.send_event(event).await?,
                    }
                }
                Ok(None)
            }
            SessionEvent::Permission(permission) => {
                let (request, pending) = *permission;
                Ok(Some((request.tool_call, request.options, pending)))
            }
        }
    }
}

async fn request_permission(
    run_io: &RunIo,
    tool: String,
    input: String,
    options: Vec<PermissionOption>,
    pending: PendingPermission,
) -> Result<(), OutputClosed> {
    let outcome = tools::request_permission(run_io, &tool, &input).await?;
    pending.answer(selected_option(&outcome, &options));
    Ok(())
}

/// Maps a decision to the agent's options for a single call. The options for permanent permissions are
/// never chosen: approval rules belong to the hub, where users can see and revoke them.
fn selected_option(outcome: &PermissionOutcome, options: &[PermissionOption]) -> RequestPermissionOutcome {
    let kind = match outcome {
        PermissionOutcome::Allowed => PermissionOptionKind::AllowOnce,
        PermissionOutcome::Denied { .. } | PermissionOutcome::Expired => PermissionOptionKind::RejectOnce,
    };
    match options.iter().find(|option| option.kind == kind) {
        Some(option) => {
            RequestPermissionOutcome::Selected(SelectedPermissionOutcome::new(option.option_id.clone()))
        }
        None => RequestPermissionOutcome::Cancelled,
    }
}

/// Usage of this run, if the agent reported it. The cost is the difference to the session's cost before the
/// run.
fn usage(answer: &PromptResponse, cost_before: Option<u64>, cost: Option<u64>) -> Option<Usage> {
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
            format!("{name} is not signed in on this machine. Run `parlor doctor` to see how to sign in.")
                .into(),
        );
    }
    let lost = agent_client_protocol::is_incoming_transport_closed(error)
        || agent_client_protocol::is_connection_terminated(error);
    let reason = if lost { connection.exit_reason().await } else { None };
    RunResult::Failed(
        reason.unwrap_or_else(|| format!("{name} reports an error: {}.", error_text(error)).into()),
    )
}
