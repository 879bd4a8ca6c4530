//! Decides changes of a member's own room preferences: pin, archive, clear, notifications.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::{
    EntityKind, Event, Member, Receipt, Refusal, RoomId, RoomPreferenceChange, RoomPreferences,
};
use std::sync::Arc;

pub fn decide(
    room: &RoomId,
    how: RoomPreferenceChange,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let (now, head) = (effects_builder.facts.now, effects_builder.facts.head);
    let own =
        effects_builder.facts.membership.as_deref().cloned().ok_or(Refusal::NotFound(EntityKind::Member))?;
    let old = own.room_preferences;
    let new = match how {
        RoomPreferenceChange::Pin => RoomPreferences { pinned_at: toggled(old.pinned_at, now), ..old },
        RoomPreferenceChange::Archive => {
            RoomPreferences { archived_at: toggled(old.archived_at, now), ..old }
        }
        RoomPreferenceChange::Clear => {
            RoomPreferences { cleared_at: Some(now), cleared_through: head, ..old }
        }
        RoomPreferenceChange::Notify(notifications) => RoomPreferences { notifications, ..old },
    };
    let member = Arc::new(Member { room_preferences: new, ..own });
    if new != old {
        effects_builder.change(Change::PutMember(member.clone()));
        effects_builder.publish(match how {
            RoomPreferenceChange::Clear => {
                Event::RoomCleared { room: room.clone(), user: effects_builder.actor()?.id.clone(), at: now }
            }
            _ => Event::RoomPreferencesChanged(member.clone()),
        });
    }
    effects_builder.done(Receipt::Member(member))
}

fn toggled<T>(since: Option<T>, now: T) -> Option<T> {
    since.is_none().then_some(now)
}
