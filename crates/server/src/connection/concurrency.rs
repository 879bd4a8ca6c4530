//! Limits on concurrent connections and uploads: in total, per user and per address.

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
    /// Trusted proxies, which have no limit per address because they carry the connections of many clients.
    proxies: Vec<Network>,
}

#[derive(Default)]
struct Counts {
    total: usize,
    open: usize,
    connections: HashMap<IpAddr, usize>,
    users: HashMap<UserId, usize>,
    unauthenticated: HashMap<IpAddr, usize>,
}

/// Permit of one connection or upload; releases its slot when dropped.
pub struct ConcurrencyPermit {
    counts: Arc<Mutex<Counts>>,
    owner: PermitOwner,
}

enum PermitOwner {
    User(UserId),
    Unauthenticated(IpAddr),
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

    /// Limiter for operations of authenticated users only, such as uploads.
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

    /// Counts a new HTTP connection, until it ends or becomes a WebSocket.
    pub fn connection(&self, address: IpAddr) -> Result<ConcurrencyPermit, Refusal> {
        let limited = !self.proxies.iter().any(|proxy| proxy.contains(address));
        let address = limited.then(|| network(address));
        let mut counts = self.counts.lock();
        if let Some(address) = address {
            let count = counts.connections.get(&address).copied().unwrap_or_default();
            if self.connections_per_address.is_some_and(|max| count >= max) {
                return Err(Refusal::TooManyConnections);
            }
            counts.connections.insert(address, count + 1);
        }
        counts.open += 1;
        Ok(ConcurrencyPermit { counts: self.counts.clone(), owner: PermitOwner::Connection(address) })
    }

    /// Number of open HTTP connections that are not WebSockets.
    pub fn open(&self) -> usize {
        self.counts.lock().open
    }

    /// Counts a WebSocket that has not authenticated yet.
    pub fn unauthenticated(&self, address: IpAddr) -> Result<ConcurrencyPermit, Refusal> {
        let mut counts = self.counts.lock();
        let count = counts.unauthenticated.entry(address).or_default();
        if self.unauthenticated_per_address.is_some_and(|max| *count >= max) {
            return Err(Refusal::TooManyConnections);
        }
        *count += 1;
        Ok(ConcurrencyPermit { counts: self.counts.clone(), owner: PermitOwner::Unauthenticated(address) })
    }

    /// Counts a connection or upload of a user. `user_limit` overrides the configured limit per user.
    pub fn user(&self, user: &UserId, user_limit: Option<u32>) -> Result<ConcurrencyPermit, Refusal> {
        let mut counts = self.counts.lock();
        if self.total.is_some_and(|max| counts.total >= max) {
            return Err(Refusal::AtCapacity);
        }
        let max = match (self.per_user, user_limit) {
            (Some(_), Some(user_limit)) => Some(user_limit as usize),
            (max, _) => max,
        };
        let count = counts.users.get(user).copied().unwrap_or_default();
        if max.is_some_and(|max| count >= max) {
            return Err(Refusal::TooManyConnections);
        }
        counts.total += 1;
        counts.users.insert(user.clone(), count + 1);
        Ok(ConcurrencyPermit { counts: self.counts.clone(), owner: PermitOwner::User(user.clone()) })
    }
}

impl Drop for ConcurrencyPermit {
    fn drop(&mut self) {
        let mut counts = self.counts.lock();
        match &self.owner {
            PermitOwner::User(user) => {
                counts.total -= 1;
                count_down(&mut counts.users, user);
            }
            PermitOwner::Unauthenticated(address) => count_down(&mut counts.unauthenticated, address),
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
