//! Nonces of used token requests, in memory, so that each request is accepted once.

use parking_lot::Mutex;
use parlor_model::{KeyId, Time};
use std::collections::HashMap;
use std::time::Duration;

/// Maximum difference between the clocks of client and hub in a token request.
pub const WINDOW: Duration = Duration::from_secs(15 * 60);
/// Maximum number of remembered requests. Only holders of a key can fill the memory.
const MAX_NONCES: usize = 100_000;

/// Used nonces by key, with the time at which the hub rejects the timestamp of their request.
#[derive(Default)]
pub struct Nonces(Mutex<HashMap<(KeyId, Box<str>), Time>>);

/// Reason for which a nonce is rejected.
#[derive(Debug, PartialEq, Eq)]
pub enum Rejected {
    Replayed,
    /// Too many requests within the window.
    Full,
}

impl Nonces {
    /// Remembers the nonce of a verified request.
    pub fn take(&self, key: &KeyId, nonce: &str, now: Time) -> Result<(), Rejected> {
        let mut used = self.0.lock();
        let entry = (key.clone(), nonce.into());
        if used.get(&entry).is_some_and(|until| *until > now) {
            return Err(Rejected::Replayed);
        }
        if used.len() >= MAX_NONCES {
            used.retain(|_, until| *until > now);
            if used.len() >= MAX_NONCES {
                return Err(Rejected::Full);
            }
        }
        // A timestamp may be up to a window in the future, and is accepted up to a window after it.
        used.insert(entry, now.plus(2 * WINDOW));
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_nonce_is_accepted_once_per_key() {
        let (nonces, a, b) = (Nonces::default(), KeyId::stored("a"), KeyId::stored("b"));
        assert_eq!(nonces.take(&a, "n", Time(0)), Ok(()));
        assert_eq!(nonces.take(&a, "n", Time(0).plus(2 * WINDOW).minus(WINDOW)), Err(Rejected::Replayed));
        assert_eq!(nonces.take(&b, "n", Time(0)), Ok(()));
        assert_eq!(nonces.take(&a, "n", Time(0).plus(2 * WINDOW)), Ok(()));
    }

    #[test]
    fn the_memory_is_bounded() {
        let (nonces, key) = (Nonces::default(), KeyId::stored("a"));
        for number in 0..MAX_NONCES {
            assert_eq!(nonces.take(&key, &number.to_string(), Time(0)), Ok(()));
        }
        assert_eq!(nonces.take(&key, "more", Time(1)), Err(Rejected::Full));
        assert_eq!(nonces.take(&key, "more", Time(0).plus(2 * WINDOW)), Ok(()));
    }
}
