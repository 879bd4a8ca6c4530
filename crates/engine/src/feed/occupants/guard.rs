//! Members of one connection, and the grace period after the connection is lost.

use super::sets::{Access, Changed, Hold};
use super::{OccupantHistory, OccupantRecord, OccupantUpdate};
use crate::Hub;
use crate::feed::fanout::Fanout;
use crate::feed::reservations::Reservation;
use crate::ports::Snapshot;
use parlor_model::query::{MayEnterPlace, MayListOccupants, MayReadOccupantHistory};
use parlor_model::{Caller, MemberId, Occupant, Path, Refusal, RoomId, Time, UserId};
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;

/// The members of a connection. Dropping it begins their grace period (`Limits::occupant_grace`), after which they
/// leave unless [`Hub::resume_presence`] takes them over.
pub struct PresenceGuard {
    hub: Hub,
    caller: Caller,
    hold: Hold,
}

impl Hub {
    /// Begins the presence of a connection, or takes over its members after its socket was lost. The name identifies
    /// the connection on this hub; it is refused for members of another user.
    pub fn resume_presence(&self, caller: &Caller, connection: &str) -> Result<PresenceGuard, Refusal> {
        let user = caller.user().ok_or(Refusal::NotSignedIn)?;
        let hold = self.fanout().state.lock().occupants.sets.hold(connection, user, &caller.principal)?;
        Ok(PresenceGuard { hub: self.clone(), caller: caller.clone(), hold })
    }

    /// The current members of a place.
    pub async fn occupants(&self, caller: &Caller, place: &Path) -> Result<Vec<Arc<Occupant>>, Refusal> {
        let user = caller.user().cloned().ok_or(Refusal::NotSignedIn)?;
        if self.fanout().derives_in(place) {
            self.load_present_users().await?;
        }
        let (who, query) = (caller.clone(), MayListOccupants { place: place.clone() });
        let viewer = user.clone();
        let read = move |hub: &Hub, snapshot: &mut dyn Snapshot| {
            if let Err(refusal) = hub.permitted(&who, &query, snapshot)? {
                return Ok(Err(refusal));
            }
            let own = snapshot.memberships(&MemberId::User(viewer.clone()))?;
            Ok(Ok(own.into_iter().map(|member| member.room).collect::<BTreeSet<RoomId>>()))
        };
        let rooms = self.read_snapshot(read).await??;
        Ok(self.fanout().occupants_for(place, &user, &rooms))
    }

    /// Changes of a presence set that clients made: at most 1,000 of the last 2 minutes. In the place of all users, only
    /// those of users who share a room with the caller now.
    pub async fn presence_history(
        &self,
        caller: &Caller,
        place: &Path,
        history: OccupantHistory,
    ) -> Result<Vec<OccupantRecord>, Refusal> {
        self.may(caller, MayReadOccupantHistory { place: place.clone() }).await?;
        let is_filtered = self.fanout().state.lock().occupants.users_place.as_ref() == Some(place);
        let seen = if is_filtered {
            let viewer = caller.user().cloned().ok_or(Refusal::NotSignedIn)?;
            let peers = self.read_snapshot(move |_, snapshot| {
                let peers = snapshot.peers(&viewer)?.into_iter();
                Ok(peers.chain([viewer.clone()]).collect::<HashSet<UserId>>())
            });
            Some(peers.await?)
        } else {
            None
        };
        let is_seen = |user: &UserId| seen.as_ref().is_none_or(|seen| seen.contains(user));
        let state = self.fanout().state.lock();
        Ok(state.occupants.history.page(place, &history, self.now(), is_seen))
    }

    /// Makes every user who is online a derived member of this place. Set once, before the first connection.
    pub fn derive_users_in(&self, place: &Path) {
        self.fanout().state.lock().occupants.users_place = Some(place.clone());
    }
}

impl PresenceGuard {
    /// Enters a place, or updates the member if it has entered already. Ignores a state that is older than the current
    /// one.
    pub async fn enter(&self, place: &Path, update: OccupantUpdate) -> Result<(), Refusal> {
        let user = self.caller.user().ok_or(Refusal::NotSignedIn)?;
        loop {
            let (who, query) = (self.caller.clone(), MayEnterPlace { place: place.clone() });
            let permitted =
                move |hub: &Hub, snapshot: &mut dyn Snapshot| hub.permitted(&who, &query, snapshot);
            let (reservation, access, _) = self.hub.reserve(user, None, permitted).await?;
            let fanout = self.hub.fanout();
            let entered = fanout.enter(&reservation, user, &self.hold, place, access, update.clone());
            let Some(came_online) = entered else { continue };
            if came_online? {
                // If this read fails, only the presence signal is lost.
                let _ = self.hub.publish_presence(user, true).await;
            }
            return Ok(());
        }
    }

    /// Leaves a place. Has no effect if the client is not a member, or if the departure is older than the member's
    /// state.
    pub fn leave(&self, place: &Path, update: OccupantUpdate) {
        self.change(|sets, hold, now| sets.leave(hold, place, update, now).into_iter().collect());
    }

    /// Removes the connection's members from a place, for example because its feed was closed.
    pub fn leave_place(&self, place: &Path) {
        self.change(|sets, hold, now| sets.leave_place(hold, place, now));
    }

    /// Replaces the caller, whose credential may have other rights. Members leave the places that the new credential
    /// does not permit.
    pub async fn set_caller(&mut self, caller: &Caller) -> Result<(), Refusal> {
        if caller.user() != self.caller.user() {
            return Err(Refusal::Forbidden);
        }
        self.caller = caller.clone();
        let places = {
            let mut state = self.hub.fanout().state.lock();
            state.occupants.sets.set_principal(&self.hold, &caller.principal);
            state.occupants.sets.places_of(&self.hold)
        };
        for place in places {
            match self.hub.may(caller, MayEnterPlace { place: place.clone() }).await {
                Ok(()) => {}
                Err(Refusal::Unavailable) => return Err(Refusal::Unavailable),
                Err(_) => self.leave_place(&place),
            }
        }
        Ok(())
    }

    /// Removes all members at once, without a grace period: the client has closed the connection.
    pub fn close(self) {
        self.change(|sets, hold, now| sets.close(hold, now));
    }

    fn change(&self, change: impl FnOnce(&mut super::PresenceSets, &Hold, Time) -> Vec<Changed>) {
        let fanout = self.hub.fanout();
        let state = &mut *fanout.state.lock();
        let changes = change(&mut state.occupants.sets, &self.hold, fanout.clock.now());
        fanout.publish_occupants(state, changes);
    }
}

impl Drop for PresenceGuard {
    fn drop(&mut self) {
        let fanout = self.hub.fanout();
        fanout.state.lock().occupants.sets.lose(&self.hold);
        fanout.occupants_changed.notify_one();
    }
}

impl Fanout {
    /// Enters a place. Returns whether the user came online by entering, or `None` if the reservation is no longer
    /// valid.
    pub(super) fn enter(
        &self,
        reservation: &Reservation,
        user: &UserId,
        hold: &Hold,
        place: &Path,
        access: Access,
        update: OccupantUpdate,
    ) -> Option<Result<bool, Refusal>> {
        let state = &mut *self.state.lock();
        if !reservation.is_valid() {
            return None;
        }
        let was_present = state.is_present(user);
        let changed = match state.occupants.sets.enter(hold, place, access, update, self.clock.now()) {
            Ok(Some(changed)) => changed,
            Ok(None) => return Some(Ok(false)),
            Err(refusal) => return Some(Err(refusal)),
        };
        state.departures.cancel(user);
        self.publish_occupants(state, vec![changed]);
        Some(Ok(!was_present))
    }
}
