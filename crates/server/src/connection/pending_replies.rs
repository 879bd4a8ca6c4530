//! Replies of one connection that are not sent yet, in the order of their requests.
//!
//! A reply waits for the commit of its command and for space in the outbox, so that replies never make a client
//! a slow consumer. At the limits of this queue the connection reads no further frames.

use super::protocol::{Acknowledgement, Answer, PendingReply};
use bytes::{Bytes, BytesMut};
use futures_util::FutureExt;
use parlor_engine::feed::Outbox;
use parlor_model::Seq;
use std::collections::VecDeque;

/// Maximum replies of one connection that wait.
const MAX_PENDING: usize = 256;
/// Maximum total bytes of the frames that these replies answer. Replies echo fields of their frames.
const MAX_PENDING_BYTES: usize = 4 * 1024 * 1024;
/// Size from which a buffer of replies takes no further replies.
const BATCH_BYTES: usize = 16 * 1024;
/// Maximum number of requests that one frame acknowledges.
const MAX_JOINED: usize = 128;

#[derive(Default)]
pub struct PendingReplies {
    queue: VecDeque<(PendingReply, usize)>,
    queued_bytes: usize,
    /// Encoded replies that are sent next.
    batch: Bytes,
    /// The event that must be published before the batch is sent.
    after: Option<Seq>,
}

impl PendingReplies {
    /// Queues a reply. `bytes` is its share of the byte limit.
    pub fn push(&mut self, reply: PendingReply, bytes: usize) {
        self.queued_bytes += bytes;
        self.queue.push_back((reply, bytes));
    }

    pub fn is_empty(&self) -> bool {
        self.queue.is_empty() && self.batch.is_empty()
    }

    pub fn has_capacity(&self) -> bool {
        self.queue.len() < MAX_PENDING && self.queued_bytes < MAX_PENDING_BYTES
    }

    /// Waits for the oldest reply and sends it, together with those behind it that are ready. `published` waits
    /// until an event has been published. Cancel-safe: a reply leaves this value only when it is in the outbox.
    pub async fn send<Published: Future<Output = ()>>(
        &mut self,
        outbox: &Outbox,
        published: impl FnOnce(Seq) -> Published,
    ) {
        if self.batch.is_empty() {
            self.fill_batch().await;
        }
        // A listener receives the message before its sender receives the reply, and a listener that subscribes
        // after the reply does not receive the message.
        if let Some(seq) = self.after {
            published(seq).await;
            self.after = None;
        }
        if !self.batch.is_empty() {
            outbox.push_when_half_empty(self.batch.clone()).await;
            self.batch = Bytes::new();
        }
    }

    async fn fill_batch(&mut self) {
        let Some((oldest, _)) = self.queue.front_mut() else { return };
        let mut decided = Some(oldest.await);
        let (mut batch, mut acknowledged) = (BytesMut::new(), None::<Acknowledgement>);
        while let Some(reply) = decided.take() {
            if let Some((_, bytes)) = self.queue.pop_front() {
                self.queued_bytes -= bytes;
            }
            let next = match reply.answer {
                Answer::Acknowledged(next) => match &mut acknowledged {
                    Some(earlier) => earlier.join(next).err().map(Answer::Acknowledged),
                    None => Some(Answer::Acknowledged(next)),
                },
                other => Some(other),
            };
            if let Some(next) = next {
                if let Some(earlier) = acknowledged.take() {
                    batch.extend_from_slice(&earlier.into_frame());
                }
                match next {
                    Answer::Acknowledged(next) => acknowledged = Some(next),
                    Answer::Frames(frames) => batch.extend_from_slice(&frames),
                    Answer::None => {}
                }
            }
            self.after = self.after.max(reply.after);
            let joined = acknowledged.as_ref().map_or(0, |acknowledged| acknowledged.results.len());
            if batch.len() < BATCH_BYTES && joined < MAX_JOINED {
                decided = self.queue.front_mut().and_then(|(next, _)| next.now_or_never());
            }
        }
        if let Some(acknowledged) = acknowledged {
            batch.extend_from_slice(&acknowledged.into_frame());
        }
        self.batch = batch.freeze();
    }
}

#[cfg(test)]
mod tests {
    use super::super::frame;
    use super::super::protocol::DecidedReply;
    use super::*;
    use parlor_engine::feed::{Item, OutboxLimits};
    use std::future::{pending, ready};
    use tokio::sync::oneshot;

    fn outbox() -> Outbox {
        Outbox::new(OutboxLimits { bytes: 100, buffers: 8 })
    }

    fn text(text: &str) -> PendingReply {
        ready(DecidedReply::from(frame::text(text))).boxed()
    }

    /// Takes all queued frames of short texts and returns the texts.
    async fn sent(outbox: &Outbox) -> Vec<String> {
        let mut entries = Vec::new();
        outbox.take(&mut entries, usize::MAX).await;
        let frames = entries.into_iter().filter_map(|entry| match entry.item {
            Item::Frames(frames) => Some(frames),
            _ => None,
        });
        let mut rest = &frames.collect::<Vec<_>>().concat()[..];
        let mut texts = Vec::new();
        while let [_, length, payload @ ..] = rest {
            let (text, behind) = payload.split_at(usize::from(*length));
            texts.push(String::from_utf8(text.to_vec()).unwrap());
            rest = behind;
        }
        texts
    }

    #[tokio::test]
    async fn replies_are_sent_in_the_order_of_their_requests() {
        let (outbox, mut replies) = (outbox(), PendingReplies::default());
        let (decide, decided) = oneshot::channel();
        replies.push(
            async { DecidedReply { answer: Answer::from(decided.await.ok()), after: None } }.boxed(),
            1,
        );
        replies.push(text("second"), 1);
        assert!(replies.send(&outbox, |_| ready(())).now_or_never().is_none(), "the first is not decided");
        decide.send(frame::text("first")).unwrap();
        replies.send(&outbox, |_| ready(())).await;
        assert_eq!(sent(&outbox).await, ["first", "second"]);
        assert!(replies.is_empty());
    }

    #[tokio::test]
    async fn replies_wait_for_space_instead_of_disconnecting_the_client() {
        let (outbox, mut replies) = (outbox(), PendingReplies::default());
        outbox.push(Bytes::from(vec![0; 90]));
        for n in 0..5 {
            replies.push(text(&format!("reply {n}, which is about forty bytes long")), 1);
        }
        for _ in 0..2 {
            // A cancelled attempt loses and repeats nothing.
            assert!(replies.send(&outbox, |_| ready(())).now_or_never().is_none(), "the outbox is full");
        }
        outbox.take(&mut Vec::new(), usize::MAX).await;
        replies.send(&outbox, |_| ready(())).await;
        let texts = sent(&outbox).await;
        assert_eq!((texts.len(), replies.is_empty(), outbox.is_closed()), (5, true, false));
        assert!(texts[0].starts_with("reply 0") && texts[4].starts_with("reply 4"), "{texts:?}");
    }

    #[tokio::test]
    async fn a_reply_waits_until_its_event_is_published() {
        let (outbox, mut replies) = (outbox(), PendingReplies::default());
        let reply = DecidedReply { answer: Answer::Frames(frame::text("routed")), after: Some(Seq(7)) };
        replies.push(ready(reply).boxed(), 1);
        assert!(replies.send(&outbox, |_| pending()).now_or_never().is_none());
        let published = |seq| {
            assert_eq!(seq, Seq(7), "the event outlives a cancelled attempt");
            ready(())
        };
        replies.send(&outbox, published).await;
        assert_eq!(sent(&outbox).await, ["routed"]);
    }

    fn acknowledged(first: u64, id: &str) -> PendingReply {
        let encode = |first, results: Vec<Vec<String>>| {
            frame::text(&format!("{first}: {}", results.concat().join(" ")))
        };
        let answer =
            Answer::Acknowledged(Acknowledgement { first, results: vec![vec![id.to_owned()]], encode });
        ready(DecidedReply { answer, after: None }).boxed()
    }

    #[tokio::test]
    async fn acknowledgements_of_consecutive_requests_are_one_frame() {
        let (outbox, mut replies) = (outbox(), PendingReplies::default());
        for reply in [
            acknowledged(1, "a"),
            acknowledged(2, "b"),
            acknowledged(4, "d"),
            text("x"),
            acknowledged(5, "e"),
        ] {
            replies.push(reply, 1);
        }
        replies.send(&outbox, |_| ready(())).await;
        assert_eq!(sent(&outbox).await, ["1: a b", "4: d", "x", "5: e"]);
        assert!(replies.is_empty());
    }

    #[test]
    fn pending_replies_are_limited_by_number_and_by_bytes() {
        let mut replies = PendingReplies::default();
        for _ in 0..MAX_PENDING {
            assert!(replies.has_capacity());
            replies.push(text("short"), 1);
        }
        assert!(!replies.has_capacity());
        let mut replies = PendingReplies::default();
        replies.push(text("long"), MAX_PENDING_BYTES);
        assert!(!replies.has_capacity());
    }
}
