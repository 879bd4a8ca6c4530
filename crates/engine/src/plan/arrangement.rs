//! How one member keeps a room for themselves.

use super::{Change, Draft, Plan};
use parlor_model::{Arrangement, Arranging, Event, Member, Receipt, Refusal, RoomId, Thing};
use std::sync::Arc;

pub fn plan(room: &RoomId, how: Arranging, mut draft: Draft) -> Result<Plan, Refusal> {
    let (now, head) = (draft.facts.now, draft.facts.head);
    let own = draft.facts.membership.as_deref().cloned().ok_or(Refusal::NotFound(Thing::Member))?;
    let old = own.arrangement;
    let new = match how {
        Arranging::Pin => Arrangement { pinned_at: toggled(old.pinned_at, now), ..old },
        Arranging::Archive => Arrangement { archived_at: toggled(old.archived_at, now), ..old },
        Arranging::Clear => Arrangement { cleared_at: Some(now), cleared_through: head, ..old },
        Arranging::Notify(notifications) => Arrangement { notifications, ..old },
    };
    let member = Arc::new(Member { arrangement: new, ..own });
    if new != old {
        draft.change(Change::PutMember(member.clone()));
        draft.tell(match how {
            Arranging::Clear => {
                Event::RoomCleared { room: room.clone(), user: draft.actor()?.id.clone(), at: now }
            }
            _ => Event::RoomArranged(member.clone()),
        });
    }
    draft.done(Receipt::Member(member))
}

fn toggled<T>(since: Option<T>, now: T) -> Option<T> {
    since.is_none().then_some(now)
}
