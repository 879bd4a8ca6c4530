//! Output of an agent as chunks, completion or failure of its run.

use super::agents::{AgentFrame, OutputResult};
use parlor_engine::runs::{Hosting, ReplyRef, RunCompletion};
use parlor_model::{AgentId, Chunk, ChunkKind, MessageId, Refusal, RunId, RunOutcome};

/// Effect of output on the run of its reply.
pub enum Applied {
    Streaming(RunId),
    /// The reply is complete; the hub is storing the end of the run.
    Ending(RunId),
    /// The run has ended, or the reply is already stored.
    Over(OutputResult),
}

/// Applies output. `run` is the run of the reply; with `None` the reply is bound to the active run, or to a new
/// unprompted run.
pub async fn apply(
    hosting: &Hosting,
    reply_ref: ReplyRef<'_>,
    connection: &str,
    run: Option<&RunId>,
    frame: AgentFrame,
) -> Result<Applied, Refusal> {
    let run = match run {
        Some(run) => run.clone(),
        None => match bind(hosting, reply_ref, connection, &frame).await {
            Ok(Some(run)) => run,
            Ok(None) => return Ok(Applied::Over(Ok(None))),
            Err(Refusal::Conflict { first }) => {
                let AgentFrame::Complete { text, .. } = &frame else {
                    return Err(Refusal::Conflict { first });
                };
                return Ok(Applied::Over(stored(hosting, reply_ref.agent, reply_ref.reply, text).await));
            }
            Err(refusal) => return Err(refusal),
        },
    };
    let plain = |outcome| RunCompletion {
        text: None,
        chunks: Vec::new(),
        target: None,
        claimed_depth: 0,
        claimed_chain: Vec::new(),
        origin: None,
        conversation: None,
        outcome,
    };
    let finished = match frame {
        AgentFrame::Typing => return Ok(Applied::Streaming(run)),
        AgentFrame::Chunk(content) => {
            let chunk = Chunk { kind: ChunkKind::Text, content, metadata: None };
            hosting.publish_chunk(reply_ref, &chunk).await?;
            return Ok(Applied::Streaming(run));
        }
        AgentFrame::Complete { text, claimed_depth, claimed_chain, origin } => RunCompletion {
            text: Some(text),
            claimed_depth,
            claimed_chain,
            origin: Some(origin),
            ..plain(RunOutcome::Complete)
        },
        AgentFrame::Failed { reason, origin } => RunCompletion {
            origin: Some(origin),
            ..plain(RunOutcome::Failed(reason.chars().take(MAX_REASON_CHARS).collect::<String>().into()))
        },
        AgentFrame::Unanswered => plain(RunOutcome::Failed("the agent did not answer".into())),
    };
    hosting.complete_reply(reply_ref, finished).await?;
    Ok(Applied::Ending(run))
}

/// Binds a reply to its run. A reply that is complete at once has no start signal.
async fn bind(
    hosting: &Hosting,
    reply_ref: ReplyRef<'_>,
    connection: &str,
    frame: &AgentFrame,
) -> Result<Option<RunId>, Refusal> {
    match frame {
        AgentFrame::Complete { .. } | AgentFrame::Unanswered => hosting.bind_reply(reply_ref).await,
        AgentFrame::Typing | AgentFrame::Chunk(_) | AgentFrame::Failed { .. } => {
            hosting.begin_reply(reply_ref, Some(connection)).await
        }
    }
}

/// Maximum length of the reason of a failure.
const MAX_REASON_CHARS: usize = 1000;

/// Position of the message with the reply of a run that has ended.
pub async fn position(hosting: &Hosting, run: &RunId) -> OutputResult {
    let message = hosting.reply_of(run).await?;
    Ok(message.map(|message| hosting.position_of(&message)))
}

/// Position of the stored reply that the agent publishes again; a refusal, if the id belongs to another message.
pub async fn stored(hosting: &Hosting, agent: &AgentId, reply: &MessageId, text: &str) -> OutputResult {
    match hosting.message_of(agent, reply).await? {
        Some(message) if *message.text == *text => Ok(Some(hosting.position_of(&message))),
        Some(_) | None => Err(Refusal::Conflict { first: reply.clone() }),
    }
}
