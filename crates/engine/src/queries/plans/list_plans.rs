//! Lists the current plans of agents in the selected rooms, or in all rooms of the caller.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::ListPlans;
use parlor_model::{CurrentPlan, RoomId, Scope};

impl Query for ListPlans {
    type Facts = Vec<RoomId>;
    type Answer = Vec<CurrentPlan>;

    /// Allowed for members of the selected rooms; without a selection, for every user.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Vec<RoomId>, PermitError> {
        view.selected_rooms(caller, &self.rooms, Scope::Read)
    }

    fn answer(
        &self,
        rooms: Vec<RoomId>,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<CurrentPlan>, Fault> {
        let mut plans = Vec::new();
        for room in rooms {
            plans.extend(store.plans(&room)?);
        }
        Ok(plans)
    }
}
