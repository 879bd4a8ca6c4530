//! Lists the missions of the mission scope of the selected rooms.

use crate::permission::{CallerContext, InRoom, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::queries::answer_budget::count_within_budget;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListMissions;
use parlor_model::{MemberId, Mission, MissionScope, Scope};

impl Query for ListMissions {
    type Facts = InRoom;
    type Answer = Vec<Mission>;

    /// Allowed for members of the selected rooms, which share their missions.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<InRoom, PermitError> {
        view.first_selected_room(caller, &self.rooms, Scope::Read)
    }

    fn answer(
        &self,
        reader: InRoom,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<Mission>, Fault> {
        let InRoom { caller, room, .. } = reader;
        let own = MemberId::User(caller.user.id.clone());
        let mut missions = store.missions(&MissionScope::of(&room), self.limit)?;
        missions.truncate(count_within_budget(missions.iter().map(Mission::length)));
        for mission in missions.iter_mut().filter(|mission| mission.room != room.id) {
            if store.member(&mission.room, &own)?.is_none() {
                // Another room with the same project root: its id and its agents are hidden from callers who
                // are not its members.
                (mission.room, mission.agents) = (room.id.clone(), Vec::new());
            }
        }
        Ok(missions)
    }
}
