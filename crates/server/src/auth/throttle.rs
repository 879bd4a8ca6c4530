//! How often one address may try.

use governor::clock::{Clock, DefaultClock};
use governor::{DefaultKeyedRateLimiter, Quota, RateLimiter};
use parlor_model::Refusal;
use std::net::IpAddr;
use std::num::NonZeroU32;
use std::sync::atomic::{AtomicU32, Ordering};

pub struct Throttle {
    limiter: Option<DefaultKeyedRateLimiter<IpAddr>>,
    /// Forgets addresses now and then, so that passers-by do not pile up.
    since_cleaning: AtomicU32,
}

impl Throttle {
    pub fn per_minute(most: Option<u32>) -> Self {
        let most = most.and_then(NonZeroU32::new);
        Self {
            limiter: most.map(|most| RateLimiter::keyed(Quota::per_minute(most))),
            since_cleaning: AtomicU32::new(0),
        }
    }

    pub fn check(&self, address: IpAddr) -> Result<(), Refusal> {
        let Some(limiter) = &self.limiter else { return Ok(()) };
        if self.since_cleaning.fetch_add(1, Ordering::Relaxed) % 1024 == 1023 {
            limiter.retain_recent();
        }
        limiter.check_key(&network(address)).map_err(|until| Refusal::RateLimited {
            retry_after: until.wait_time_from(DefaultClock::default().now()),
        })
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
