//! A page of a room's members, as one of them may see it.

use crate::Fault;
use crate::permission::InRoom;
use crate::ports::Snapshot;
use parlor_model::query::MemberPage;

/// Reads members of the reader's room. The room preferences of other members are hidden.
pub fn read(
    reader: &InRoom,
    limit: usize,
    offset: usize,
    store: &mut dyn Snapshot,
) -> Result<MemberPage, Fault> {
    let mut members = store.members(&reader.room.id, limit, offset)?;
    let own = Some(&reader.caller.user.id);
    for other in members.iter_mut().filter(|member| member.member.user() != own) {
        *other = other.seen_by_others();
    }
    Ok(MemberPage { members, total: store.member_count(&reader.room.id)? })
}
