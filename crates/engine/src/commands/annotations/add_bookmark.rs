//! Bookmarks a message for the caller alone.

use crate::changes::AnnotationChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, SeenMessage};
use crate::read_view::WriterView;
use parlor_model::command::{AddBookmark, Bookmarked};
use parlor_model::{Bookmark, Event, Field, Refusal, Scope};

pub struct Facts {
    seen: SeenMessage,
    /// The caller's existing bookmark of this message, if any.
    bookmark: Option<Bookmark>,
    /// Number of bookmarks of the caller.
    bookmark_count: usize,
}

impl Command for AddBookmark {
    type Facts = Facts;
    type Receipt = Bookmarked;

    /// Allowed for every member who can see the message.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let seen = view.seen_message(caller, &self.message, Scope::Write)?;
        let bookmark = view.store.bookmark(&seen.caller.user.id, &self.message)?;
        let bookmark_count = view.store.bookmark_count(&seen.caller.user.id)?;
        Ok(Facts { seen, bookmark, bookmark_count })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Bookmarked, Refusal> {
        let SeenMessage { caller, message, room, .. } = facts.seen;
        if let Some(bookmark) = facts.bookmark {
            return Ok(Bookmarked { bookmark, message, repeated: true });
        }
        if facts.bookmark_count >= effects.limits.bookmarks {
            return Err(Refusal::invalid(
                Field::Message,
                "cannot be bookmarked: you have too many bookmarks",
            ));
        }
        let (user, id) = (caller.user.id.clone(), self.message);
        let bookmark =
            Bookmark { user: user.clone(), message: id.clone(), seq: effects.next_seq(), at: effects.now };
        effects.change(AnnotationChange::PutBookmark(bookmark.clone()));
        effects.publish(Event::BookmarkChanged { room, user, message: id, kept: true });
        Ok(Bookmarked { bookmark, message, repeated: false })
    }
}
