//! Removes a bookmark of the caller.

use crate::changes::AnnotationChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::RemoveBookmark;
use parlor_model::{EntityKind, Event, Refusal, RoomId, Scope, UserId};

pub struct Facts {
    user: UserId,
    /// Room of the bookmarked message; `None` if the caller has no such bookmark.
    room: Option<RoomId>,
}

impl Command for RemoveBookmark {
    type Facts = Facts;
    type Receipt = ();

    /// Allowed for every user: own bookmarks stay accessible after the user has left a room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let user = caller.signed_in(Scope::Write)?.user.id.clone();
        let room = match view.store.bookmark(&user, &self.message)? {
            Some(_) => {
                let message = view.store.message(&self.message)?;
                message.and_then(|message| message.destination.room().cloned())
            }
            None => None,
        };
        Ok(Facts { user, room })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        let Facts { user, room } = facts;
        let (room, message) = (room.ok_or(Refusal::NotFound(EntityKind::Bookmark))?, self.message);
        effects.change(AnnotationChange::RemoveBookmark(user.clone(), message.clone()));
        effects.publish(Event::BookmarkChanged { room, user, message, kept: false });
        Ok(())
    }
}
