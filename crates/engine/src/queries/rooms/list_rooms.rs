//! Lists the caller's rooms.

use crate::permission::AuthContext;
use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListRooms, OwnRooms};
use parlor_model::{MemberId, Scope};
use std::sync::Arc;

impl Query for ListRooms {
    type Facts = Arc<AuthContext>;
    type Answer = OwnRooms;

    /// Allowed for every user.
    fn permit(
        &self,
        caller: &CallerContext,
        _view: &mut ReadView<'_>,
    ) -> Result<Arc<AuthContext>, PermitError> {
        Ok(caller.signed_in(Scope::Read)?)
    }

    fn answer(
        &self,
        caller: Arc<AuthContext>,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<OwnRooms, Fault> {
        let mut rooms = Vec::new();
        for member in store.memberships(&MemberId::User(caller.user.id.clone()))? {
            if let Some(room) = store.room(&member.room)? {
                rooms.push((room, member));
            }
        }
        Ok(rooms)
    }
}
