//! Tickets for who cannot send a header: good for one stream, and for half a minute.
//!
//! A ticket stands in an address, which ends up in logs and histories; by then it is worth nothing.

use super::secrets;
use parking_lot::Mutex;
use parlor_model::{Caller, Refusal, SecretHash};
use std::collections::HashMap;
use std::time::{Duration, Instant};

pub const GOOD_FOR: Duration = Duration::from_secs(30);
/// Of one person, and in all.
const MOST: (usize, usize) = (100, 10_000);

#[derive(Default)]
pub struct Tickets {
    given: Mutex<HashMap<SecretHash, (Caller, Instant)>>,
}

impl Tickets {
    pub fn give(&self, caller: &Caller, now: Instant) -> Result<String, Refusal> {
        let mut given = self.given.lock();
        given.retain(|_, (_, until)| *until > now);
        let own = given.values().filter(|(other, _)| other.user() == caller.user()).count();
        if own >= MOST.0 || given.len() >= MOST.1 {
            return Err(Refusal::RateLimited { retry_after: GOOD_FOR });
        }
        let ticket = secrets::ticket();
        given.insert(secrets::hash(&ticket), (caller.clone(), now + GOOD_FOR));
        Ok(ticket)
    }

    /// Whose it is; nobody's afterwards.
    pub fn take(&self, ticket: &str, now: Instant) -> Option<Caller> {
        let (caller, until) = self.given.lock().remove(&secrets::hash(ticket))?;
        (until > now).then_some(caller)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{SignInId, UserId};

    #[test]
    fn a_ticket_is_good_once_and_not_for_long() {
        let (tickets, now) = (Tickets::default(), Instant::now());
        let ann = Caller::person(UserId::stored("ann"), SignInId::stored("s"));
        let ticket = tickets.give(&ann, now).unwrap();
        assert_eq!(tickets.take("another", now), None);
        assert_eq!(tickets.take(&ticket, now), Some(ann.clone()));
        assert_eq!(tickets.take(&ticket, now), None, "it is spent");
        let late = tickets.give(&ann, now).unwrap();
        assert_eq!(tickets.take(&late, now + GOOD_FOR), None);
        for _ in 0..MOST.0 {
            tickets.give(&ann, now).unwrap();
        }
        assert!(tickets.give(&ann, now).is_err());
        assert!(tickets.give(&ann, now + GOOD_FOR).is_ok(), "the old ones are forgotten");
    }
}
