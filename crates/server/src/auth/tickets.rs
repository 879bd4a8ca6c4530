//! Tickets for clients that cannot send an `Authorization` header: valid for one event stream and for 30
//! seconds.
//!
//! A ticket is part of a URL, which ends up in logs and histories; there it is worthless, because it works
//! once and expires soon.

use super::secrets;
use parking_lot::Mutex;
use parlor_model::{Caller, Refusal, SecretHash};
use std::collections::HashMap;
use std::time::{Duration, Instant};

/// Lifetime of an unused ticket.
pub const TICKET_TTL: Duration = Duration::from_secs(30);
/// Maximum unused tickets of one user.
const MAX_TICKETS_PER_USER: usize = 100;
/// Maximum unused tickets of all users.
const MAX_TICKETS: usize = 10_000;

#[derive(Default)]
pub struct Tickets {
    issued: Mutex<HashMap<SecretHash, (Caller, Instant)>>,
}

impl Tickets {
    pub fn issue(&self, caller: &Caller, now: Instant) -> Result<String, Refusal> {
        let mut issued = self.issued.lock();
        issued.retain(|_, (_, until)| *until > now);
        let own = issued.values().filter(|(other, _)| other.user() == caller.user()).count();
        if own >= MAX_TICKETS_PER_USER || issued.len() >= MAX_TICKETS {
            return Err(Refusal::RateLimited { retry_after: TICKET_TTL });
        }
        let ticket = secrets::ticket();
        issued.insert(secrets::hash(&ticket), (caller.clone(), now + TICKET_TTL));
        Ok(ticket)
    }

    /// Returns the caller of a valid ticket and invalidates the ticket.
    pub fn take(&self, ticket: &str, now: Instant) -> Option<Caller> {
        let (caller, until) = self.issued.lock().remove(&secrets::hash(ticket))?;
        (until > now).then_some(caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{SignInId, UserId};

    #[test]
    fn a_ticket_is_valid_once_and_until_it_expires() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let ann = Caller::person(UserId::stored("ann"), SignInId::stored("s"));
        let ticket = tickets.issue(&ann, now).unwrap();
        assert_eq!(tickets.take("another", now), None);
        assert_eq!(tickets.take(&ticket, now), Some(ann.clone()));
        assert_eq!(tickets.take(&ticket, now), None, "a ticket must work only once");
        let late = tickets.issue(&ann, now).unwrap();
        assert_eq!(tickets.take(&late, now + TICKET_TTL), None);
        for _ in 0..MAX_TICKETS_PER_USER {
            tickets.issue(&ann, now).unwrap();
        }
        assert!(tickets.issue(&ann, now).is_err());
        assert!(tickets.issue(&ann, now + TICKET_TTL).is_ok(), "expired tickets must not count");
    }
}
