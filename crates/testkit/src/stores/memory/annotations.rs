//! Annotations: reactions, pins and bookmarks, in memory.

use super::TablesView;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::AnnotationChange;
use parlor_engine::ports::ReadAnnotations;
use parlor_model::{Bookmark, MemberId, Message, MessageId, Pin, RoomId, Seq, UserId};
use std::sync::Arc;

impl ReadAnnotations for TablesView {
    fn pin(&mut self, message: &MessageId) -> Result<Option<Pin>, Fault> {
        Ok(self.tables.pins.get(message).cloned())
    }

    fn pin_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        Ok(self.tables.pins.rows().filter(|pin| pin.room == *room).count())
    }

    fn pins(&mut self, room: &RoomId, beyond: Seq) -> Result<Vec<(Pin, Arc<Message>)>, Fault> {
        let pins = self.tables.pins.rows().rev().filter(|pin| pin.room == *room);
        let pins =
            pins.filter_map(|pin| Some((pin.clone(), self.tables.messages.get(&pin.message)?.clone())));
        Ok(pins.filter(|(_, message)| message.seq > beyond).collect())
    }

    fn bookmark(&mut self, user: &UserId, message: &MessageId) -> Result<Option<Bookmark>, Fault> {
        Ok(self.tables.bookmarks.get(&(user.clone(), message.clone())).cloned())
    }

    fn bookmark_count(&mut self, user: &UserId) -> Result<usize, Fault> {
        Ok(self.tables.bookmarks.rows().filter(|bookmark| bookmark.user == *user).count())
    }

    fn bookmarks(
        &mut self,
        user: &UserId,
        before: Option<Seq>,
        limit: usize,
    ) -> Result<Vec<(Bookmark, Arc<Message>)>, Fault> {
        let visible = |bookmark: &Bookmark| {
            let message = self.tables.messages.get(&bookmark.message)?;
            let key = (message.destination.room()?.clone(), MemberId::User(user.clone()));
            let cleared = self.tables.members.get(&key)?.room_preferences.cleared_through;
            (message.seq > cleared).then(|| (bookmark.clone(), message.clone()))
        };
        let own = self.tables.bookmarks.rows().rev().filter(|bookmark| bookmark.user == *user);
        let older = own.filter(|bookmark| before.is_none_or(|before| bookmark.seq < before));
        Ok(older.filter_map(visible).take(limit).collect())
    }
}

impl Tables {
    pub fn apply_annotations(&mut self, change: &AnnotationChange) {
        match change {
            AnnotationChange::PutReactions { message, reactions } => {
                if let Some(message) = self.messages.get_mut(message) {
                    Arc::make_mut(message).reactions = reactions.to_vec();
                }
            }
            AnnotationChange::PutPin(pin) => self.pins.put(pin.message.clone(), pin.clone()),
            AnnotationChange::RemovePin(message) => self.pins.remove(message),
            AnnotationChange::PutBookmark(new) => {
                self.bookmarks.put((new.user.clone(), new.message.clone()), new.clone());
            }
            AnnotationChange::RemoveBookmark(user, message) => {
                self.bookmarks.remove(&(user.clone(), message.clone()))
            }
        }
    }
}
