//! Facts for runs of agents: addressed agents, the agent of a run, and rewinds.

use super::{Facts, LookupCache, MAX_MEMBERS_IN_EVENT};
use crate::commands::runs::Candidate;
use crate::decide::{GUIDE, WELCOME_ROOM};
use crate::ports::Lookup;
use crate::{Fault, Limits};
use parlor_model::{AddressedBy, Agent, AgentId, AnswerPolicy, MemberId, RoomId, mention};
use std::collections::BTreeSet;
use std::time::Duration;

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
}
