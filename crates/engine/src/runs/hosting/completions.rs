//! Completed replies: ends the run of a reply, and posts replies whose run has already ended.

use super::super::scheduler::PendingEnd;
use super::{Hosting, ReplyRef};
use crate::feed::{ReplyBuffer, ReplyLimits};
use parlor_model::command::PostLateReply;
use parlor_model::{
    AgentReply, Caller, Chunk, ConversationId, EntityKind, Origin, Refusal, Run, RunId, RunOutcome, RunState,
};
use std::sync::Arc;

/// A gateway's report that an agent has completed a reply.
pub struct RunCompletion {
    /// Full text as sent by the gateway; if it is only a prefix of the streamed chunks, the chunks win.
    pub text: Option<Arc<str>>,
    pub chunks: Vec<Chunk>,
    pub target: Option<Box<str>>,
    pub claimed_depth: u32,
    /// Names of agents that the gateway claims to be in the chain.
    pub claimed_chain: Vec<Box<str>>,
    /// Connection that published the reply.
    pub origin: Option<Box<Origin>>,
    /// Conversation that the reply belongs to according to the gateway.
    pub conversation: Option<ConversationId>,
    pub outcome: RunOutcome,
}

impl RunCompletion {
    fn into_pending_end(self) -> PendingEnd {
        let Self { text, chunks, target, claimed_depth, claimed_chain, origin, outcome, .. } = self;
        let plain = PendingEnd::plain(outcome);
        PendingEnd { text, chunks, target, claimed_depth, claimed_chain, origin, ..plain }
    }
}

impl Hosting {
    /// Ends a run with the completed reply of an agent.
    pub async fn complete_reply(
        &self,
        reply_ref: ReplyRef<'_>,
        finished: RunCompletion,
    ) -> Result<(), Refusal> {
        // A gateway that names the run cannot confuse it with another run.
        if reply_ref.run.is_none()
            && let Some(over) = self.find_abandoned_run(reply_ref, finished.conversation.as_ref()).await?
        {
            return self.complete_abandoned_run(reply_ref, finished, &over).await;
        }
        let run = match self.bind_or_open_run(reply_ref, true).await {
            Ok(Some((run, _))) => run,
            Ok(None) => {
                self.hub.scheduler().lock().stopped(reply_ref.agent, Some(reply_ref.context));
                self.hub.scheduler().wake_driver.notify_one();
                return self.complete_ended_run(reply_ref, finished).await;
            }
            Err(Refusal::Conflict { .. }) => {
                let posted = self.post_late_reply(reply_ref, finished, None).await;
                if matches!(posted, Err(Refusal::Conflict { .. })) {
                    self.fail_run_without_reply(reply_ref);
                }
                return posted;
            }
            Err(refusal) => return Err(refusal),
        };
        self.hub.scheduler().lock().end(&run, finished.into_pending_end());
        self.hub.scheduler().wake_driver.notify_one();
        Ok(())
    }

    /// Returns the run of this reply if it was cancelled or interrupted before it produced output.
    /// Third-party gateways name the conversation instead of the run, and an agent has one run per
    /// conversation.
    async fn find_abandoned_run(
        &self,
        reply_ref: ReplyRef<'_>,
        conversation: Option<&ConversationId>,
    ) -> Result<Option<Run>, Refusal> {
        let Some(conversation) = conversation.cloned() else { return Ok(None) };
        if self.hub.scheduler().lock().is_in(reply_ref.agent, &conversation) {
            return Ok(None);
        }
        let (agent, reply) = (reply_ref.agent.clone(), reply_ref.reply.clone());
        let context = reply_ref.context;
        let ended = self.hub.read_snapshot(move |_, store| match store.message(&reply)? {
            Some(_) => Ok(None),
            None => store.ended_turn(&agent, &conversation),
        });
        Ok(ended.await?.filter(|run| {
            let given_up =
                [RunOutcome::Cancelled, RunOutcome::Interrupted].map(RunState::Ended).contains(&run.state);
            given_up && run.place.is_in(context) && run.reply.is_none()
        }))
    }

    /// Handles the late reply of a run that ended before it produced output: it must not become the reply of
    /// the agent's next run. Chunks do not name their run, so any that were bound to the next run are
    /// unbound. The reply is stored in an unprompted run of its own.
    async fn complete_abandoned_run(
        &self,
        reply_ref: ReplyRef<'_>,
        finished: RunCompletion,
        over: &Run,
    ) -> Result<(), Refusal> {
        let ReplyRef { connection, agent, context, reply, .. } = reply_ref;
        let taken_for = {
            let mut scheduler = self.hub.scheduler().lock();
            scheduler.agent_on_connection(agent, connection).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.stopped(agent, Some(context));
            scheduler.run_bound_to(agent, reply)
        };
        self.hub.scheduler().wake_driver.notify_one();
        let streamed = taken_for.and_then(|run| self.hub.fanout().restart_reply(&run));
        let mut ending = finished.into_pending_end();
        match (streamed, &over.state) {
            (None, RunState::Ended(RunOutcome::Cancelled)) => return Ok(()),
            // Subscribers that have seen the beginning of the cancelled reply also see it end.
            (Some((text, chunks)), RunState::Ended(RunOutcome::Cancelled)) => {
                ending = PendingEnd { text: Some(text), chunks, ..PendingEnd::plain(RunOutcome::Cancelled) };
            }
            (Some((_, chunks)), _) if ending.chunks.is_empty() => ending.chunks = chunks,
            (Some(_) | None, _) => {}
        }
        let run = self.open_run(agent, context).await?;
        let mut scheduler = self.hub.scheduler().lock();
        scheduler.bind_reply(&run, reply);
        scheduler.end(&run, ending);
        drop(scheduler);
        self.hub.scheduler().wake_driver.notify_one();
        Ok(())
    }

    /// Fails the run whose reply came with the id of another message: the gateway will not send another
    /// reply.
    fn fail_run_without_reply(&self, reply_ref: ReplyRef<'_>) {
        let mut scheduler = self.hub.scheduler().lock();
        let here = scheduler.agent_on_connection(reply_ref.agent, reply_ref.connection).is_some();
        if let Some(run) = scheduler.run_without_reply(reply_ref.agent, reply_ref.context).filter(|_| here) {
            let reason = "the id of its reply belongs to another message";
            scheduler.end(&run, PendingEnd::plain(RunOutcome::Failed(reason.into())));
        }
        drop(scheduler);
        self.hub.scheduler().wake_driver.notify_one();
    }

    /// Posts a reply whose run has already ended. A repeated late reply is detected by its id and posted
    /// once. In a session it is dropped: the end of the run is recorded already.
    pub(super) async fn post_late_reply(
        &self,
        reply_ref: ReplyRef<'_>,
        finished: RunCompletion,
        run: Option<RunId>,
    ) -> Result<(), Refusal> {
        let Some(room) = reply_ref.context.room().cloned() else { return Ok(()) };
        let reply_buffer = self.buffer_of(&finished.chunks);
        let (text, chunks) = reply_buffer.finish(finished.text.as_deref());
        let said = AgentReply {
            message: Some(reply_ref.reply.clone()),
            text,
            chunks: drop_text_only_chunks(chunks),
            target: finished.target,
            claimed_depth: finished.claimed_depth,
            claimed_chain: finished.claimed_chain,
            origin: finished.origin,
        };
        let agent = reply_ref.agent.clone();
        self.hub.execute(&Caller::OPERATOR, PostLateReply { agent, room, said, run }).await
    }

    /// Collects chunks in a reply buffer, which merges adjacent text chunks. Chunks beyond the limits are
    /// dropped.
    pub(in crate::runs) fn buffer_of(&self, chunks: &[Chunk]) -> ReplyBuffer {
        let limits =
            ReplyLimits { chunks: self.hub.limits().reply_chunks, bytes: self.hub.limits().reply_bytes };
        let mut reply_buffer = ReplyBuffer::default();
        for chunk in chunks {
            if reply_buffer.push(chunk, limits).is_err() {
                break;
            }
        }
        reply_buffer
    }
}

/// Drops the chunks if they hold nothing but the reply text, which is stored separately.
pub(in crate::runs) fn drop_text_only_chunks(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let plain = |chunk: &Chunk| chunk.kind == parlor_model::ChunkKind::Text && chunk.metadata.is_none();
    if chunks.iter().all(plain) { Vec::new() } else { chunks }
}
