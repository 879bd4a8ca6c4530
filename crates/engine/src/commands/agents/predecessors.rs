//! Replacement of offline agents by a new agent of the same owner with the same name.
//!
//! A gateway of AgentIM registers its agents under new ids whenever it starts. The new agent continues what the previous
//! one was: its memberships, queued runs, tasks, missions, history, sessions and mail. Approval rules end, because they
//! were given to a process on a machine.

use super::removal::publish_removal;
use crate::Fault;
use crate::changes::{AgentChange, RoomChange};
use crate::commands::approvals::withdrawal::{audit_withdrawn, withdraw};
use crate::commands::mail::subscriptions::own_address;
use crate::commands::rooms::members::{MAX_MEMBERS_IN_EVENT, load_for_event, members_for_event};
use crate::commands::{runs, tasks};
use crate::effects::EffectsBuilder;
use crate::ports::OpenApprovalsOf;
use crate::read_view::ReadView;
use crate::routing_index::RouteChange;
use parlor_model::{
    Agent, AgentId, Approval, Event, Mailbox, Member, MemberChange, MemberId, Room, Run, RunOutcome,
    RunState, Subscription, Task, UserId, mention,
};
use std::cmp::Reverse;
use std::sync::Arc;

/// Maximum number of agents that one registration replaces. Bounds the work of the command.
const MAX_REPLACED: usize = 20;
/// Maximum number of open runs of a replaced agent that continue. The others stay in the history.
const MAX_OPEN_RUNS: usize = 200;

/// The agents that a new agent replaces, latest seen first.
#[derive(Debug, Default)]
pub struct Predecessors {
    agents: Vec<Predecessor>,
    rooms: Vec<SharedRoom>,
}

#[derive(Debug)]
struct Predecessor {
    agent: Agent,
    open_approvals: Vec<Approval>,
    /// Queued and running runs, oldest first.
    open_runs: Vec<Run>,
    /// Subscriptions of the agent and its sessions.
    subscriptions: Vec<Subscription>,
    /// Tasks that are assigned to the agent.
    tasks: Vec<Task>,
}

/// A room of replaced agents.
#[derive(Debug)]
struct SharedRoom {
    room: Arc<Room>,
    /// Memberships of the replaced agents, in the order in which they joined, each with the name of its agent.
    memberships: Vec<(Member, Box<str>)>,
    /// All members, as far as an event needs them.
    members: Vec<Member>,
}

impl Predecessors {
    /// Finds the offline agents of the owner with this name whose gateways give them new ids.
    pub fn load(id: &AgentId, name: &str, owner: &UserId, view: &mut ReadView<'_>) -> Result<Self, Fault> {
        let key = mention::name_key(name);
        let is_namesake = |agent: &Agent| {
            !agent.host.has_lasting_id && agent.id != *id && mention::name_key(&agent.name) == key
        };
        let mut offline = Vec::new();
        for agent in view.store.agents_of(owner)?.into_iter().filter(is_namesake) {
            let Some(gateway) = &agent.host.gateway else { continue };
            if view.store.gateway(gateway)?.is_none_or(|gateway| gateway.disconnected_at.is_some()) {
                offline.push(agent);
            }
        }
        offline.sort_by_key(|agent| Reverse((agent.host.seen_at, agent.created_at)));
        offline.truncate(MAX_REPLACED);
        let mut found = Self::default();
        for agent in offline {
            found.add(agent, view)?;
        }
        for shared in &mut found.rooms {
            shared.memberships.sort_by_key(|(member, _)| member.joined_at);
        }
        Ok(found)
    }

    fn add(&mut self, agent: Agent, view: &mut ReadView<'_>) -> Result<(), Fault> {
        let member = MemberId::Agent(agent.id.clone());
        let mut tasks = Vec::new();
        for membership in view.store.memberships(&member)? {
            let Some(room) = view.room(&membership.room)? else { continue };
            let of_room = view.store.tasks(&room.id)?.into_iter();
            tasks.extend(of_room.filter(|task| task.assignee.as_ref() == Some(&member)));
            let membership = (membership, agent.name.clone());
            match self.rooms.iter_mut().find(|shared| shared.room.id == room.id) {
                Some(shared) => shared.memberships.push(membership),
                None => {
                    let members = load_for_event(&room.id, view)?;
                    self.rooms.push(SharedRoom { room, memberships: vec![membership], members });
                }
            }
        }
        let mut subscriptions = view.store.subscriptions_of(&Mailbox::of(agent.id.clone()))?;
        for session in view.store.sessions(&agent.id)? {
            let mailbox = Mailbox { agent: agent.id.clone(), session: Some(session.id) };
            subscriptions.extend(view.store.subscriptions_of(&mailbox)?);
        }
        let open_approvals = view.store.open_approvals(OpenApprovalsOf::Agent(&agent.id))?;
        let latest = view.store.latest_runs(&agent.id, MAX_OPEN_RUNS)?.into_iter();
        let mut open_runs: Vec<Run> = latest.take_while(|run| !run.has_ended()).collect();
        open_runs.reverse();
        self.agents.push(Predecessor { agent, open_approvals, open_runs, subscriptions, tasks });
        Ok(())
    }

    pub fn count(&self) -> usize {
        self.agents.len()
    }

    /// Gives a new agent the description, settings and visibility of the agent that was seen last.
    pub fn describe(&self, agent: Agent) -> Agent {
        let Some(Predecessor { agent: last, .. }) = self.agents.first() else { return agent };
        let (description, settings) = (last.description.clone(), last.settings.clone());
        Agent { description, settings, visibility: last.visibility.clone(), ..agent }
    }

    /// Replaces the agents by `new`, which is stored and published already and has no session yet.
    pub fn replace(self, new: &Agent, effects: &mut EffectsBuilder<'_>) {
        let mut withdrawn = Vec::new();
        let mut queued = Vec::new();
        for (index, Predecessor { agent: old, open_approvals, open_runs, subscriptions, .. }) in
            self.agents.iter().enumerate()
        {
            withdrawn.extend(withdraw(open_approvals, effects));
            for run in open_runs {
                match run.state {
                    RunState::Queued => queued.push((run, &old.id)),
                    // The program that executed the run has ended with its gateway.
                    _ => drop(
                        run.ended(RunOutcome::Interrupted, None, effects.now)
                            .map(|run| runs::put(run, effects)),
                    ),
                }
            }
            let replaced = AgentChange::ReplaceAgent { old: old.id.clone(), new: new.id.clone() };
            effects.change(replaced);
            effects.routes.push(RouteChange::RemoveAgent(old.id.clone()));
            // Only the sessions of the first agent, with their mail, are kept.
            for Subscription { session, pattern, .. } in subscriptions.iter().filter(|_| index == 0) {
                effects.routes.push(RouteChange::Add {
                    pattern: pattern.clone(),
                    mailbox: Mailbox { agent: new.id.clone(), session: session.clone() },
                    owner: new.owner.clone(),
                });
            }
            // Before the memberships end: the scheduler must not cancel the queued runs, which continue.
            publish_removal(old, effects);
        }
        effects.routes.push(RouteChange::Add {
            pattern: own_address(&new.id),
            mailbox: Mailbox::of(new.id.clone()),
            owner: new.owner.clone(),
        });
        for shared in self.rooms {
            shared.replace(new, effects);
        }
        for (run, old) in queued {
            let mut run = Run { agent: new.id.clone(), ..run.clone() };
            for agent in run.lineage.chain.iter_mut().filter(|agent| **agent == *old) {
                *agent = new.id.clone();
            }
            runs::put(run, effects);
        }
        for task in self.agents.into_iter().flat_map(|old| old.tasks) {
            let assignee = Some(MemberId::Agent(new.id.clone()));
            tasks::put::put(Task { assignee, updated_at: effects.now, ..task }, effects);
        }
        audit_withdrawn(&withdrawn, effects);
    }
}

impl SharedRoom {
    /// Ends the memberships of the replaced agents. The new agent has the earliest of them, with its name, and the
    /// highest role.
    fn replace(self, new: &Agent, effects: &mut EffectsBuilder<'_>) {
        let Self { room, memberships, mut members } = self;
        let is_large = members.len() > MAX_MEMBERS_IN_EVENT;
        let listed = |members: &[Member]| match is_large {
            true => Arc::new([]),
            false => members_for_event(members),
        };
        let role = memberships.iter().map(|(member, _)| member.role).max();
        for (old, _) in &memberships {
            members.retain(|member| member.member != old.member);
            effects.change(RoomChange::RemoveMember(room.id.clone(), old.member.clone()));
            let change = MemberChange::Removed(old.member.clone());
            let members = listed(&members);
            effects.publish(Event::MembersChanged { room: room.clone(), change, members });
        }
        let Some((first, its_name)) = memberships.into_iter().next() else { return };
        let name = if first.name == its_name { new.name.clone() } else { first.name.clone() };
        let (member, handle) = (MemberId::Agent(new.id.clone()), new.id.as_str().into());
        let role = role.unwrap_or(first.role);
        let membership = Member { member: member.clone(), role, name, handle, ..first };
        members.push(membership.clone());
        effects.change(RoomChange::PutMember(Arc::new(membership)));
        let (change, members) = (MemberChange::Added(member), listed(&members));
        effects.publish(Event::MembersChanged { room, change, members });
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::runs::test_fixtures::run;
    use crate::commands::test_fixtures::{agent, effects, member_of, room, subscription};
    use parlor_model::{RoomId, RoomRole, RunId, Time};

    fn predecessor(id: &str) -> Predecessor {
        let (open_approvals, open_runs) = (Vec::new(), Vec::new());
        let agent = Agent { description: id.into(), name: "Coder".into(), ..agent(id) };
        Predecessor { agent, open_approvals, open_runs, subscriptions: Vec::new(), tasks: Vec::new() }
    }

    fn member(id: &str, name: &str, joined_at: i64, role: RoomRole) -> Member {
        let user = member_of(&RoomId::stored("lobby"), id);
        let (member, joined_at) = (MemberId::Agent(AgentId::stored(id)), Time(joined_at));
        Member { member, joined_at, name: name.into(), role, ..Member::clone(&user) }
    }

    fn new() -> Agent {
        Agent { name: "CODER".into(), ..agent("new") }
    }

    #[test]
    fn the_new_agent_has_the_earliest_membership_and_the_highest_role() {
        let ann = Member::clone(&member_of(&RoomId::stored("lobby"), "ann"));
        let first = member("first", "Coder", 3, RoomRole::Member);
        let second = member("second", "Coder-ann", 5, RoomRole::Admin);
        let shared = SharedRoom {
            room: Arc::new(room(&RoomId::stored("lobby"))),
            memberships: vec![(first.clone(), "Coder".into()), (second.clone(), "Coder".into())],
            members: vec![ann.clone(), first, second],
        };
        let agents = vec![predecessor("second"), predecessor("first")];
        let predecessors = Predecessors { agents, rooms: vec![shared] };
        assert_eq!(
            &*predecessors.describe(new()).description,
            "second",
            "as of the agent that was seen last"
        );
        let effects = effects(|effects| predecessors.replace(&new(), effects));
        let stored = effects.changes.iter().find_map(|change| match change {
            crate::changes::Change::Room(RoomChange::PutMember(member)) => Some(member.clone()),
            _ => None,
        });
        let stored = stored.unwrap();
        assert_eq!((&*stored.name, stored.joined_at, stored.role), ("CODER", Time(3), RoomRole::Admin));
        let Event::MembersChanged { change, members, .. } = &effects.events.last().unwrap().event else {
            panic!("{:?}", effects.events)
        };
        assert_eq!(*change, MemberChange::Added(MemberId::Agent(AgentId::stored("new"))));
        assert_eq!(members.iter().map(|member| &*member.handle).collect::<Vec<_>>(), ["ann", "new"]);
    }

    #[test]
    fn queued_runs_continue_and_active_runs_are_interrupted() {
        let run = |id: &str, state| Run { id: RunId::stored(id), ..run(state) };
        let open_runs = vec![run("active", RunState::Running), run("queued", RunState::Queued)];
        let subscriptions = vec![subscription("coder:main", "slack/**")];
        let old = Predecessor { open_runs, subscriptions, ..predecessor("coder") };
        let predecessors = Predecessors { agents: vec![old], rooms: Vec::new() };
        let effects = effects(|effects| predecessors.replace(&new(), effects));
        let events: Vec<_> = effects.events.iter().map(|logged_event| &logged_event.event).collect();
        let [Event::RunChanged(ended), Event::AgentRemoved { agent, .. }, Event::RunChanged(queued)] =
            events[..]
        else {
            panic!("{events:?}")
        };
        assert_eq!(ended.state, RunState::Ended(RunOutcome::Interrupted));
        assert_eq!((agent.as_str(), queued.agent.as_str()), ("coder", "new"));
        assert_eq!(queued.state, RunState::Queued);
        assert_eq!(queued.lineage.chain, [AgentId::stored("new")]);
        let added = effects.route_changes.iter().filter_map(|change| match change {
            RouteChange::Add { pattern, mailbox, .. } => Some((pattern.as_str(), mailbox.agent.as_str())),
            _ => None,
        });
        assert_eq!(added.collect::<Vec<_>>(), [("slack/**", "new"), ("agent/new", "new")]);
    }
}
