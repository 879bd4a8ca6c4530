//! Reservations of subscriptions that are being opened: the rights of a subscriber are read from the store without the
//! fan-out's lock, and an event that may change them in the meantime makes the reservation invalid.
//!
//! Every change up to the reservation is in a snapshot that is read after it, and every later one invalidates the
//! reservation when it is published. So a valid reservation proves that the rights are those of the published state,
//! once the fan-out has reached the snapshot.

use parlor_model::{AgentId, Event, MemberChange, UserId};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};

pub struct Reservation {
    user: UserId,
    /// Agent whose mailbox is subscribed to.
    agent: Option<AgentId>,
    /// Written and read under the fan-out's lock only.
    invalid: AtomicBool,
}

impl Reservation {
    pub fn is_valid(&self) -> bool {
        !self.invalid.load(Ordering::Relaxed)
    }

    fn is_affected(&self, affected: &Affected<'_>) -> bool {
        match affected {
            Affected::User(user) => **user == self.user,
            Affected::People(people) => people.is_empty() || people.contains(&self.user),
            Affected::Agent(agent) => self.agent.as_ref() == Some(*agent),
        }
    }
}

/// Users whose rights an event may change.
enum Affected<'a> {
    User(&'a UserId),
    /// These users; all users if the list is empty, because a removal that was read from the log names none.
    People(&'a [UserId]),
    /// The owner of the agent.
    Agent(&'a AgentId),
}

/// Returns the users whose rights the event may change. Too many cost another read; too few would leave a
/// subscription without its right.
fn affected_by(event: &Event) -> Option<Affected<'_>> {
    match event {
        Event::MembersChanged { change, .. } => {
            let (MemberChange::Added(member) | MemberChange::Changed(member) | MemberChange::Removed(member)) =
                change;
            member.user().map(Affected::User)
        }
        Event::RoomRemoved { people, .. } => Some(Affected::People(people)),
        Event::UserChanged { user, .. } => Some(Affected::User(&user.id)),
        Event::UserRemoved(user)
        | Event::SignInsEnded(user)
        | Event::SignInEnded { user, .. }
        | Event::KeyRevoked { user, .. } => Some(Affected::User(user)),
        Event::AgentChanged { agent, .. } => Some(Affected::Agent(&agent.id)),
        Event::AgentRemoved { agent, .. } => Some(Affected::Agent(agent)),
        Event::MessagePosted { .. }
        | Event::MessageEdited(_)
        | Event::MessageDeleted { .. }
        | Event::ReactionsChanged { .. }
        | Event::MessagePinned(_)
        | Event::MessageUnpinned { .. }
        | Event::BookmarkChanged { .. }
        | Event::RoomChanged(_)
        | Event::RoomRead { .. }
        | Event::RoomPreferencesChanged(_)
        | Event::RoomCleared { .. }
        | Event::TaskChanged(_)
        | Event::TaskRemoved { .. }
        | Event::SettingsChanged
        | Event::RunChanged(_)
        | Event::ApprovalAsked(_)
        | Event::ApprovalDecided(_)
        | Event::PlanChanged(_)
        | Event::Tombstone => None,
    }
}

/// The open reservations. Weak, so that an abandoned one leaves nothing behind.
#[derive(Default)]
pub struct Reservations {
    open: Vec<Weak<Reservation>>,
    /// Number of entries from which abandoned ones are removed.
    cleaned_at: usize,
}

impl Reservations {
    pub fn add(&mut self, user: &UserId, agent: Option<&AgentId>) -> Arc<Reservation> {
        if self.open.len() >= self.cleaned_at {
            self.open.retain(|reservation| reservation.strong_count() > 0);
            self.cleaned_at = 16 + 2 * self.open.len();
        }
        let (user, agent) = (user.clone(), agent.cloned());
        let reservation = Arc::new(Reservation { user, agent, invalid: AtomicBool::new(false) });
        self.open.push(Arc::downgrade(&reservation));
        reservation
    }

    pub fn apply_event(&mut self, event: &Event) {
        let Some(affected) = affected_by(event) else { return };
        self.open.retain(|reservation| match reservation.upgrade() {
            Some(reservation) if reservation.is_affected(&affected) => {
                reservation.invalid.store(true, Ordering::Relaxed);
                false
            }
            Some(_) => true,
            None => false,
        });
    }
}
