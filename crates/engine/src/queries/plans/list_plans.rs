//! Lists the current plans of agents in a room, or in all rooms of the caller.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListPlans;
use parlor_model::{CurrentPlan, MemberId, RoomRole, Scope, UserId};

impl Query for ListPlans {
    type Facts = UserId;
    type Answer = Vec<CurrentPlan>;

    /// Allowed for every member of the room; without a room, for every user.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<UserId, PermitError> {
        let caller = match &self.room {
            Some(room) => view.in_room(caller, room, RoomRole::Member, Scope::Read)?.caller,
            None => caller.signed_in(Scope::Read)?,
        };
        Ok(caller.user.id.clone())
    }

    fn answer(
        &self,
        user: UserId,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<CurrentPlan>, Fault> {
        if let Some(room) = &self.room {
            return store.plans(room);
        }
        let mut plans = Vec::new();
        for member in store.memberships(&MemberId::User(user))? {
            plans.extend(store.plans(&member.room)?);
        }
        Ok(plans)
    }
}
