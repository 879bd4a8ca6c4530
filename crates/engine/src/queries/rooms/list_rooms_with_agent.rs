//! Lists the rooms of which both the caller and an agent are members.

use crate::permission::{CallerContext, PermitError, VisibleAgent};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListRoomsWithAgent, OwnRooms};
use parlor_model::{MemberId, Scope};

impl Query for ListRoomsWithAgent {
    type Facts = VisibleAgent;
    type Answer = OwnRooms;

    /// Allowed for users who may see the agent.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<VisibleAgent, PermitError> {
        view.visible_agent(caller, &self.agent, Scope::Read)
    }

    fn answer(
        &self,
        visible: VisibleAgent,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<OwnRooms, Fault> {
        let agent = MemberId::Agent(self.agent.clone());
        let mut rooms = Vec::new();
        for member in store.memberships(&MemberId::User(visible.caller.user.id.clone()))? {
            if store.member(&member.room, &agent)?.is_none() {
                continue;
            }
            if let Some(room) = store.room(&member.room)? {
                rooms.push((room, member));
            }
        }
        Ok(rooms)
    }
}
