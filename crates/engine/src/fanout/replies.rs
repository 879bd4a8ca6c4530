//! What agents are saying right now, kept once for all who listen.
//!
//! Owns: whoever is in a room is told every piece of a reply once, in order, from its beginning. A connection's
//! outbox holds no pieces, only up to where it was told and may read on: however slowly it reads it loses nothing
//! and costs nothing, and what came while its socket was busy goes out together. Dropping pieces like other signals
//! would leave holes in a text, which somebody has to find and fill; here there are none.

use super::Egress;
use crate::runs::reply_buffer::{ReplyBuffer, ReplyLimits, ReplyOffset, ReplyTooLong};
use bytes::Bytes;
use parking_lot::Mutex;
use parlor_model::{AgentId, Chunk, MessageId, Ordinal, RoomId, Run, RunId, Signal, SignalStamp};
use std::collections::{HashMap, VecDeque};
use std::sync::Arc;

/// How much text one frame holds, so that a long reply reaches a late reader at the pace of its reading.
const MAX_CHUNK_BYTES: usize = 32 * 1024;
/// Frames that are kept for other readers: most of them stand at the same place.
const MAX_CACHED_FRAMES: usize = 4;

/// Why a piece was not said.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ChunkRejected {
    /// The turn has not begun, or is over.
    Over,
    TooLong,
}

/// A reply while it is being spoken.
pub struct StreamingReply {
    pub room: RoomId,
    pub agent: AgentId,
    so_far: Mutex<ReplyState>,
}

#[derive(Default)]
struct ReplyState {
    /// Known with the first piece.
    voice: Option<ReplyAuthor>,
    reply_buffer: ReplyBuffer,
    encoded: VecDeque<EncodedPiece>,
}

struct ReplyAuthor {
    agent_name: Box<str>,
    message: MessageId,
}

/// What a door makes of the next piece between two marks.
struct EncodedPiece {
    egress: Arc<dyn Egress>,
    marks: (ReplyOffset, ReplyOffset),
    numbers: (Ordinal, SignalStamp),
    frame: Option<Bytes>,
    reached: ReplyOffset,
}

impl StreamingReply {
    /// Adds a piece; gives where it begins and ends.
    pub fn add(
        &self,
        message: &MessageId,
        agent_name: &str,
        chunk: &Chunk,
        bounds: ReplyLimits,
    ) -> Result<(ReplyOffset, ReplyOffset), ChunkRejected> {
        let mut so_far = self.so_far.lock();
        let from = so_far.reply_buffer.end();
        so_far.reply_buffer.push(chunk, bounds).map_err(|ReplyTooLong| ChunkRejected::TooLong)?;
        so_far
            .voice
            .get_or_insert_with(|| ReplyAuthor { agent_name: agent_name.into(), message: message.clone() });
        Ok((from, so_far.reply_buffer.end()))
    }

    pub fn end(&self) -> ReplyOffset {
        self.so_far.lock().reply_buffer.end()
    }

    pub fn length(&self, from: ReplyOffset, to: ReplyOffset) -> usize {
        self.so_far.lock().reply_buffer.length(from, to)
    }

    /// The frame of the next piece between the marks, and how far it reaches; made once for all readers of a door.
    /// The last piece gets the last of the numbers, those before it the next one each.
    pub fn next(
        &self,
        egress: &Arc<dyn Egress>,
        marks: (ReplyOffset, ReplyOffset),
        numbers: (Ordinal, SignalStamp),
    ) -> Option<(Option<Bytes>, ReplyOffset)> {
        let mut so_far = self.so_far.lock();
        let fits = |known: &&EncodedPiece| {
            (known.marks, known.numbers) == (marks, numbers) && Arc::ptr_eq(&known.egress, egress)
        };
        if let Some(known) = so_far.encoded.iter().find(fits) {
            return Some((known.frame.clone(), known.reached));
        }
        let ((from, to), (next, last)) = (marks, numbers);
        let (chunk, reached) = so_far.reply_buffer.next(from, to, MAX_CHUNK_BYTES)?;
        let voice = so_far.voice.as_ref()?;
        let signal = Signal::Chunk {
            room: self.room.clone(),
            agent: self.agent.clone(),
            agent_name: voice.agent_name.clone(),
            message: voice.message.clone(),
            chunk,
            first: from == ReplyOffset::default(),
        };
        let ordinal = if reached < to { next } else { last.ordinal };
        let frame = egress.signal(&signal, SignalStamp { ordinal, ..last });
        if so_far.encoded.len() == MAX_CACHED_FRAMES {
            so_far.encoded.pop_front();
        }
        let kept = EncodedPiece { egress: egress.clone(), marks, numbers, frame: frame.clone(), reached };
        so_far.encoded.push_back(kept);
        Some((frame, reached))
    }

    /// How many numbers it takes to tell all of it so far.
    pub fn numbers(&self) -> u64 {
        let so_far = self.so_far.lock();
        2 * so_far.reply_buffer.parts() as u64
            + numbers(so_far.reply_buffer.length(ReplyOffset::default(), so_far.reply_buffer.end()))
    }

    /// The tools that were called so far.
    pub fn tools(&self) -> Vec<Chunk> {
        self.so_far.lock().reply_buffer.tools()
    }

    fn finish(&self, said: Option<&str>) -> (Arc<str>, Vec<Chunk>) {
        self.so_far.lock().reply_buffer.finish(said)
    }
}

/// How many numbers a piece of so many bytes gets: it may have to be cut, at its end and within.
pub fn numbers(length: usize) -> u64 {
    2 + (length / MAX_CHUNK_BYTES) as u64
}

/// The replies of all turns that have begun and are not over.
#[derive(Default)]
pub struct Replies {
    of_run: HashMap<RunId, Arc<StreamingReply>>,
    in_room: HashMap<RoomId, Vec<Arc<StreamingReply>>>,
}

impl Replies {
    pub fn open(&mut self, run: &Run) {
        if !self.of_run.contains_key(&run.id) {
            self.put(&run.id, run.room.clone(), run.agent.clone());
        }
    }

    fn put(&mut self, run: &RunId, room: RoomId, agent: AgentId) {
        let reply = Arc::new(StreamingReply { room: room.clone(), agent, so_far: Mutex::default() });
        self.of_run.insert(run.clone(), reply.clone());
        self.in_room.entry(room).or_default().push(reply);
    }

    /// Ends what was said, and lets the turn begin to speak again.
    pub fn begin_anew(&mut self, run: &RunId) -> Option<Arc<StreamingReply>> {
        let reply = self.close(run)?;
        self.put(run, reply.room.clone(), reply.agent.clone());
        Some(reply)
    }

    pub fn of(&self, run: &RunId) -> Option<&Arc<StreamingReply>> {
        self.of_run.get(run)
    }

    pub fn in_room(&self, room: &RoomId) -> &[Arc<StreamingReply>] {
        self.in_room.get(room).map(Vec::as_slice).unwrap_or_default()
    }

    pub fn close(&mut self, run: &RunId) -> Option<Arc<StreamingReply>> {
        let reply = self.of_run.remove(run)?;
        if let Some(replies) = self.in_room.get_mut(&reply.room) {
            replies.retain(|other| !Arc::ptr_eq(other, &reply));
            if replies.is_empty() {
                self.in_room.remove(&reply.room);
            }
        }
        Some(reply)
    }

    /// Ends what nobody will end any more: who spoke, or where, is gone.
    pub fn close_where(&mut self, gone: impl Fn(&StreamingReply) -> bool) {
        self.of_run.retain(|_, reply| !gone(reply));
        self.in_room.retain(|_, replies| {
            replies.retain(|reply| !gone(reply));
            !replies.is_empty()
        });
    }

    /// What was said in a turn; see [`ReplyBuffer::finish`].
    pub fn finish(&self, run: &RunId, said: Option<&str>) -> Option<(Arc<str>, Vec<Chunk>)> {
        Some(self.of(run)?.finish(said))
    }
}
