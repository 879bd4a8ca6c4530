//! Resolves the rooms that a request selects by room or project root.
//!
//! Owns: a project root selects only rooms of the caller, and only while `project_roots` lists the root. Any
//! other folder yields the same refusal, whether it exists or not.

use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::ReadView;
use parlor_model::{Field, MemberId, Refusal, RoomId, RoomRole, RoomSelection, Scope};

impl ReadView<'_> {
    /// Requires membership in each selected room. An empty selection selects all rooms of the caller.
    pub fn selected_rooms(
        &mut self,
        caller: &CallerContext,
        selection: &RoomSelection,
        scope: Scope,
    ) -> Result<Vec<RoomId>, PermitError> {
        let Some(rooms) = self.resolve(caller, selection)? else {
            let own = MemberId::User(caller.signed_in(scope)?.user.id.clone());
            return Ok(self.store.memberships(&own)?.into_iter().map(|member| member.room).collect());
        };
        for room in &rooms {
            self.in_room(caller, room, RoomRole::Member, scope)?;
        }
        Ok(rooms)
    }

    /// Requires membership in the first selected room: for what all rooms with the same project root share.
    pub fn first_selected_room(
        &mut self,
        caller: &CallerContext,
        selection: &RoomSelection,
        scope: Scope,
    ) -> Result<InRoom, PermitError> {
        let rooms = self.required_rooms(caller, selection)?;
        // A resolved selection has at least one room.
        let room = rooms.first().ok_or(Refusal::Forbidden)?;
        self.in_room(caller, room, RoomRole::Member, scope)
    }

    /// Requires that exactly one room is selected, and at least the role `least` there.
    pub fn only_selected_room(
        &mut self,
        caller: &CallerContext,
        selection: &RoomSelection,
        least: RoomRole,
        scope: Scope,
    ) -> Result<InRoom, PermitError> {
        match &self.required_rooms(caller, selection)?[..] {
            [room] => self.in_room(caller, room, least, scope),
            _ => Err(Refusal::invalid(
                Field::SelectedRoom,
                "is required: several rooms have this project root",
            )
            .into()),
        }
    }

    fn required_rooms(
        &mut self,
        caller: &CallerContext,
        selection: &RoomSelection,
    ) -> Result<Vec<RoomId>, PermitError> {
        if let Some(rooms) = self.resolve(caller, selection)? {
            return Ok(rooms);
        }
        caller.signed_in(Scope::Read)?;
        Err(Refusal::invalid(Field::SelectedRoom, "is required unless a project root is given").into())
    }

    /// The selected rooms, at least one; `None` for an empty selection. Without a project root, membership is
    /// not checked yet.
    fn resolve(
        &mut self,
        caller: &CallerContext,
        selection: &RoomSelection,
    ) -> Result<Option<Vec<RoomId>>, PermitError> {
        let RoomSelection { room: only, root } = selection;
        let Some(root) = root else { return Ok(only.clone().map(|room| vec![room])) };
        let own = MemberId::User(caller.signed_in(Scope::Read)?.user.id.clone());
        if let Some(room) = only {
            self.in_room(caller, room, RoomRole::Member, Scope::Read)?;
        }
        let mut rooms = Vec::new();
        if self.limits.allows_root(root) {
            let memberships = self.store.memberships(&own)?.into_iter().map(|own| own.room);
            for room in memberships.filter(|room| only.as_ref().is_none_or(|only| room == only)) {
                if self.room(&room)?.is_some_and(|room| room.project_root.as_ref() == Some(root)) {
                    rooms.push(room);
                }
            }
        }
        if rooms.is_empty() { Err(Refusal::Forbidden.into()) } else { Ok(Some(rooms)) }
    }
}
