//! How many connections there are, of whom, and how many may be.

use crate::Config;
use crate::auth::rate_limiter::network;
use crate::http::forwarded::Network;
use parking_lot::Mutex;
use parlor_model::{Refusal, UserId};
use std::collections::HashMap;
use std::hash::Hash;
use std::net::IpAddr;
use std::sync::Arc;

pub struct ConcurrencyLimiter {
    counts: Arc<Mutex<Counts>>,
    per_user: Option<usize>,
    total: Option<usize>,
    unauthenticated_per_address: Option<usize>,
    connections_per_address: Option<usize>,
    /// They bring everybody's connections.
    proxies: Vec<Network>,
}

#[derive(Default)]
struct Counts {
    total: usize,
    open: usize,
    connections: HashMap<IpAddr, usize>,
    users: HashMap<UserId, usize>,
    strangers: HashMap<IpAddr, usize>,
}

/// A counted connection; counts down when dropped.
pub struct ConcurrencyPermit {
    counts: Arc<Mutex<Counts>>,
    who: PermitOwner,
}

enum PermitOwner {
    User(UserId),
    Stranger(IpAddr),
    Connection(Option<IpAddr>),
}

impl ConcurrencyLimiter {
    pub fn new(config: &Config) -> Self {
        Self {
            counts: Arc::default(),
            per_user: config.connections_per_user,
            total: config.connections_total,
            unauthenticated_per_address: config.unauthenticated_per_address,
            connections_per_address: config.connections_per_address,
            proxies: config.trusted_proxies.clone(),
        }
    }

    /// For what only people do who have said who they are.
    pub fn of(per_user: usize, total: usize) -> Self {
        Self {
            counts: Arc::default(),
            per_user: Some(per_user),
            total: Some(total),
            unauthenticated_per_address: None,
            connections_per_address: None,
            proxies: Vec::new(),
        }
    }

    /// A connection that was just made, from its handshake until it ends or becomes a socket.
    pub fn connection(&self, address: IpAddr) -> Result<ConcurrencyPermit, Refusal> {
        let counted = !self.proxies.iter().any(|proxy| proxy.contains(address));
        let address = counted.then(|| network(address));
        let mut counts = self.counts.lock();
        if let Some(address) = address {
            let known = counts.connections.get(&address).copied().unwrap_or_default();
            if self.connections_per_address.is_some_and(|most| known >= most) {
                return Err(Refusal::TooManyConnections);
            }
            counts.connections.insert(address, known + 1);
        }
        counts.open += 1;
        Ok(ConcurrencyPermit { counts: self.counts.clone(), who: PermitOwner::Connection(address) })
    }

    /// How many connections are open that are no sockets.
    pub fn open(&self) -> usize {
        self.counts.lock().open
    }

    /// Somebody who has not said who they are.
    pub fn unauthenticated(&self, address: IpAddr) -> Result<ConcurrencyPermit, Refusal> {
        let mut counts = self.counts.lock();
        let known = counts.strangers.entry(address).or_default();
        if self.unauthenticated_per_address.is_some_and(|most| *known >= most) {
            return Err(Refusal::TooManyConnections);
        }
        *known += 1;
        Ok(ConcurrencyPermit { counts: self.counts.clone(), who: PermitOwner::Stranger(address) })
    }

    /// `own` overrides the limit for this person.
    pub fn user(&self, user: &UserId, own: Option<u32>) -> Result<ConcurrencyPermit, Refusal> {
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
        Ok(ConcurrencyPermit { counts: self.counts.clone(), who: PermitOwner::User(user.clone()) })
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        match &self.who {
            PermitOwner::User(user) => {
                counts.total -= 1;
                count_down(&mut counts.users, user);
            }
            PermitOwner::Stranger(address) => count_down(&mut counts.strangers, address),
            PermitOwner::Connection(address) => {
                counts.open -= 1;
                if let Some(address) = address {
                    count_down(&mut counts.connections, address);
                }
            }
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
