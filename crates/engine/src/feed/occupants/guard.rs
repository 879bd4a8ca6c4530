//! Members of one connection, and the grace period after the connection is lost.

use super::{OccupantHistory, OccupantRecord, OccupantUpdate};
use crate::Hub;
use crate::feed::Session;
use parlor_model::{Caller, Occupant, Path, Refusal};
use std::sync::Arc;

/// The members of a connection. Dropping it begins their grace period (`Limits::occupant_grace`), after which they
/// leave unless [`Hub::resume_presence`] takes them over.
pub struct PresenceGuard {
    hub: Hub,
    caller: Caller,
    connection: Box<str>,
}

impl Hub {
    /// Begins the presence of a connection, or takes over its members after its socket was lost. The name identifies
    /// the connection on this hub; it is refused for members of another user.
    pub fn resume_presence(&self, caller: &Caller, connection: &str) -> Result<PresenceGuard, Refusal> {
        Ok(PresenceGuard { hub: self.clone(), caller: caller.clone(), connection: connection.into() })
    }

    /// The current members of a place.
    pub async fn occupants(&self, _caller: &Caller, _place: &Path) -> Result<Vec<Arc<Occupant>>, Refusal> {
        Err(Refusal::Unavailable)
    }

    /// Changes of a presence set that clients made: at most 1,000 of the last 2 minutes.
    pub async fn presence_history(
        &self,
        _caller: &Caller,
        _place: &Path,
        _history: OccupantHistory,
    ) -> Result<Vec<OccupantRecord>, Refusal> {
        Err(Refusal::Unavailable)
    }

    /// Makes every user who is online a derived member of this place. Set once, before the first connection.
    pub fn derive_users_in(&self, _place: &Path) {}
}

impl PresenceGuard {
    /// Enters a place, or updates the member if it is already there. A state that is older than the current one is
    /// ignored.
    pub async fn enter(&self, _place: &Path, _update: OccupantUpdate) -> Result<(), Refusal> {
        let _ = (&self.hub, &self.caller, &self.connection);
        Err(Refusal::Unavailable)
    }

    /// Leaves a place. Ignored if the member is not there, or if the departure is older than the member.
    pub fn leave(&self, _place: &Path, _update: OccupantUpdate) {}

    /// Removes the connection's members from a place, for example because its feed was closed.
    pub fn leave_place(&self, _place: &Path) {}

    /// Replaces the caller, whose credential may have other rights. Members leave the places that it may no longer
    /// be present in.
    pub async fn set_caller(&mut self, caller: &Caller) -> Result<(), Refusal> {
        self.caller = caller.clone();
        Ok(())
    }

    /// Ends the presence at once: the connection was closed by its client.
    pub fn close(self) {}
}

impl Session {
    /// Sends the complete presence set of an open place again.
    pub fn resend_occupants(&self, _place: &Path) {}
}
