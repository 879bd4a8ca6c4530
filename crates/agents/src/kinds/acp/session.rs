//! One prompt in one session, from its first word to its end.
//!
//! Owns: that a stop ends it soon, whatever the agent does; that a question is answered, or called off.

use super::connection::{Connection, Heard, Listener, Question, told};
use super::translate::{Shown, Translation};
use crate::kinds::tools;
use crate::turn::{Deserted, Ending, Stage};
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
pub(super) async fn take_up(connection: &Connection, session: &SessionId, folder: &Path) -> bool {
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
    stage: &Stage,
) -> Ending {
    let cost_before = connection.cost(session);
    let mut listener = connection.listen(session);
    let words = ContentBlock::Text(TextContent::new(words));
    // Whoever drops this turn in the middle wants the agent to stop, too.
    let unfinished = Unfinished(Some(connection));
    let mut answer = pin!(connection.begin(PromptRequest::new(session.clone(), vec![words])));
    let mut performance = Performance { stage, translation: Translation::default() };
    let outcome = tokio::select! {
        biased;
        () = stage.stopped() => Err(Deserted),
        outcome = performance.follow(&mut listener, answer.as_mut()) => outcome,
    };
    let outcome = match outcome {
        Ok(outcome) => outcome,
        Err(Deserted) => {
            connection.cancel(session);
            if !wind_up(&mut listener, answer.as_mut()).await {
                connection.forget(session);
                return Ending::Stopped;
            }
            unfinished.settle();
            return Ending::Stopped;
        }
    };
    unfinished.settle();
    let spent = outcome.as_ref().ok().and_then(|answer| spent(answer, cost_before, connection.cost(session)));
    let report = spent.map(|spent| RunEvent::Usage(UsageReport { spent: Some(spent), context: None }));
    for event in performance.translation.changes().into_iter().chain(report) {
        if stage.tell(event).await.is_err() {
            return Ending::Stopped;
        }
    }
    match outcome.map(|answer| answer.stop_reason) {
        Ok(StopReason::EndTurn) => Ending::Finished,
        Ok(StopReason::Cancelled) => Ending::Stopped,
        Ok(StopReason::MaxTokens) => {
            Ending::Failed("The answer grew longer than the model may write.".into())
        }
        Ok(StopReason::MaxTurnRequests) => {
            Ending::Failed("The agent asked its model as often as it may in one turn.".into())
        }
        Ok(StopReason::Refusal) => Ending::Failed("The model refuses to go on with this.".into()),
        Ok(_) => Ending::Failed("The agent ended its turn for a reason that is not known here.".into()),
        Err(error) => failure(connection, name, &error).await,
    }
}

/// Ends the program when it is dropped before the prompt was answered.
struct Unfinished<'a>(Option<&'a Connection>);

impl Unfinished<'_> {
    fn settle(mut self) {
        self.0 = None;
    }
}

impl Drop for Unfinished<'_> {
    fn drop(&mut self) {
        if let Some(connection) = self.0 {
            connection.kill();
        }
    }
}

/// Whether the agent has ended its turn by itself; what it still says is not heard.
async fn wind_up<A: Future>(listener: &mut Listener, mut answer: Pin<&mut A>) -> bool {
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

struct Performance<'a> {
    stage: &'a Stage,
    translation: Translation,
}

impl Performance<'_> {
    /// Until the agent answers the prompt.
    async fn follow(
        &mut self,
        listener: &mut Listener,
        mut answer: Pin<&mut impl Future<Output = Result<PromptResponse, Error>>>,
    ) -> Result<Result<PromptResponse, Error>, Deserted> {
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
        heard: Heard,
    ) -> Result<Option<(ToolCallUpdate, Vec<PermissionOption>, Question)>, Deserted> {
        match heard {
            Heard::Update(update) => {
                for shown in self.translation.of(*update) {
                    match shown {
                        Shown::Chunk(chunk) => self.stage.show(chunk).await?,
                        Shown::Event(event) => self.stage.tell(event).await?,
                    }
                }
                Ok(None)
            }
            Heard::Permission(asked) => {
                let (asked, question) = *asked;
                Ok(Some((asked.tool_call, asked.options, question)))
            }
        }
    }
}

async fn ask(
    stage: &Stage,
    tool: String,
    input: String,
    options: Vec<PermissionOption>,
    question: Question,
) -> Result<(), Deserted> {
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

pub(super) async fn failure(connection: &Connection, name: &str, error: &Error) -> Ending {
    if error.code == ErrorCode::AUTH_REQUIRED {
        return Ending::Failed(
            format!("{name} is not signed in on this machine. `parlor doctor` says how to do it.").into(),
        );
    }
    let lost = agent_client_protocol::is_incoming_transport_closed(error)
        || agent_client_protocol::is_connection_terminated(error);
    let why = if lost { connection.obituary().await } else { None };
    Ending::Failed(why.unwrap_or_else(|| format!("{name} says: {}.", told(error)).into()))
}
