//! Changes a member's own room preferences: pin, archive, clear, notifications.

use crate::changes::RoomChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::{ChangeRoomPreferences, RoomPreferenceChange};
use parlor_model::{Event, Member, Refusal, RoomPreferences, RoomRole, Scope, Seq};
use std::sync::Arc;

pub struct Facts {
    own: InRoom,
    /// `Seq` of the newest event.
    head: Seq,
}

impl Command for ChangeRoomPreferences {
    type Facts = Facts;
    type Receipt = Arc<Member>;

    /// Allowed for every member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let own = view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
        Ok(Facts { own, head: view.head.seq })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Member>, Refusal> {
        let Facts { own: InRoom { caller, member, .. }, head } = facts;
        let (now, old) = (effects.now, member.room_preferences);
        let new = match self.how {
            RoomPreferenceChange::Pin => RoomPreferences { pinned_at: toggled(old.pinned_at, now), ..old },
            RoomPreferenceChange::Archive => {
                RoomPreferences { archived_at: toggled(old.archived_at, now), ..old }
            }
            RoomPreferenceChange::Clear => {
                RoomPreferences { cleared_at: Some(now), cleared_through: head, ..old }
            }
            RoomPreferenceChange::Notify(notifications) => RoomPreferences { notifications, ..old },
        };
        if new == old {
            return Ok(member);
        }
        let member = Arc::new(Member { room_preferences: new, ..Member::clone(&member) });
        effects.change(RoomChange::PutMember(member.clone()));
        effects.publish(match self.how {
            RoomPreferenceChange::Clear => {
                Event::RoomCleared { room: self.room, user: caller.user.id.clone(), at: now }
            }
            _ => Event::RoomPreferencesChanged(member.clone()),
        });
        Ok(member)
    }
}

fn toggled<T>(since: Option<T>, now: T) -> Option<T> {
    since.is_none().then_some(now)
}
