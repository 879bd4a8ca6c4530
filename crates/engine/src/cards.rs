//! An agent's runs and rooms as visible to one user.

use crate::Fault;
use crate::ports::Snapshot;
use parlor_model::{AgentId, Member, MemberId, Room, RoomId, Run, UserId};
use std::collections::HashSet;

/// Maximum number of an agent's latest runs that are scanned for those in the viewer's rooms. Bounds the
/// cost; older runs of a busy agent may be missing.
const MAX_RUNS_SCANNED: usize = 1000;

pub fn runs_by(
    agent: &AgentId,
    name: &str,
    limit: usize,
    viewer: &UserId,
    snapshot: &mut dyn Snapshot,
) -> Result<Vec<(Run, Box<str>)>, Fault> {
    let own = snapshot.memberships(&MemberId::User(viewer.clone()))?;
    let rooms: HashSet<RoomId> = own.into_iter().map(|member| member.room).collect();
    let latest = snapshot.latest_runs(agent, MAX_RUNS_SCANNED)?.into_iter();
    Ok(latest.filter(|run| rooms.contains(&run.room)).take(limit).map(|run| (run, name.into())).collect())
}

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
