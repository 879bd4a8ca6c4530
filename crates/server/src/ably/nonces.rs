//! Nonces of used token requests, in memory, so that each request is accepted once.
//!
//! After a restart the nonces are lost, so the hub refuses requests that were signed clearly before its start.

use parking_lot::Mutex;
use parlor_model::{KeyId, Time};
use std::collections::HashMap;
use std::time::Duration;

/// Maximum difference between the clocks of client and hub in a token request.
pub const WINDOW: Duration = Duration::from_secs(15 * 60);
/// Time before the start of the hub from which on requests are accepted: a client's clock may be this much behind.
const START_TOLERANCE: Duration = Duration::from_secs(60);
/// Maximum number of remembered requests of one key.
const MAX_OF_KEY: usize = 20_000;
/// Number of requests that each key can use while other keys use all of `MAX_SHARED`.
const RESERVED: usize = 1_000;
/// Maximum number of remembered requests beyond `RESERVED` of each key, of all keys.
const MAX_SHARED: usize = 100_000;

/// Used nonces.
pub struct Nonces {
    /// Time from which on a request is accepted.
    accepted_from: Time,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// Nonces by key, with the time at which the hub rejects the timestamp of their request.
    by_key: HashMap<KeyId, HashMap<Box<str>, Time>>,
    /// Number of nonces beyond `RESERVED` of each key.
    shared: usize,
    /// End of the nonce that expires first, as far as known: a search before it would remove nothing.
    expires_first: Option<Time>,
}

/// Reason for which a nonce is rejected.
#[derive(Debug, PartialEq, Eq)]
pub enum Rejected {
    Replayed,
    /// The request may have been used before the hub started.
    BeforeStart,
    /// Too many requests within the window.
    Full,
}

impl Nonces {
    pub fn new(hub_started: Time) -> Self {
        Self { accepted_from: hub_started.minus(START_TOLERANCE), state: Mutex::default() }
    }

    /// Remembers the nonce of a verified request with this timestamp.
    pub fn take(&self, key: &KeyId, nonce: &str, signed_at: Time, now: Time) -> Result<(), Rejected> {
        if signed_at < self.accepted_from {
            return Err(Rejected::BeforeStart);
        }
        let mut state = self.state.lock();
        let used = state.by_key.entry(key.clone()).or_default();
        if used.get(nonce).is_some_and(|until| *until > now) {
            return Err(Rejected::Replayed);
        }
        if is_full(used.len(), state.shared) {
            state.remove_expired(now);
            let used = state.by_key.get(key).map_or(0, HashMap::len);
            if is_full(used, state.shared) {
                return Err(Rejected::Full);
            }
        }
        let state = &mut *state;
        let used = state.by_key.entry(key.clone()).or_default();
        // A timestamp may be up to a window in the future, and is accepted up to a window after it.
        let until = now.plus(2 * WINDOW);
        let is_first = used.insert(nonce.into(), until).is_none();
        state.shared += usize::from(is_first && used.len() > RESERVED);
        state.expires_first = Some(state.expires_first.map_or(until, |first| first.min(until)));
        Ok(())
    }
}

impl State {
    fn remove_expired(&mut self, now: Time) {
        if self.expires_first.is_none_or(|first| first > now) {
            return;
        }
        self.by_key.retain(|_, used| {
            used.retain(|_, until| *until > now);
            !used.is_empty()
        });
        self.shared = self.by_key.values().map(|used| used.len().saturating_sub(RESERVED)).sum();
        self.expires_first = self.by_key.values().flat_map(HashMap::values).min().copied();
    }
}

/// Whether a key with `used` requests can use no further one.
fn is_full(used: usize, shared: usize) -> bool {
    used >= MAX_OF_KEY || (used >= RESERVED && shared >= MAX_SHARED)
}

#[cfg(test)]
mod tests {
    use super::*;

    const START: Time = Time(1_800_000_000_000_000);

    fn nonces() -> (Nonces, KeyId, KeyId) {
        (Nonces::new(START), KeyId::stored("a"), KeyId::stored("b"))
    }

    #[test]
    fn a_nonce_is_accepted_once_per_key() {
        let (nonces, a, b) = nonces();
        assert_eq!(nonces.take(&a, "n", START, START), Ok(()));
        assert_eq!(nonces.take(&a, "n", START, START.plus(WINDOW)), Err(Rejected::Replayed));
        assert_eq!(nonces.take(&b, "n", START, START), Ok(()));
        let later = START.plus(2 * WINDOW);
        assert_eq!(nonces.take(&a, "n", later, later), Ok(()));
    }

    #[test]
    fn a_request_that_may_have_been_used_before_the_start_is_refused() {
        let (nonces, key, _) = nonces();
        let before = START.minus(START_TOLERANCE).minus(Duration::from_millis(1));
        assert_eq!(nonces.take(&key, "n", before, START), Err(Rejected::BeforeStart));
        assert_eq!(nonces.take(&key, "n", START.minus(START_TOLERANCE), START), Ok(()));
    }

    #[test]
    fn a_key_that_uses_all_of_its_requests_does_not_block_another() {
        let (nonces, a, b) = nonces();
        for number in 0..MAX_OF_KEY {
            assert_eq!(nonces.take(&a, &number.to_string(), START, START), Ok(()));
        }
        assert_eq!(nonces.take(&a, "more", START, START), Err(Rejected::Full));
        assert_eq!(nonces.take(&b, "more", START, START), Ok(()));
        let later = START.plus(2 * WINDOW);
        assert_eq!(nonces.take(&a, "more", later, later), Ok(()));
    }

    #[test]
    fn the_memory_is_bounded_and_every_key_has_its_reserved_requests() {
        let (nonces, ..) = nonces();
        let key = |number: usize| KeyId::stored(format!("key {number}"));
        let greedy = MAX_SHARED.div_ceil(MAX_OF_KEY - RESERVED);
        for holder in 0..greedy {
            for number in 0..MAX_OF_KEY {
                let _ = nonces.take(&key(holder), &number.to_string(), START, START);
            }
        }
        let other = key(greedy);
        for number in 0..RESERVED {
            assert_eq!(nonces.take(&other, &number.to_string(), START, START), Ok(()));
        }
        assert_eq!(nonces.take(&other, "more", START, START), Err(Rejected::Full));
        assert_eq!(nonces.state.lock().shared, MAX_SHARED);
    }
}
