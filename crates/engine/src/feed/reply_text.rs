//! Streaming replies of running runs, stored once for all subscribers.
//!
//! Owns: every viewer of a run receives each part of a reply once, in order, from its beginning. An
//! outbox holds no chunks, only a cursor into the shared reply: a slow connection loses nothing and costs no
//! memory, and chunks that arrive while its socket is busy are sent together. Dropping chunks like other
//! signals would leave gaps in the text that clients had to detect and fill.

use super::fanout::{Fanout, FanoutState};
use super::merged_replies::MergedReply;
use super::reply_buffer::{ReplyBuffer, ReplyLimits, ReplyOffset, ReplyTooLong};
use super::viewers::Viewers;
use super::{Codec, Kinds};
use bytes::Bytes;
use parking_lot::Mutex;
use parlor_model::{
    AgentId, Chunk, MessageId, RoomId, Run, RunEvent, RunId, RunPlace, RunState, Signal, SignalStamp,
};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// Maximum bytes of text in one frame, so that a long reply reaches a late joiner at the rate at which it
/// reads.
const MAX_CHUNK_BYTES: usize = 32 * 1024;
/// Maximum number of encoded frames cached per reply: most subscribers read at the same offset.
const MAX_CACHED_FRAMES: usize = 4;

/// Why a chunk was rejected.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkRejected {
    /// The run has not started, or has ended.
    Over,
    TooLong,
}

/// A reply while it is being generated.
pub struct StreamingReply {
    pub place: RunPlace,
    pub agent: AgentId,
    pub(super) state: Mutex<ReplyState>,
}

#[derive(Default)]
pub(super) struct ReplyState {
    /// Set with the first chunk.
    author: Option<ReplyAuthor>,
    pub(super) reply_buffer: ReplyBuffer,
    pub(super) merged: MergedReply,
    /// Project root of the room.
    root: Option<Arc<str>>,
    encoded: VecDeque<EncodedPiece>,
}

struct ReplyAuthor {
    agent_name: Box<str>,
    message: MessageId,
}

/// Cached frame of one codec for a piece.
struct EncodedPiece {
    codec: Codec,
    marks: (ReplyOffset, ReplyOffset),
    stamp: SignalStamp,
    frame: Option<Bytes>,
}

/// Part of a reply that is sent as one frame.
#[derive(Clone)]
pub struct ReplyPiece {
    pub(super) reply: Arc<StreamingReply>,
    pub(super) from: ReplyOffset,
    pub(super) to: ReplyOffset,
    pub(super) stamp: SignalStamp,
}

impl ReplyPiece {
    /// The encoding of this codec, created by `encode` if no other subscriber at the same offset had it encoded. Its
    /// arguments are the chunk, its stamp and the project root of the room.
    pub fn encoded(
        &self,
        codec: Codec,
        encode: impl FnOnce(&Signal, SignalStamp, Option<&str>) -> Option<Bytes>,
    ) -> Option<Bytes> {
        let Self { reply, from, to, stamp } = self;
        let mut state = reply.state.lock();
        let marks = (*from, *to);
        let fits =
            |cached: &&EncodedPiece| (cached.marks, cached.stamp, cached.codec) == (marks, *stamp, codec);
        if codec != Codec::PRIVATE
            && let Some(cached) = state.encoded.iter().find(fits)
        {
            return cached.frame.clone();
        }
        let (chunk, _) = state.reply_buffer.next(*from, *to, MAX_CHUNK_BYTES)?;
        let author = state.author.as_ref()?;
        let signal = Signal::Chunk {
            place: reply.place.clone(),
            agent: reply.agent.clone(),
            agent_name: author.agent_name.clone(),
            message: author.message.clone(),
            chunk,
            first: *from == ReplyOffset::default(),
        };
        let frame = encode(&signal, *stamp, state.root.as_deref());
        if codec != Codec::PRIVATE {
            if state.encoded.len() == MAX_CACHED_FRAMES {
                state.encoded.pop_front();
            }
            state.encoded.push_back(EncodedPiece { codec, marks, stamp: *stamp, frame: frame.clone() });
        }
        frame
    }
}

impl StreamingReply {
    /// Appends a chunk; returns the offsets of its start and end.
    pub fn add(
        &self,
        message: &MessageId,
        agent_name: &str,
        chunk: &Chunk,
        bounds: ReplyLimits,
    ) -> Result<(ReplyOffset, ReplyOffset), ChunkRejected> {
        let mut state = self.state.lock();
        let from = state.reply_buffer.end();
        state.reply_buffer.push(chunk, bounds).map_err(|ReplyTooLong| ChunkRejected::TooLong)?;
        state
            .author
            .get_or_insert_with(|| ReplyAuthor { agent_name: agent_name.into(), message: message.clone() });
        Ok((from, state.reply_buffer.end()))
    }

    pub fn end(&self) -> ReplyOffset {
        self.state.lock().reply_buffer.end()
    }

    pub fn length(&self, from: ReplyOffset, to: ReplyOffset) -> usize {
        self.state.lock().reply_buffer.length(from, to)
    }

    /// End of the next part between the offsets that is sent as one frame.
    pub fn next_offset(&self, from: ReplyOffset, to: ReplyOffset) -> Option<ReplyOffset> {
        self.state.lock().reply_buffer.next_offset(from, to, MAX_CHUNK_BYTES)
    }

    /// Number of ordinals needed to send the whole reply so far.
    pub fn numbers(&self) -> u64 {
        let state = self.state.lock();
        2 * state.reply_buffer.parts() as u64
            + numbers(state.reply_buffer.length(ReplyOffset::default(), state.reply_buffer.end()))
    }

    /// Tool calls in the reply so far.
    pub fn tools(&self) -> Vec<Chunk> {
        self.state.lock().reply_buffer.tools()
    }

    fn finish(&self, final_text: Option<&str>) -> (Arc<str>, Vec<Chunk>) {
        self.state.lock().reply_buffer.finish(final_text)
    }
}

/// Number of ordinals reserved for a chunk of `length` bytes: it may be split, at its ends and by the maximum
/// frame size.
pub fn numbers(length: usize) -> u64 {
    2 + (length / MAX_CHUNK_BYTES) as u64
}

/// Streaming replies of all running runs.
#[derive(Default)]
pub struct Replies {
    of_run: HashMap<RunId, Arc<StreamingReply>>,
    by_viewers: HashMap<Viewers, Vec<Arc<StreamingReply>>>,
}

impl Replies {
    pub fn open(&mut self, run: &Run, root: Option<Arc<str>>) {
        if !self.of_run.contains_key(&run.id) {
            self.put(&run.id, run.place.clone(), run.agent.clone(), root);
        }
    }

    /// Changes the project root of a room.
    pub fn set_root(&self, room: &RoomId, root: Option<&Arc<str>>) {
        for reply in self.of_viewers(&Viewers::Room(room.clone())) {
            let mut state = reply.state.lock();
            if state.root.as_ref() != root {
                state.root = root.cloned();
                state.encoded.clear();
            }
        }
    }

    fn put(&mut self, run: &RunId, place: RunPlace, agent: AgentId, root: Option<Arc<str>>) {
        let state = Mutex::new(ReplyState { root, ..ReplyState::default() });
        let viewers = Viewers::of(place.scope());
        let reply = Arc::new(StreamingReply { place, agent, state });
        self.of_run.insert(run.clone(), reply.clone());
        if let Some(viewers) = viewers {
            self.by_viewers.entry(viewers).or_default().push(reply);
        }
    }

    /// Closes the reply of a run and opens an empty one. Returns the closed reply.
    pub fn restart(&mut self, run: &RunId) -> Option<Arc<StreamingReply>> {
        let reply = self.close(run)?;
        let root = reply.state.lock().root.clone();
        self.put(run, reply.place.clone(), reply.agent.clone(), root);
        Some(reply)
    }

    pub fn of(&self, run: &RunId) -> Option<&Arc<StreamingReply>> {
        self.of_run.get(run)
    }

    pub fn of_viewers(&self, viewers: &Viewers) -> &[Arc<StreamingReply>] {
        self.by_viewers.get(viewers).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn close(&mut self, run: &RunId) -> Option<Arc<StreamingReply>> {
        let reply = self.of_run.remove(run)?;
        if let Some(viewers) = Viewers::of(reply.place.scope())
            && let Some(replies) = self.by_viewers.get_mut(&viewers)
        {
            replies.retain(|other| !Arc::ptr_eq(other, &reply));
            if replies.is_empty() {
                self.by_viewers.remove(&viewers);
            }
        }
        Some(reply)
    }

    /// Drops the replies of removed agents or rooms.
    pub fn close_where(&mut self, is_removed: impl Fn(&StreamingReply) -> bool) {
        self.of_run.retain(|_, reply| !is_removed(reply));
        self.by_viewers.retain(|_, replies| {
            replies.retain(|reply| !is_removed(reply));
            !replies.is_empty()
        });
    }

    /// The final text and chunks of a run's reply; see [`ReplyBuffer::finish`].
    pub fn finish(&self, run: &RunId, final_text: Option<&str>) -> Option<(Arc<str>, Vec<Chunk>)> {
        Some(self.of(run)?.finish(final_text))
    }
}

impl Fanout {
    /// Applies the committed state of a run: its agent can publish chunks while the run is running.
    pub fn apply_run(&self, run: &Run) {
        let mut state = self.state.lock();
        state.apply_run(run);
        let next = state.last_ordinal.plus(1);
        state.activities.begin(run, next);
    }

    /// Publishes the end of a run's activity before the end of the run, so that no activity signal follows
    /// the run's end.
    pub(super) fn end_activity(&self, state: &mut FanoutState, run: &Run) {
        if run.has_ended() {
            self.end_merged_reply(state, run);
            let ended: Vec<Signal> = state.activities.end(&run.id).into_iter().collect();
            self.publish_signals(state, &run.place, &ended);
        }
    }

    /// Appends a chunk to a run's streaming reply and publishes it to the viewers of the run.
    pub fn publish_chunk(
        &self,
        run: &RunId,
        message: &MessageId,
        agent_name: &str,
        chunk: &Chunk,
        bounds: ReplyLimits,
    ) -> Result<(), ChunkRejected> {
        let state = &mut *self.state.lock();
        let reply = state.replies.of(run).ok_or(ChunkRejected::Over)?.clone();
        let marks = reply.add(message, agent_name, chunk, bounds)?;
        let signals = state.activities.infer_from_chunk(run, chunk, state.last_ordinal.plus(1));
        self.publish_signals(state, &reply.place, &signals);
        if marks.0 < marks.1 {
            self.merge_later(state, &reply);
            let numbers = self.number(state, numbers(chunk.content.len()));
            state.each_viewer(reply.place.scope(), |subscriber| {
                if subscriber.kinds.includes(Kinds::REPLY_TEXT) {
                    subscriber.outbox.push_reply_update(&reply, subscriber.codec, marks, numbers);
                }
            });
        }
        Ok(())
    }

    /// Tool calls in the streaming replies of a room, in order.
    pub fn tools_in_use(&self, room: &RoomId) -> Vec<(AgentId, Chunk)> {
        // Copies the list, so that the lock is not held while the calls are collected.
        let replies = self.state.lock().replies.of_viewers(&Viewers::Room(room.clone())).to_vec();
        let calls = |reply: &Arc<StreamingReply>| {
            let agent = reply.agent.clone();
            reply.tools().into_iter().map(move |call| (agent.clone(), call)).collect::<Vec<_>>()
        };
        replies.iter().flat_map(calls).collect()
    }

    /// How much of a run's reply has been published: number of complete parts, and bytes of the next part.
    pub fn published_offset(&self, run: &RunId) -> (usize, usize) {
        self.state.lock().replies.of(run).map_or((0, 0), |reply| reply.end().place())
    }

    /// Publishes an event that an agent reports about its run; ignored once the run has ended.
    pub fn run_event(&self, run: &RunId, event: RunEvent) {
        let state = &mut *self.state.lock();
        let Some(place) = state.replies.of(run).map(|reply| reply.place.clone()) else { return };
        let signals = state.activities.apply_run_event(run, event, state.last_ordinal.plus(1));
        self.publish_signals(state, &place, &signals);
    }

    /// The final reply of a run, if it is still open. `final_text` is the full text as sent by the gateway.
    pub fn finish(&self, run: &RunId, final_text: Option<&str>) -> Option<(Arc<str>, Vec<Chunk>)> {
        let state = &mut *self.state.lock();
        if let Some(reply) = state.replies.of(run).cloned() {
            self.flush_reply(state, &reply);
        }
        state.replies.finish(run, final_text)
    }

    /// Takes back the streamed text of a run, because it was not its reply, and returns it. The run continues
    /// with an empty reply.
    pub fn restart_reply(&self, run: &RunId) -> Option<(Arc<str>, Vec<Chunk>)> {
        let mut state = self.state.lock();
        let text = state.replies.finish(run, None)?;
        let reply = state.replies.restart(run)?;
        state.each_viewer(reply.place.scope(), |subscriber| subscriber.outbox.finish_reply(&reply));
        Some(text)
    }
}

impl FanoutState {
    pub(super) fn apply_run(&mut self, run: &Run) {
        match run.state {
            RunState::Queued => {}
            RunState::Running => {
                let root = run.room().and_then(|room| self.roots.of(room));
                self.replies.open(run, root);
            }
            RunState::Ended(_) => {
                if let Some(reply) = self.replies.close(&run.id) {
                    self.each_viewer(reply.place.scope(), |subscriber| {
                        subscriber.outbox.finish_reply(&reply)
                    });
                }
            }
        }
    }
}
