//! Facts for runs of agents: addressed agents, run starts, replies and rewinds.

use super::{Facts, LookupCache, MAX_MEMBERS_IN_EVENT};
use crate::commands::runs::Candidate;
use crate::decide::{GUIDE, WELCOME_ROOM};
use crate::ports::Lookup;
use crate::routing_index::RoutingIndex;
use crate::{Fault, Limits};
use parlor_model::{AddressedBy, Agent, AgentId, AgentReply, AnswerPolicy, MemberId, RoomId, RunId, mention};
use std::collections::BTreeSet;
use std::time::Duration;

/// Maximum number of members sent to an agent in a room context.
pub const MEMBERS_IN_CONTEXT: usize = 500;

impl Facts {
    /// Adds the agents in the room that a text addresses: those it mentions or, if a user's text mentions no
    /// member and the answer policy is not `Mention`, all of them. The text of an agent addresses only the
    /// agents it mentions.
    pub(super) fn about_addressed(
        &mut self,
        text: &str,
        given: &[Box<str>],
        sender: Option<&AgentId>,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let Some(room) = self.room.clone() else { return Ok(()) };
        let agents = lookup_cache.agents_in(&room.id, store)?;
        if agents.is_empty() {
            return Ok(());
        }
        let mentioned = mention::resolve(text, given, &self.members);
        let mut named: BTreeSet<&AgentId> =
            mentioned.iter().filter_map(|mention| mention.member.agent()).collect();
        let mut addressed = AddressedBy::Directly;
        if named.is_empty()
            && mentioned.is_empty()
            && room.policy != AnswerPolicy::Mention
            && sender.is_none()
        {
            named = agents.iter().collect();
            addressed = AddressedBy::ByPolicy;
        }
        for id in named.into_iter().filter(|id| sender != Some(*id)) {
            self.candidate(id, addressed, sender, store, lookup_cache, limits)?;
        }
        if let Some(sender) = sender {
            self.replies_last_minute = store.spoken(sender, self.now.minus(Duration::from_secs(60)))?;
        }
        Ok(())
    }

    /// Adds an agent that may get a run in the room, if it is hosted.
    pub(super) fn candidate(
        &mut self,
        id: &AgentId,
        addressed: AddressedBy,
        sender: Option<&AgentId>,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let Some(room) = self.room.clone() else { return Ok(()) };
        let Some(agent) = lookup_cache.agent(id, store)?.filter(|agent| agent.is_hosted()) else {
            return Ok(());
        };
        let day = self.now.minus(Duration::from_secs(24 * 60 * 60));
        let spent = store.spent(&room.id, id, day)?;
        let asked = match sender {
            Some(sender) => store.asked(&room.id, sender, id, self.now.minus(limits.pair_window))?,
            None => 0,
        };
        self.addressed.push(Candidate { agent: Agent::clone(&agent), addressed, spent, asked });
        Ok(())
    }

    /// Loads the welcome room, which new users join, and its guide agent.
    pub(super) fn about_welcome(&mut self, store: &mut (impl Lookup + ?Sized)) -> Result<(), Fault> {
        let (room, guide) = (RoomId::stored(WELCOME_ROOM), AgentId::stored(GUIDE));
        self.room = store.room(&room)?.map(Into::into);
        self.agent = store.agent(&guide)?;
        self.target = store.member(&room, &MemberId::Agent(guide))?;
        self.members = store.members(&room, MAX_MEMBERS_IN_EVENT + 1, 0)?.into();
        Ok(())
    }

    pub(super) fn about_start(
        &mut self,
        run: &RunId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.run = store.run(run)?;
        let Some(run) = self.run.clone() else { return Ok(()) };
        self.about_speaker(&run.agent, &run.room, store)?;
        self.members = store.members(&run.room, MEMBERS_IN_CONTEXT, 0)?.into();
        if let Some(task) = &run.task {
            self.task = store.task(task)?;
        }
        if let Some(arrival) = &run.arrival {
            self.user = store.user(arrival)?;
        }
        if let Some(trigger) = &run.trigger {
            self.message = store.message(trigger)?;
        }
        Ok(())
    }

    /// Loads an agent, a room, and the agent's membership in it.
    pub(super) fn about_speaker(
        &mut self,
        agent: &AgentId,
        room: &RoomId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.agent = store.agent(agent)?;
        self.room = store.room(room)?.map(Into::into);
        self.target = store.member(room, &MemberId::Agent(agent.clone()))?;
        Ok(())
    }

    #[expect(clippy::too_many_arguments, reason = "the reply, and everything that facts are loaded from")]
    pub(super) fn about_reply(
        &mut self,
        agent: &AgentId,
        room: &RoomId,
        reply: Option<&AgentReply>,
        store: &mut (impl Lookup + ?Sized),
        routing_index: &RoutingIndex,
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        let Some(reply) = reply.filter(|_| self.room.is_some() && self.target.is_some()) else {
            return Ok(());
        };
        if let Some(id) = &reply.message {
            self.message = store.message(id)?;
            self.id_taken = self.message.is_some() || store.was_said(id)?;
        }
        if reply.target.is_some() || reply.text.contains('@') {
            self.all_members(room, store, lookup_cache)?;
        }
        self.room_recipients(room, Some(agent), store, routing_index, lookup_cache)?;
        self.about_addressed(&reply.text, reply.target.as_slice(), Some(agent), store, lookup_cache, limits)
    }
}
