//! Reads the facts that members are derived from, and ends grace periods.

use super::Occupants;
use super::directory::{AgentFacts, ToRead, UserFacts};
use crate::feed::fanout::{Fanout, FanoutState};
use crate::hub::WeakHub;
use crate::ports::Snapshot;
use crate::{Fault, Hub};
use parlor_model::{Agent, AgentId, MemberId, Refusal, RoomId, UserId};
use std::collections::{BTreeSet, HashMap, HashSet};
use std::time::Duration;
use tokio::time::{Instant, MissedTickBehavior};

/// Interval at which facts and places that are no longer needed are dropped.
const SWEEP_INTERVAL: Duration = Duration::from_secs(60);
/// Maximum number of reads that are discarded because a relevant event was published during the read. The facts of the
/// next read are installed, and read again later.
const MAX_DISCARDED: usize = 8;

/// Reads facts when users or agents come online, and removes members whose grace period has ended.
pub async fn run_loop(weak: WeakHub) {
    let mut sweep = tokio::time::interval_at(Instant::now() + SWEEP_INTERVAL, SWEEP_INTERVAL);
    sweep.set_missed_tick_behavior(MissedTickBehavior::Delay);
    loop {
        let Some(hub) = weak.upgrade().filter(|hub| !hub.is_closing()) else { return };
        let fanout = hub.shared_fanout();
        let is_due = fanout.end_grace_periods(Instant::now());
        let needs_facts = fanout.state.lock().occupants.directory.is_used();
        if needs_facts {
            // If the store is unavailable, the next change or subscription reads again.
            let _ = hub.load_present_users().await;
        }
        // The loop must not keep the hub alive while it waits.
        drop(hub);
        if is_due {
            continue;
        }
        let deadline = fanout.state.lock().occupants.next_deadline();
        let deadline = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = fanout.occupants_changed.notified() => {}
            () = deadline => {}
            _ = sweep.tick() => fanout.sweep_occupants(),
        }
    }
}

impl Hub {
    /// Reads the facts that derived members still lack. One read at a time: when it returns, the facts of all users who
    /// were online before are known.
    pub(in crate::feed) async fn load_present_users(&self) -> Result<(), Refusal> {
        let fanout = self.shared_fanout();
        let _one = fanout.loading.acquire().await.map_err(|_| Refusal::Unavailable)?;
        for attempt in 0.. {
            let Some(to_read) = fanout.begin_read() else { return Ok(()) };
            let agents = self.scheduler().lock().online_agents();
            let (users, owners) = (to_read.users.clone(), to_read.owners);
            let found =
                self.read_snapshot(move |_, snapshot| read_facts(&users, owners, &agents, snapshot)).await?;
            if fanout.install(&to_read, found, attempt == MAX_DISCARDED) || attempt == MAX_DISCARDED {
                return Ok(());
            }
        }
        Ok(())
    }
}

impl Fanout {
    /// Removes members whose grace period has ended. Returns whether there were any.
    pub(super) fn end_grace_periods(&self, instant: Instant) -> bool {
        let state = &mut *self.state.lock();
        let left = state.occupants.sets.take_due(instant, self.clock.now());
        let offline = state.occupants.departures.take_due(instant);
        let any = !left.is_empty() || !offline.is_empty();
        self.publish_occupants(state, left);
        for user in offline {
            self.derive_everywhere(state, &user);
        }
        any
    }

    pub(super) fn begin_read(&self) -> Option<ToRead> {
        let state = &mut *self.state.lock();
        let Occupants { directory, sets, .. } = &mut state.occupants;
        directory.begin_read(state.by_user.keys().chain(sets.users()))
    }

    /// Installs facts that were read, unless they may be outdated and `always` is not set. Returns whether all facts
    /// are known.
    pub(super) fn install(&self, read: &ToRead, found: HashMap<UserId, UserFacts>, always: bool) -> bool {
        let state = &mut *self.state.lock();
        let is_current = state.occupants.directory.is_current(read);
        if !is_current && !always {
            return false;
        }
        state.occupants.directory.end_read(read);
        for (user, facts) in found {
            let facts = Some(facts).filter(|facts| state.needs_facts(&user, facts));
            self.set_facts(state, &user, facts);
            if !is_current {
                state.occupants.directory.request(&user);
                self.occupants_changed.notify_one();
            }
        }
        is_current
    }

    /// Updates the derived members of a user with an agent that has come online.
    pub(crate) fn agent_came_online(&self, owner: &UserId) {
        if self.state.lock().occupants.directory.request(owner) {
            self.occupants_changed.notify_one();
        }
    }

    pub(crate) fn agent_went_offline(&self, agent: &AgentId) {
        let state = &mut *self.state.lock();
        if let Some((owner, facts)) = state.occupants.directory.without_agent(agent) {
            self.set_facts(state, &owner, Some(facts));
        }
    }

    /// Drops the derived members of places without subscribers, and the facts that no place needs.
    pub(super) fn sweep_occupants(&self) {
        let state = &mut *self.state.lock();
        state.occupants.history.truncate(self.clock.now());
        let unused: Vec<_> = state
            .occupants
            .derived
            .keys()
            .filter(|place| !state.has_presence_subscribers(place))
            .cloned()
            .collect();
        for place in unused {
            state.occupants.derived.remove(&place);
            state.occupants.lists.remove(&place);
        }
        let lists: Vec<_> = state
            .occupants
            .lists
            .keys()
            .filter(|place| !state.has_presence_subscribers(place))
            .cloned()
            .collect();
        for place in lists {
            state.occupants.lists.remove(&place);
        }
        if state.occupants.derived.is_empty() {
            state.occupants.directory.clear();
            return;
        }
        let users: Vec<UserId> = state.occupants.directory.users().cloned().collect();
        for user in users {
            let facts = state.occupants.directory.user(&user);
            if facts.is_some_and(|facts| !state.needs_facts(&user, facts)) {
                self.set_facts(state, &user, None);
            }
        }
    }
}

impl FanoutState {
    /// Whether members may be derived from these facts, or the user may see members or has entered a place.
    fn needs_facts(&self, user: &UserId, facts: &UserFacts) -> bool {
        !facts.agents.is_empty()
            || self.by_user.contains_key(user)
            || self.derives_members(user)
            || self.occupants.has_user(user)
    }
}

impl super::Occupants {
    /// End of the next grace period.
    fn next_deadline(&self) -> Option<Instant> {
        self.sets.next_deadline().into_iter().chain(self.departures.next_deadline()).min()
    }
}

/// Reads the facts about users and, with `owners`, about the owners of all agents that are online.
fn read_facts(
    users: &HashSet<UserId>,
    owners: bool,
    online: &HashSet<AgentId>,
    snapshot: &mut dyn Snapshot,
) -> Result<HashMap<UserId, UserFacts>, Fault> {
    let mut users = users.clone();
    if owners {
        for agent in online {
            users.extend(snapshot.agent(agent)?.map(|agent| agent.owner));
        }
    }
    let mut found = HashMap::new();
    for user in users {
        let Some(account) = snapshot.user(&user)? else { continue };
        let mut facts = UserFacts { username: account.username, ..UserFacts::default() };
        facts.rooms = rooms_of(&MemberId::User(user.clone()), snapshot)?;
        let agents = if online.is_empty() { Vec::new() } else { snapshot.agents_of(&user)? };
        for agent in agents.into_iter().filter(|agent| online.contains(&agent.id)) {
            let Agent { id, name, description, .. } = agent;
            let memberships = snapshot.memberships(&MemberId::Agent(id.clone()))?;
            let rooms = memberships.iter().map(|member| member.room.clone()).collect();
            let others = memberships.into_iter().filter(|member| member.name != name);
            let names = others.map(|member| (member.room, member.name)).collect();
            facts.agents.insert(id, AgentFacts { name, description, rooms, names });
        }
        found.insert(user, facts);
    }
    Ok(found)
}

fn rooms_of(member: &MemberId, snapshot: &mut dyn Snapshot) -> Result<BTreeSet<RoomId>, Fault> {
    Ok(snapshot.memberships(member)?.into_iter().map(|member| member.room).collect())
}
