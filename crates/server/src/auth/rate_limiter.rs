//! How often somebody may try.

use governor::clock::{Clock, DefaultClock};
use governor::middleware::StateInformationMiddleware;
use governor::state::keyed::DefaultKeyedStateStore;
use governor::{Quota, RateLimiter};
use parlor_model::Refusal;
use std::hash::Hash;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct KeyedRateLimiter<Key: Hash + Eq + Clone> {
    limiter: Option<Limiter<Key>>,
    most: u32,
    /// Forgets addresses now and then, so that passers-by do not pile up.
    since_cleaning: AtomicU32,
}

type Limiter<Key> = RateLimiter<Key, DefaultKeyedStateStore<Key>, DefaultClock, StateInformationMiddleware>;

/// How often one may in all, and how often now.
pub struct RateLimitStatus {
    pub limit: u32,
    pub remaining: u32,
}

impl<Key: Hash + Eq + Clone> KeyedRateLimiter<Key> {
    pub fn per_minute(most: Option<u32>) -> Self {
        let most = most.and_then(NonZeroU32::new);
        let limiter = |most| RateLimiter::keyed(Quota::per_minute(most)).with_middleware();
        Self {
            limiter: most.map(limiter),
            most: most.map_or(0, NonZeroU32::get),
            since_cleaning: AtomicU32::new(0),
        }
    }

    pub fn is_on(&self) -> bool {
        self.limiter.is_some()
    }

    pub fn most(&self) -> u32 {
        self.most
    }

    /// `None` where nothing is limited.
    pub fn take(&self, key: &Key) -> Result<Option<RateLimitStatus>, Refusal> {
        let Some(limiter) = &self.limiter else { return Ok(None) };
        if self.since_cleaning.fetch_add(1, Ordering::Relaxed) % 1024 == 1023 {
            limiter.retain_recent();
        }
        match limiter.check_key(key) {
            Ok(state) => {
                Ok(Some(RateLimitStatus { limit: self.most, remaining: state.remaining_burst_capacity() }))
            }
            Err(until) => {
                Err(Refusal::RateLimited { retry_after: until.wait_time_from(DefaultClock::default().now()) })
            }
        }
    }
}

impl KeyedRateLimiter<IpAddr> {
    pub fn check(&self, address: IpAddr) -> Result<(), Refusal> {
        self.take(&network(address)).map(drop)
    }
}

/// One household has a whole /64 of IPv6.
pub fn network(address: IpAddr) -> IpAddr {
    match address.to_canonical() {
        IpAddr::V4(address) => IpAddr::V4(address),
        IpAddr::V6(address) => {
            let mut segments = address.segments();
            segments[4..].fill(0);
            IpAddr::V6(segments.into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(address: &str, expected: &str) {
        assert_eq!(network(address.parse().unwrap()), expected.parse::<IpAddr>().unwrap());
    }

    #[test]
    fn a_household_is_one_address_of_the_old_kind_or_64_bits_of_the_new() {
        check("192.0.2.7", "192.0.2.7");
        check("::ffff:192.0.2.7", "192.0.2.7");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check("2001:db8:1:2:ffff::1", "2001:db8:1:2::");
    }
}
