//! Merged replies: the new text of each streaming reply is published as one signal per interval, for subscribers with
//! `Kinds::MERGED_REPLIES`.
//!
//! Owns: these subscribers receive the start of a reply, then its text in order, then its message or its failure.
//! All subscribers share a signal, which is encoded once for many chunks. Rooms without such subscribers have no
//! unpublished text. The fan-out flushes the rest of the text before the message is stored.

use super::Kinds;
use super::fanout::{Fanout, FanoutState};
use super::reply_buffer::{ReplyBuffer, ReplyOffset};
use super::reply_text::StreamingReply;
use crate::hub::WeakHub;
use parlor_model::{
    ChunkKind, MessageId, ReplyPart, RoomId, Run, RunId, RunOutcome, RunState, Signal, UserId,
};
use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// Interval at which the new text of a reply is published.
const MERGE_INTERVAL: Duration = Duration::from_millis(200);
/// Maximum bytes of text in one signal.
const MAX_TEXT_BYTES: usize = 32 * 1024;

/// Publication state of one reply; a field of the reply, under the reply's lock.
#[derive(Default)]
pub struct MergedReply {
    begun: Option<Begun>,
    /// End of the published text.
    sent: ReplyOffset,
    /// Whether the reply waits for the end of its interval.
    is_due: bool,
}

/// A started reply, with the fields of [`Signal::Reply`].
#[derive(Debug, Clone)]
pub struct Begun {
    /// Room of the run. Replies without a room are not merged.
    pub room: RoomId,
    pub message: MessageId,
    pub agent_name: Box<str>,
    pub owner: UserId,
    pub connection: Option<Box<str>>,
}

/// Replies with unpublished text, in the order in which their intervals end.
#[derive(Default)]
pub struct Merging {
    due: VecDeque<(Instant, Arc<StreamingReply>)>,
    /// Failures of runs that are published after the messages of the same commit.
    failures: Vec<(RoomId, Signal)>,
}

impl StreamingReply {
    fn signal(&self, begun: Begun, part: ReplyPart) -> Signal {
        let Begun { message, agent_name, owner, connection, room } = begun;
        let agent = self.agent.clone();
        Signal::Reply { room, agent, agent_name, owner, connection, message, part }
    }

    /// The published part of the reply, for a late joiner, which receives the rest with the next interval.
    pub(super) fn merged_so_far(&self) -> Vec<Signal> {
        let state = self.state.lock();
        let Some(begun) = &state.merged.begun else { return Vec::new() };
        let texts = texts(&state.reply_buffer, ReplyOffset::default(), state.merged.sent);
        let parts = std::iter::once(ReplyPart::Started).chain(texts.map(ReplyPart::Text));
        parts.map(|part| self.signal(begun.clone(), part)).collect()
    }
}

/// The text between two offsets, without thinking and tool calls, in pieces of limited size.
fn texts(
    buffer: &ReplyBuffer,
    mut from: ReplyOffset,
    to: ReplyOffset,
) -> impl Iterator<Item = Arc<str>> + use<> {
    let mut texts = Vec::new();
    while let Some((chunk, reached)) = buffer.next(from, to, MAX_TEXT_BYTES) {
        from = reached;
        if chunk.kind == ChunkKind::Text {
            texts.push(chunk.content);
        }
    }
    texts.into_iter()
}

impl Fanout {
    /// Publishes the start of a run's reply. Does nothing if the run has ended or its reply has begun.
    pub fn begin_reply(&self, run: &RunId, begun: Begun) {
        let state = &mut *self.state.lock();
        let Some(reply) = state.replies.of(run).cloned() else { return };
        {
            let mut inner = reply.state.lock();
            if inner.merged.begun.is_some() {
                return;
            }
            inner.merged.begun = Some(begun.clone());
        }
        let signal = reply.signal(begun, ReplyPart::Started);
        self.publish_signals(state, &reply.place, &[signal]);
    }

    /// Publishes the new text of a reply at the end of its interval.
    pub(super) fn merge_later(&self, state: &mut FanoutState, reply: &Arc<StreamingReply>) {
        let mut has_subscribers = false;
        state.each_viewer(reply.place.scope(), |subscriber| {
            has_subscribers |= subscriber.kinds.includes(Kinds::MERGED_REPLIES);
        });
        let mut inner = reply.state.lock();
        if !has_subscribers || inner.merged.begun.is_none() {
            // A later subscriber receives the text so far when it subscribes.
            inner.merged.sent = inner.reply_buffer.end();
            return;
        }
        if !std::mem::replace(&mut inner.merged.is_due, true) {
            state.merging.due.push_back((Instant::now() + MERGE_INTERVAL, reply.clone()));
            self.merges.notify_one();
        }
    }

    /// Publishes the unpublished text of a reply.
    pub(super) fn flush_reply(&self, state: &mut FanoutState, reply: &Arc<StreamingReply>) {
        let signals: Vec<Signal> = {
            let mut inner = reply.state.lock();
            let Some(begun) = inner.merged.begun.clone() else { return };
            let (from, to) = (inner.merged.sent, inner.reply_buffer.end());
            inner.merged.sent = to;
            inner.merged.is_due = false;
            let texts = texts(&inner.reply_buffer, from, to);
            texts.map(|text| reply.signal(begun.clone(), ReplyPart::Text(text))).collect()
        };
        self.publish_signals(state, &reply.place, &signals);
    }

    /// Flushes the reply of a run that has ended, and keeps its failure until the messages of the commit are
    /// published.
    pub(super) fn end_merged_reply(&self, state: &mut FanoutState, run: &Run) {
        let Some(reply) = state.replies.of(&run.id).cloned() else { return };
        self.flush_reply(state, &reply);
        let reason: Box<str> = match &run.state {
            RunState::Ended(RunOutcome::Failed(reason)) => reason.clone(),
            RunState::Ended(RunOutcome::Cancelled) if run.reply.is_none() => "stopped".into(),
            RunState::Ended(RunOutcome::Interrupted) if run.reply.is_none() => "interrupted".into(),
            RunState::Queued | RunState::Running | RunState::Ended(_) => return,
        };
        let begun = reply.state.lock().merged.begun.clone();
        if let Some(begun) = begun {
            let room = begun.room.clone();
            let failure = reply.signal(begun, ReplyPart::Failed(reason));
            state.merging.failures.push((room, failure));
        }
    }

    pub(super) fn publish_failures(&self, state: &mut FanoutState) {
        for (room, failure) in std::mem::take(&mut state.merging.failures) {
            self.publish_signal(state, &room, &failure, None);
        }
    }

    fn flush_due(&self) {
        let state = &mut *self.state.lock();
        let now = Instant::now();
        let count = state.merging.due.partition_point(|(due, _)| *due <= now);
        for (_, reply) in state.merging.due.drain(..count).collect::<Vec<_>>() {
            if reply.state.lock().merged.is_due {
                self.flush_reply(state, &reply);
            }
        }
    }

    /// Wakes the loop, which ends when the hub is closing.
    pub fn wake_merges(&self) {
        self.merges.notify_one();
    }
}

/// Publishes the text of streaming replies at the end of their intervals.
pub async fn run_loop(weak: WeakHub) {
    loop {
        let Some(hub) = weak.upgrade().filter(|hub| !hub.is_closing()) else { return };
        let fanout = hub.shared_fanout();
        // The loop must not keep the hub alive while it waits.
        drop(hub);
        let due = fanout.state.lock().merging.due.front().map(|(due, _)| *due);
        match due {
            Some(due) => {
                tokio::time::sleep_until(due).await;
                fanout.flush_due();
            }
            None => fanout.merges.notified().await,
        }
    }
}
