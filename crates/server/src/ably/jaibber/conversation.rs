//! Replies of the agents of a connection, by agent and room: the streaming reply, and the waiting replies.
//!
//! A client receives the message that starts a run before the run is started, and it may begin a second reply before
//! the first one has ended. Output that has no run yet is kept until its run starts; output of a reply that was
//! stopped or has ended is dropped.

use super::agents::{AgentFrame, Output, OutputResult};
use super::replies::{self, Applied};
use parlor_engine::runs::{GatewayConnectionId, Hosting, ReplyRef, ReplySlot};
use parlor_model::{AgentId, MessageId, Refusal, RoomId, Run, RunContext, RunId};
use std::collections::{HashMap, VecDeque};
use std::time::{Duration, Instant};
use tokio::sync::oneshot;

/// Maximum number of frames, and of bytes of text, that wait for their runs in one room.
const MAX_FRAMES: usize = 512;
const MAX_BYTES: usize = 1024 * 1024;
/// Maximum time for which a client waits for the acknowledgement of a complete reply whose run has not started.
const MAX_WAIT: Duration = Duration::from_secs(5);
/// Time within which a client begins the reply of a run.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(60);
/// Number of ended replies whose later output is recognised.
const ENDED_REPLIES: usize = 64;

#[derive(Default)]
pub struct Conversations {
    by_room: HashMap<(AgentId, RoomId), Conversation>,
    /// Id of the connection, for the frames of its replies.
    pub connection_name: Box<str>,
}

/// Replies of one agent in one room.
#[derive(Default)]
struct Conversation {
    current: Option<Current>,
    waiting: VecDeque<Waiting>,
    ended: VecDeque<MessageId>,
    /// Started run without a reply, and the time at which it fails.
    unanswered: Option<(RunId, Instant)>,
    /// Whether a user has stopped the agent before its client began the reply: the next reply is dropped.
    is_stopped: bool,
}

/// The reply of the active run.
struct Current {
    reply: MessageId,
    run: Option<RunId>,
    /// Senders of the result of a complete reply, which is known when the end of the run is stored.
    ending: Vec<oneshot::Sender<OutputResult>>,
    is_ending: bool,
}

/// A reply whose run has not started.
struct Waiting {
    reply: MessageId,
    frames: Vec<AgentFrame>,
    /// Sender of the result of the complete reply, and the time at which the client is answered without it.
    done: Option<(oneshot::Sender<OutputResult>, Instant)>,
    /// Whether the agent had a queued run in the room. If it has none any more, that run was cancelled.
    has_queued_run: bool,
}

impl Conversations {
    pub fn has_waiting(&self) -> bool {
        let waits = |conversation: &Conversation| {
            !conversation.waiting.is_empty() || conversation.unanswered.is_some()
        };
        self.by_room.values().any(waits)
    }

    pub async fn output(&mut self, hosting: &Hosting, connection: GatewayConnectionId, output: Output) {
        let Output { room, agent, reply, frame, done } = output;
        let key = (agent, room);
        let conversation = self.by_room.entry(key.clone()).or_default();
        if conversation.ended.contains(&reply) {
            let _ = done.send(repeated(hosting, &key.0, &reply, &frame).await);
            return;
        }
        let context = Context::of(hosting, connection, &key, &self.connection_name);
        let current = conversation.current.as_ref().map(|current| current.reply == reply);
        match current {
            Some(true) => conversation.apply(&context, frame, done).await,
            None if conversation.waiting.is_empty() => match context.slot(&reply).await {
                Ok(ReplySlot::Queued) => conversation.wait(reply, frame, done, true),
                Ok(ReplySlot::Ended) => conversation.drop_reply(reply, done),
                Ok(ReplySlot::Refused) => drop(done.send(Err(Refusal::Forbidden))),
                Ok(ReplySlot::Vacant) if std::mem::take(&mut conversation.is_stopped) => {
                    conversation.drop_reply(reply, done);
                }
                Ok(ReplySlot::Bound | ReplySlot::Free | ReplySlot::Vacant) => {
                    conversation.current = Some(Current::of(reply));
                    conversation.apply(&context, frame, done).await;
                }
                Err(refusal) => drop(done.send(Err(refusal))),
            },
            _ => {
                let is_queued = matches!(context.slot(&reply).await, Ok(ReplySlot::Queued));
                conversation.wait(reply, frame, done, is_queued);
            }
        }
    }

    /// A run of the agent has started in the room.
    pub async fn started(&mut self, hosting: &Hosting, connection: GatewayConnectionId, run: &Run) {
        // This gateway gets no runs in sessions.
        let Some(room) = run.room() else { return };
        let key = (run.agent.clone(), room.clone());
        let conversation = self.by_room.entry(key.clone()).or_default();
        conversation.is_stopped = false;
        conversation.unanswered = Some((run.id.clone(), Instant::now() + ANSWER_TIMEOUT));
        let context = Context::of(hosting, connection, &key, &self.connection_name);
        conversation.next(&context).await;
    }

    /// The end of a run is stored.
    pub async fn ended(
        &mut self,
        hosting: &Hosting,
        connection: GatewayConnectionId,
        agent: AgentId,
        room: RoomId,
        run: &RunId,
    ) {
        let key = (agent, room);
        let Some(conversation) = self.by_room.get_mut(&key) else { return };
        conversation.unanswered.take_if(|(unanswered, _)| unanswered == run);
        if conversation.current.as_ref().is_some_and(|current| current.run.as_ref() == Some(run)) {
            conversation.end_current(replies::position(hosting, run).await);
        }
        let context = Context::of(hosting, connection, &key, &self.connection_name);
        conversation.next(&context).await;
    }

    /// A user has stopped the agent in the room.
    pub fn stop(&mut self, agent: AgentId, room: RoomId) {
        let conversation = self.by_room.entry((agent, room)).or_default();
        conversation.is_stopped = conversation.current.is_none();
        conversation.end_current(Ok(None));
        for waiting in std::mem::take(&mut conversation.waiting) {
            conversation.drop_waiting(waiting);
        }
    }

    pub async fn recheck(&mut self, hosting: &Hosting, connection: GatewayConnectionId) {
        for (key, conversation) in &mut self.by_room {
            conversation.release();
            let context = Context::of(hosting, connection, key, &self.connection_name);
            conversation.give_up(&context).await;
            conversation.next(&context).await;
        }
    }
}

/// Result of output for a reply that has ended. A repeated complete reply has the position of the stored message.
async fn repeated(hosting: &Hosting, agent: &AgentId, reply: &MessageId, frame: &AgentFrame) -> OutputResult {
    match frame {
        AgentFrame::Complete { text, .. } => match replies::stored(hosting, agent, reply, text).await {
            // The reply was stopped before it was complete.
            Err(Refusal::Conflict { .. }) => Ok(None),
            result => result,
        },
        AgentFrame::Typing | AgentFrame::Chunk(_) | AgentFrame::Failed { .. } | AgentFrame::Unanswered => {
            Ok(None)
        }
    }
}

/// An agent in a room, with its connection.
struct Context<'a> {
    hosting: &'a Hosting,
    connection: GatewayConnectionId,
    key: &'a (AgentId, RoomId),
    run_context: RunContext,
    name: &'a str,
}

impl<'a> Context<'a> {
    fn of(
        hosting: &'a Hosting,
        connection: GatewayConnectionId,
        key: &'a (AgentId, RoomId),
        name: &'a str,
    ) -> Self {
        Self { hosting, connection, key, run_context: RunContext::Room(key.1.clone()), name }
    }

    fn reply_ref<'r>(&'r self, reply: &'r MessageId) -> ReplyRef<'r> {
        let (connection, agent, context) = (self.connection, &self.key.0, &self.run_context);
        ReplyRef { connection, agent, context, reply, run: None }
    }

    async fn slot(&self, reply: &MessageId) -> Result<ReplySlot, Refusal> {
        self.hosting.reply_slot(self.reply_ref(reply)).await
    }
}

impl Current {
    fn of(reply: MessageId) -> Self {
        Self { reply, run: None, ending: Vec::new(), is_ending: false }
    }
}

impl Conversation {
    /// Applies output to the current reply.
    async fn apply(&mut self, context: &Context<'_>, frame: AgentFrame, done: oneshot::Sender<OutputResult>) {
        let Some(current) = &mut self.current else { return };
        if current.is_ending {
            // The complete reply is being stored.
            match frame {
                AgentFrame::Complete { .. } => current.ending.push(done),
                _ => drop(done.send(Ok(None))),
            }
            return;
        }
        let reply = current.reply.clone();
        let reply_ref = context.reply_ref(&reply);
        match replies::apply(context.hosting, reply_ref, context.name, current.run.as_ref(), frame).await {
            Ok(Applied::Streaming(run)) => {
                self.unanswered.take_if(|(unanswered, _)| *unanswered == run);
                current.run = Some(run);
                let _ = done.send(Ok(None));
            }
            Ok(Applied::Ending(run)) => {
                self.unanswered.take_if(|(unanswered, _)| *unanswered == run);
                (current.run, current.is_ending) = (Some(run), true);
                current.ending.push(done);
            }
            Ok(Applied::Over(result)) => {
                let _ = done.send(result);
                self.end_current(Ok(None));
            }
            Err(refusal) => {
                let is_transient = matches!(refusal, Refusal::Unavailable);
                let _ = done.send(Err(refusal));
                if !is_transient {
                    self.end_current(Ok(None));
                }
            }
        }
    }

    fn wait(
        &mut self,
        reply: MessageId,
        frame: AgentFrame,
        done: oneshot::Sender<OutputResult>,
        is_queued: bool,
    ) {
        let frames = self.waiting.iter().flat_map(|waiting| &waiting.frames);
        let bytes: usize = frames.clone().map(AgentFrame::length).sum();
        if frames.count() >= MAX_FRAMES || bytes + frame.length() > MAX_BYTES {
            let _ = done.send(Err(Refusal::AtCapacity));
            return;
        }
        // Acknowledgements are sent in order, so a long wait would delay those of the client's other replies.
        let mut kept = None;
        match frame {
            AgentFrame::Complete { .. } if self.current.is_none() => {
                kept = Some((done, Instant::now() + MAX_WAIT));
            }
            _ => drop(done.send(Ok(None))),
        }
        match self.waiting.iter_mut().find(|waiting| waiting.reply == reply) {
            Some(waiting) => {
                waiting.frames.push(frame);
                waiting.done = waiting.done.take().or(kept);
            }
            None => self.waiting.push_back(Waiting {
                reply,
                frames: vec![frame],
                done: kept,
                has_queued_run: is_queued,
            }),
        }
    }

    /// Applies the output of the next reply, if its run has started or it needs none.
    async fn next(&mut self, context: &Context<'_>) {
        while self.current.is_none()
            && let Some(reply) = self.waiting.front().map(|waiting| waiting.reply.clone())
        {
            let slot = context.slot(&reply).await;
            let Some(mut waiting) = self.waiting.pop_front() else { return };
            match slot {
                Ok(ReplySlot::Bound | ReplySlot::Free) => {}
                Ok(ReplySlot::Vacant) if !waiting.has_queued_run => {}
                Ok(ReplySlot::Queued) | Err(Refusal::Unavailable) => {
                    waiting.has_queued_run |= slot.is_ok();
                    self.waiting.push_front(waiting);
                    return;
                }
                Ok(ReplySlot::Vacant | ReplySlot::Ended | ReplySlot::Refused) | Err(_) => {
                    self.drop_waiting(waiting);
                    continue;
                }
            }
            self.current = Some(Current::of(reply));
            let mut done = waiting.done;
            for frame in waiting.frames {
                let receiver = match frame {
                    AgentFrame::Complete { .. } => done.take().map(|(done, _)| done),
                    _ => None,
                };
                self.apply(context, frame, receiver.unwrap_or_else(|| oneshot::channel().0)).await;
            }
        }
    }

    fn end_current(&mut self, result: OutputResult) {
        let Some(current) = self.current.take() else { return };
        for done in current.ending {
            let _ = done.send(result.clone());
        }
        self.remember(current.reply);
    }

    fn drop_reply(&mut self, reply: MessageId, done: oneshot::Sender<OutputResult>) {
        let _ = done.send(Ok(None));
        self.remember(reply);
    }

    fn drop_waiting(&mut self, waiting: Waiting) {
        if let Some((done, _)) = waiting.done {
            let _ = done.send(Ok(None));
        }
        self.remember(waiting.reply);
    }

    /// Ends a run that the client has not answered in time. The client may ignore a message by its own rules.
    async fn give_up(&mut self, context: &Context<'_>) {
        let due = self.unanswered.take_if(|(_, until)| *until <= Instant::now());
        let (Some((run, _)), None) = (due, &self.current) else { return };
        let Ok(reply) = MessageId::parse(run.as_str()) else { return };
        let frame = AgentFrame::Unanswered;
        let reply_ref = ReplyRef { run: Some(&run), ..context.reply_ref(&reply) };
        // Fails without effect if the run has already ended.
        let _ = replies::apply(context.hosting, reply_ref, context.name, Some(&run), frame).await;
    }

    /// Answers clients that have waited for the start of a run longer than [`MAX_WAIT`].
    fn release(&mut self) {
        let now = Instant::now();
        for waiting in &mut self.waiting {
            if let Some((done, _)) = waiting.done.take_if(|(_, until)| *until <= now) {
                let _ = done.send(Ok(None));
            }
        }
    }

    fn remember(&mut self, reply: MessageId) {
        if self.ended.len() == ENDED_REPLIES {
            self.ended.pop_front();
        }
        self.ended.push_back(reply);
    }
}
