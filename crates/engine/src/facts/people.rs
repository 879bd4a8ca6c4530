//! Facts about the caller and about the members of rooms.

use super::{Facts, LookupCache, Membership, NameAndHandle};
use crate::Fault;
use crate::ports::Lookup;
use parlor_model::{Caller, MemberId, RoomId, SecretHash};
use std::sync::Arc;

impl Facts {
    /// Loads the invitation with this token and the user who created it.
    pub(super) fn about_invitation(
        &mut self,
        token: &SecretHash,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.settings = store.settings()?;
        self.invitation = store.invitation_with(token)?;
        let by = self.invitation.as_ref().and_then(|invitation| invitation.created_by.as_ref());
        if let Some(by) = by {
            self.user = store.user(by)?;
        }
        Ok(())
    }

    pub(super) fn in_room(
        &mut self,
        caller: &Caller,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        if let Some(cached) = lookup_cache.rooms.get(room) {
            self.room = cached.clone();
        } else {
            self.room = store.room(room)?.map(Arc::new);
            lookup_cache.rooms.insert(room.clone(), self.room.clone());
        }
        let (Some(_), Some(user)) = (&self.room, caller.user()) else { return Ok(()) };
        let key = (room.clone(), user.clone());
        if let Some(cached) = lookup_cache.memberships.get(&key) {
            self.membership = cached.clone();
        } else {
            self.membership = store.member(room, &MemberId::User(user.clone()))?.map(Arc::new);
            lookup_cache.memberships.insert(key, self.membership.clone());
        }
        Ok(())
    }

    /// Loads all members of a room if the caller is a member. Callers that will be refused cause no read.
    pub(super) fn everyone(
        &mut self,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        if self.membership.is_some() { self.all_members(room, store, lookup_cache) } else { Ok(()) }
    }

    pub(super) fn all_members(
        &mut self,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        if let Some(cached) = lookup_cache.members.get(room) {
            self.members = cached.clone();
            return Ok(());
        }
        self.members = store.members(room, usize::MAX, 0)?.into();
        lookup_cache.members.insert(room.clone(), self.members.clone());
        Ok(())
    }

    pub(super) fn name_of(
        &self,
        member: &MemberId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<Option<NameAndHandle>, Fault> {
        Ok(match member {
            MemberId::User(user) => {
                store.user(user)?.map(|user| NameAndHandle { name: user.display_name, handle: user.username })
            }
            MemberId::Agent(agent) => store
                .agent(agent)?
                .map(|agent| NameAndHandle { name: agent.name, handle: agent.id.as_str().into() }),
        })
    }

    pub(super) fn memberships(
        &mut self,
        member: &MemberId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        for member in store.memberships(member)? {
            if let Some(room) = store.room(&member.room)? {
                self.memberships.push(Membership { room, member, everyone: Arc::new([]) });
            }
        }
        Ok(())
    }

    pub(super) fn memberships_with_members(
        &mut self,
        member: &MemberId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let existing = self.memberships.len();
        self.memberships(member, store)?;
        let (before, new) = self.memberships.split_at_mut(existing);
        for membership in new {
            // A user's agents are often in the same rooms: the members of a room are loaded once.
            let same = before.iter().find(|other| other.room.id == membership.room.id);
            membership.everyone = match same {
                Some(other) => other.everyone.clone(),
                None => store.members(&membership.room.id, usize::MAX, 0)?.into(),
            };
        }
        Ok(())
    }
}
