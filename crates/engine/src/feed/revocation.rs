//! End of subscriptions: disconnects, revoked and expired credentials, shutdown.

use super::fanout::{Fanout, FanoutState};
use super::{DisconnectReason, Subscriber, SubscriberId};
use crate::Hub;
use parlor_model::{Caller, Principal, Refusal, UserId};
use std::collections::HashSet;

/// Maximum number of credentials that one read checks.
const CHECKED_PER_READ: usize = 256;

impl Hub {
    /// Closes the connections whose sign-in has expired. The presence loop calls it once a minute. A credential that is
    /// revoked, or whose owner no longer has a necessary role, needs no check: its event closes the connections at
    /// once.
    pub async fn end_expired_sessions(&self) -> Result<(), Refusal> {
        let principals: Vec<Principal> = self.fanout().principals().into_iter().collect();
        for some in principals.chunks(CHECKED_PER_READ) {
            let some = some.to_vec();
            let expired = self.read_snapshot(move |hub, snapshot| {
                let mut expired = Vec::new();
                for principal in &some {
                    let caller = Caller { principal: principal.clone(), address: None, grant: None };
                    if hub.with_view(&caller, snapshot, |caller, _| Ok(caller.auth.is_none()))? {
                        expired.push(principal.clone());
                    }
                }
                Ok(expired)
            });
            self.fanout().end(&expired.await?);
        }
        Ok(())
    }
}

impl Fanout {
    /// The identities of all connections whose credential can expire.
    fn principals(&self) -> HashSet<Principal> {
        let state = self.state.lock();
        let principals = state.subscribers.values().map(|subscriber| &subscriber.principal);
        let principals = principals.chain(state.occupants.principals());
        let can_expire = |principal: &&Principal| {
            matches!(principal, Principal::Person { .. } | Principal::Program { .. })
        };
        principals.filter(can_expire).cloned().collect()
    }

    /// Closes the connections with these credentials.
    pub(super) fn end(&self, expired: &[Principal]) {
        let mut state = self.state.lock();
        for principal in expired {
            if let Principal::Person { user, .. } | Principal::Program { user, .. } = principal {
                state.end(user, |own| own == principal);
            }
        }
        self.publish_ended_occupants(&mut state);
    }

    /// Closes every connection with a shutdown frame.
    pub fn shut_down(&self) {
        let mut state = self.state.lock();
        let all: Vec<SubscriberId> = state.subscribers.keys().copied().collect();
        for subscriber in all.into_iter().filter_map(|id| state.remove(id)) {
            subscriber.outbox.disconnect(DisconnectReason::ShuttingDown);
        }
    }
}

impl FanoutState {
    /// The connections of a user that may receive events now.
    pub(super) fn subscribers_of(&self, user: &UserId) -> Vec<Subscriber> {
        let all = self.all_subscribers_of(user);
        all.filter(|subscriber| self.receives_events(subscriber)).cloned().collect()
    }

    pub(super) fn receives_events(&self, subscriber: &Subscriber) -> bool {
        let is_subscribed = !subscriber.only_follows || self.following.contains_key(&subscriber.id);
        is_subscribed && !self.write_only.contains(&subscriber.id)
    }

    pub(super) fn all_subscribers_of(&self, user: &UserId) -> impl Iterator<Item = &Subscriber> {
        let ids = self.by_user.get(user).map(Vec::as_slice).unwrap_or_default();
        ids.iter().filter_map(|id| self.subscribers.get(id))
    }

    pub(super) fn remove(&mut self, id: SubscriberId) -> Option<Subscriber> {
        let subscriber = self.subscribers.remove(&id)?;
        if let Some(ids) = self.by_user.get_mut(&subscriber.user) {
            ids.retain(|other| *other != id);
            if ids.is_empty() {
                self.by_user.remove(&subscriber.user);
            }
        }
        self.write_only.remove(&id);
        self.rooms.remove_everywhere(id);
        self.owners.remove_everywhere(id);
        self.paths.remove_everywhere(id);
        self.on_paths_by_role.remove(&id);
        self.following.remove(&id);
        self.mailboxes.remove_everywhere(id);
        if subscriber.present && !self.is_present(&subscriber.user) {
            self.departures.add(subscriber.user.clone());
        }
        if subscriber.derives_members() && !self.derives_members(&subscriber.user) {
            self.occupants.departed(&subscriber.user);
        }
        Some(subscriber)
    }

    /// Closes the connections of a user that follow paths by a role that the user no longer has.
    pub(super) fn end_paths_by_role(&mut self, user: &UserId) {
        let ids: Vec<SubscriberId> = self
            .all_subscribers_of(user)
            .map(|subscriber| subscriber.id)
            .filter(|id| self.on_paths_by_role.contains(id))
            .collect();
        for subscriber in ids.into_iter().filter_map(|id| self.remove(id)) {
            subscriber.outbox.disconnect(DisconnectReason::Revoked);
        }
    }

    /// Closes the connections of a user who is not a site admin that have a key for which the owner must be one.
    pub(super) fn end_admin_keys(&mut self, user: &UserId) {
        let keys = std::mem::take(&mut self.admin_keys);
        self.end(user, |principal| matches!(principal, Principal::Program { key, .. } if keys.contains(key)));
        self.admin_keys = keys;
    }

    /// Closes the connections of a user whose principal `matches`; they receive no later events. Their members leave
    /// all presence sets when the fan-out publishes that.
    pub(super) fn end(&mut self, user: &UserId, matches: impl Fn(&Principal) -> bool) {
        self.occupants.end(user, &matches);
        let matches: Vec<Subscriber> = self
            .all_subscribers_of(user)
            .filter(|subscriber| matches(&subscriber.principal))
            .cloned()
            .collect();
        for subscriber in matches {
            self.remove(subscriber.id);
            subscriber.outbox.disconnect(DisconnectReason::Revoked);
        }
    }
}
