//! How many connections there are, of whom, and how many may be.

use crate::Config;
use parking_lot::Mutex;
use parlor_model::{Refusal, UserId};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

pub struct Census {
    counts: Arc<Mutex<Counts>>,
    per_user: Option<usize>,
    total: Option<usize>,
    unauthenticated_per_address: Option<usize>,
}

#[derive(Default)]
struct Counts {
    total: usize,
    users: HashMap<UserId, usize>,
    strangers: HashMap<IpAddr, usize>,
}

/// A counted connection; counts down when dropped.
pub struct Counted {
    counts: Arc<Mutex<Counts>>,
    who: Who,
}

enum Who {
    User(UserId),
    Stranger(IpAddr),
}

impl Census {
    pub fn new(config: &Config) -> Self {
        Self {
            counts: Arc::default(),
            per_user: config.connections_per_user,
            total: config.connections_total,
            unauthenticated_per_address: config.unauthenticated_per_address,
        }
    }

    /// For what only people do who have said who they are.
    pub fn of(per_user: usize, total: usize) -> Self {
        let (per_user, total) = (Some(per_user), Some(total));
        Self { counts: Arc::default(), per_user, total, unauthenticated_per_address: None }
    }

    /// Somebody who has not said who they are.
    pub fn stranger(&self, address: IpAddr) -> Result<Counted, Refusal> {
        let mut counts = self.counts.lock();
        let known = counts.strangers.entry(address).or_default();
        if self.unauthenticated_per_address.is_some_and(|most| *known >= most) {
            return Err(Refusal::TooManyConnections);
        }
        *known += 1;
        Ok(Counted { counts: self.counts.clone(), who: Who::Stranger(address) })
    }

    /// `own` overrides the limit for this person.
    pub fn user(&self, user: &UserId, own: Option<u32>) -> Result<Counted, Refusal> {
        let mut counts = self.counts.lock();
        if self.total.is_some_and(|most| counts.total >= most) {
            return Err(Refusal::AtCapacity);
        }
        let most = match (self.per_user, own) {
            (Some(_), Some(own)) => Some(own as usize),
            (most, _) => most,
        };
        let known = counts.users.get(user).copied().unwrap_or_default();
        if most.is_some_and(|most| known >= most) {
            return Err(Refusal::TooManyConnections);
        }
        counts.total += 1;
        counts.users.insert(user.clone(), known + 1);
        Ok(Counted { counts: self.counts.clone(), who: Who::User(user.clone()) })
    }
}

impl Drop for Counted {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        match &self.who {
            Who::User(user) => {
                counts.total -= 1;
                count_down(&mut counts.users, user);
            }
            Who::Stranger(address) => count_down(&mut counts.strangers, address),
        }
    }
}

fn count_down<Key: Hash + Eq>(counts: &mut HashMap<Key, usize>, key: &Key) {
    if let Some(count) = counts.get_mut(key) {
        *count -= 1;
        if *count == 0 {
            counts.remove(key);
        }
    }
}
