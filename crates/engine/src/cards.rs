//! An agent's rooms as visible to one user.

use crate::Fault;
use crate::ports::Snapshot;
use parlor_model::{AgentId, Member, MemberId, Room, UserId};

pub fn rooms_with(
    agent: &AgentId,
    viewer: &UserId,
    snapshot: &mut dyn Snapshot,
) -> Result<Vec<(Room, Member)>, Fault> {
    let agent = MemberId::Agent(agent.clone());
    let mut rooms = Vec::new();
    for member in snapshot.memberships(&MemberId::User(viewer.clone()))? {
        if snapshot.member(&member.room, &agent)?.is_none() {
            continue;
        }
        if let Some(room) = snapshot.room(&member.room)? {
            rooms.push((room, member));
        }
    }
    Ok(rooms)
}
