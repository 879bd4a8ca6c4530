//! Members of rooms: the members that an event lists.

use parlor_model::Member;
use std::sync::Arc;

/// Maximum number of members listed in the event of a membership change.
pub const MAX_MEMBERS_IN_EVENT: usize = 100;

/// Members as included in a `MembersChanged` event: all of them in a small room, none in a large one, whose
/// members clients read page by page.
pub fn members_for_event(members: &[Member]) -> Arc<[Member]> {
    if members.len() > MAX_MEMBERS_IN_EVENT {
        return Arc::new([]);
    }
    members.iter().map(Member::seen_by_others).collect()
}
