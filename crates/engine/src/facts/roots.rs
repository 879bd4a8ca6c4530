//! Facts about rooms with a project root.

use super::{Facts, Membership};
use crate::Fault;
use crate::ports::Lookup;
use parlor_model::{Caller, MemberId, RoomId};
use std::sync::Arc;

impl Facts {
    /// Loads the caller's memberships in rooms with this project root, or only in the room `only`.
    pub(super) fn about_root(
        &mut self,
        caller: &Caller,
        root: &str,
        only: Option<&RoomId>,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let Some(user) = caller.user() else { return Ok(()) };
        let own = store.memberships(&MemberId::User(user.clone()))?;
        for member in own.into_iter().filter(|own| only.is_none_or(|only| own.room == *only)) {
            let room = store.room(&member.room)?;
            if let Some(room) = room.filter(|room| room.project_root.as_deref() == Some(root)) {
                self.memberships.push(Membership { room, member, everyone: Arc::new([]) });
            }
        }
        Ok(())
    }
}
