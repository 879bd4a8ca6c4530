//! Messages, their revisions and idempotency keys, in memory.

use super::TablesView;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::MessageChange;
use parlor_engine::ports::{CandidateVisitor, FirstRequest, IdempotencyKey, MessageRange, ReadMessages};
use parlor_engine::search::SearchScope;
use parlor_model::query::{Page, Recent};
use parlor_model::{Member, MemberId, Message, MessageId, Revision, RoomId, Sender, Seq, UploadPurpose};
use std::sync::Arc;

impl ReadMessages for TablesView {
    fn message(&mut self, id: &MessageId) -> Result<Option<Arc<Message>>, Fault> {
        Ok(self.tables.messages.get(id).cloned())
    }

    fn was_said(&mut self, id: &MessageId) -> Result<bool, Fault> {
        Ok(self.tables.messages.get(id).is_some() || self.tables.erased.contains_key(id))
    }

    fn said_since(&mut self, room: &RoomId, from: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault> {
        let since = self.tables.messages_in(room).filter(|message| message.seq >= from);
        Ok(since.take(limit).cloned().collect())
    }

    fn newest_message(&mut self, room: &RoomId) -> Result<Option<Seq>, Fault> {
        Ok(self.tables.messages_in(room).next_back().map(|message| message.seq))
    }

    fn history(
        &mut self,
        room: &RoomId,
        beyond: Seq,
        page: Page,
        limit: usize,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        let messages = self.tables.messages_in(room).filter(|message| message.seq > beyond).cloned();
        Ok(match page {
            Page::Before(None) => messages.rev().take(limit).collect(),
            Page::Before(Some(seq)) => messages.rev().filter(|m| m.seq < seq).take(limit).collect(),
            Page::After(seq) => messages.filter(|m| m.seq > seq).take(limit).collect(),
            Page::AfterTime(time) => {
                let last = self.tables.messages_in(room).rfind(|m| m.at <= time).map(|m| m.seq);
                messages.filter(|m| Some(m.seq) > last).take(limit).collect()
            }
        })
    }

    fn messages_in_range(
        &mut self,
        range: &MessageRange<'_>,
        limit: usize,
    ) -> Result<Vec<Arc<Message>>, Fault> {
        let MessageRange { destination, after, before, start, end, forwards } = *range;
        let earlier = |start| self.tables.messages_at(destination).rfind(|m| m.at < start).map(|m| m.seq);
        let after = start.and_then(earlier).unwrap_or_default().max(after);
        let messages = self.tables.messages_at(destination).filter(|m| {
            m.seq > after && before.is_none_or(|before| m.seq < before) && end.is_none_or(|end| m.at <= end)
        });
        let messages = messages.cloned();
        Ok(if forwards { messages.take(limit).collect() } else { messages.rev().take(limit).collect() })
    }

    fn recent(&mut self, room: &RoomId, member: &Member) -> Result<Option<Recent>, Fault> {
        let cleared = member.room_preferences.cleared_through;
        let newest = self.tables.messages_in(room).next_back().filter(|newest| newest.seq > cleared);
        let Some(newest) = newest else { return Ok(None) };
        let read_through = member.read_through.max(cleared);
        let own = |message: &Message| match &message.sender {
            Sender::User(id) => member.member == MemberId::User(id.clone()),
            Sender::Agent(id) => member.member == MemberId::Agent(id.clone()),
            Sender::Source(_) => false,
        };
        let unread: Vec<_> =
            self.tables.messages_in(room).filter(|m| m.seq > read_through && !own(m)).collect();
        let mentions = |m: &&&Arc<Message>| m.mentions.iter().any(|mention| mention.member == member.member);
        let mentions = unread.iter().filter(mentions).count() as u64;
        Ok(Some(Recent { message: newest.clone(), unread: unread.len() as u64, mentions }))
    }

    fn answers(&mut self, to: &Message, after: Seq, limit: usize) -> Result<Vec<Arc<Message>>, Fault> {
        let answers = self.tables.answers_to(to).filter(|answer| answer.seq > after);
        Ok(answers.take(limit).cloned().collect())
    }

    fn answer_count(&mut self, to: &Message, after: Seq) -> Result<u64, Fault> {
        Ok(self.tables.answers_to(to).filter(|answer| answer.seq > after).count() as u64)
    }

    fn revisions(&mut self, message: &MessageId, limit: usize) -> Result<Vec<Revision>, Fault> {
        let revisions = self.tables.revisions.get(message).map(Vec::as_slice).unwrap_or_default();
        Ok(revisions.iter().rev().take(limit).cloned().collect())
    }

    /// Visits every message: full scans are the reference for stores that search with an index.
    fn candidates(
        &mut self,
        search_scope: &SearchScope<'_>,
        visit: CandidateVisitor<'_>,
    ) -> Result<(), Fault> {
        let before = search_scope.asked.from_place.before;
        for message in self.tables.messages.rows().rev() {
            let earlier = before.is_none_or(|before| message.seq < before);
            if earlier && visit(message.seq, Some(message)).is_break() {
                break;
            }
        }
        Ok(())
    }

    fn first_use(&mut self, key: &IdempotencyKey) -> Result<Option<FirstRequest>, Fault> {
        Ok(self.tables.first_uses.get(key).map(|(first, _)| first.clone()))
    }
}

impl Tables {
    pub fn apply_messages(&mut self, change: &MessageChange) {
        match change {
            MessageChange::PutMessage(message) => self.messages.put(message.id.clone(), message.clone()),
            MessageChange::Revise { message, previous } => {
                self.messages.put(message.id.clone(), message.clone());
                self.revisions.entry(message.id.clone()).or_default().push(previous.clone());
            }
            MessageChange::DeleteMessage(message) => self.erase(message),
            MessageChange::RememberIdempotencyKey { key, first, at } => {
                self.first_uses.insert(key.clone(), (first.clone(), *at));
            }
        }
    }

    /// Deletes a message and its dependent rows. Its idempotency key stays, so that a late retry is
    /// recognised.
    pub fn erase(&mut self, message: &MessageId) {
        if let Some(before) = self.messages.get(message) {
            self.erased.insert(message.clone(), (before.destination.clone(), before.seq));
        }
        self.messages.remove(message);
        self.revisions.remove(message);
        self.pins.remove(message);
        self.bookmarks.retain(|(_, other)| other != message);
        self.deliveries.retain(|(other, _)| other != message);
        self.dead_letters.retain(|(other, _)| other != message);
        self.remove_uploads(|upload| upload.purpose == UploadPurpose::Message(message.clone()));
    }
}
