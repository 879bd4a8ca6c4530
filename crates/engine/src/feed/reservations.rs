//! Reservations of subscriptions that are being opened: the rights of a subscriber are read from the store without the
//! fan-out's lock, and an event that may change them in the meantime makes the reservation invalid.
//!
//! Every change up to the reservation is in a snapshot that is read after it, and every later one invalidates the
//! reservation when it is published. So a valid reservation proves that the rights are those of the published state,
//! once the fan-out has reached the snapshot.

use parlor_model::{AgentId, Event, RightsHolder, UserId};
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

    fn is_affected(&self, affected: RightsHolder<'_>) -> bool {
        match affected {
            RightsHolder::User(user) => *user == self.user,
            RightsHolder::People(people) => people.is_empty() || people.contains(&self.user),
            RightsHolder::OwnerOf(agent) => self.agent.as_ref() == Some(agent),
        }
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
        let Some(affected) = event.changes_rights_of() else { return };
        self.open.retain(|reservation| match reservation.upgrade() {
            Some(reservation) if reservation.is_affected(affected) => {
                reservation.invalid.store(true, Ordering::Relaxed);
                false
            }
            Some(_) => true,
            None => false,
        });
    }
}
