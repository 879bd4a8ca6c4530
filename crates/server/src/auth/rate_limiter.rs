//! Rate limiter: requests per minute for each key, such as a user or a network address.

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
    limit: u32,
    /// Requests since expired keys were last removed, which happens every 1024 requests to bound memory.
    since_cleanup: AtomicU32,
}

type Limiter<Key> = RateLimiter<Key, DefaultKeyedStateStore<Key>, DefaultClock, StateInformationMiddleware>;

/// Limit per minute, and how many requests remain now.
pub struct RateLimitStatus {
    pub limit: u32,
    pub remaining: u32,
}

impl<Key: Hash + Eq + Clone> KeyedRateLimiter<Key> {
    pub fn per_minute(limit: Option<u32>) -> Self {
        let limit = limit.and_then(NonZeroU32::new);
        let limiter = |limit| RateLimiter::keyed(Quota::per_minute(limit)).with_middleware();
        Self {
            limiter: limit.map(limiter),
            limit: limit.map_or(0, NonZeroU32::get),
            since_cleanup: AtomicU32::new(0),
        }
    }

    pub fn is_enabled(&self) -> bool {
        self.limiter.is_some()
    }

    pub fn limit(&self) -> u32 {
        self.limit
    }

    /// Counts one request. `None` if the limiter is disabled.
    pub fn take(&self, key: &Key) -> Result<Option<RateLimitStatus>, Refusal> {
        let Some(limiter) = &self.limiter else { return Ok(None) };
        if self.since_cleanup.fetch_add(1, Ordering::Relaxed) % 1024 == 1023 {
            limiter.retain_recent();
        }
        match limiter.check_key(key) {
            Ok(state) => {
                Ok(Some(RateLimitStatus { limit: self.limit, remaining: state.remaining_burst_capacity() }))
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

/// The network that rate limits count: an IPv4 address, or a /64 prefix of IPv6, as one customer usually has
/// a whole /64.
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
    fn a_network_is_one_ipv4_address_or_an_ipv6_64_prefix() {
        check("192.0.2.7", "192.0.2.7");
        check("::ffff:192.0.2.7", "192.0.2.7");
        check("2001:db8:1:2:3:4:5:6", "2001:db8:1:2::");
        check("2001:db8:1:2:ffff::1", "2001:db8:1:2::");
    }
}
