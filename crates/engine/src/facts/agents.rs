//! Facts for commands and queries about agents.

use super::Facts;
use crate::Fault;
use crate::ports::{Lookup, OpenApprovalsOf};
use parlor_model::{AgentId, Caller, MemberId};

impl Facts {
    /// Loads the rooms of a member. A change of the member is published in them.
    pub(super) fn rooms_of(
        &mut self,
        member: &MemberId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.rooms = store.memberships(member)?.into_iter().map(|member| member.room).collect();
        Ok(())
    }

    pub(super) fn about_known_agent(
        &mut self,
        caller: &Caller,
        id: &AgentId,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.agent = store.agent(id)?;
        if let (Some(user), Some(agent)) = (caller.user(), &self.agent) {
            let (person, member) = (MemberId::User(user.clone()), MemberId::Agent(id.clone()));
            self.agent_visible = agent.is_shared_with(user) || store.share_a_room(&person, &member)?;
        }
        Ok(())
    }

    pub(super) fn memberships_of_agents(&mut self, store: &mut (impl Lookup + ?Sized)) -> Result<(), Fault> {
        for agent in self.agents.clone() {
            self.approvals.extend(store.open_approvals(OpenApprovalsOf::Agent(&agent.id))?);
            self.memberships_with_members(&MemberId::Agent(agent.id), store)?;
        }
        Ok(())
    }
}
