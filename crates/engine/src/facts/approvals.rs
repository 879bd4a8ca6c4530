//! What the questions of agents rest on.

use super::{Facts, LookupCache};
use crate::Fault;
use crate::authorise::may_approve;
use crate::ports::{Lookup, OpenApprovalsOf};
use parlor_model::command::NewApproval;
use parlor_model::{AgentId, ApprovalId, ApprovalKind, Caller, MemberId, RoomId};

impl Facts {
    pub(super) fn about_asking(
        &mut self,
        new: &NewApproval,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.run = store.run(&new.run)?;
        let Some(run) = self.run.clone() else { return Ok(()) };
        self.about_speaker(&run.agent, &run.room, store)?;
        let mut known = store.approvals_called(&new.gateway, &new.request)?;
        // Its own question under that name, or one of another turn that is open still.
        known.retain(|known| known.run == run.id || known.decision.is_none());
        known.sort_by_key(|known| known.run != run.id);
        self.approval = known.into_iter().next();
        self.approvals = store.open_approvals(OpenApprovalsOf::Room(&run.room))?;
        self.open_approvals = store.open_approval_count()?;
        if new.kind == ApprovalKind::Questions {
            // Nobody has answered these before.
            return Ok(());
        }
        self.about_rule(&run.room, &run.agent, &new.tool, store)?;
        if let (Some(rule), Some(room)) = (&self.rule, &self.room) {
            let maker = store.member(&run.room, &MemberId::User(rule.by.clone()))?;
            // Who may no longer answer has not answered for always either.
            if !maker.is_some_and(|maker| may_approve(room, &maker)) {
                self.rule = None;
            }
        }
        Ok(())
    }

    /// A question, its room, and who the caller is in there.
    pub(super) fn about_approval(
        &mut self,
        caller: &Caller,
        approval: &ApprovalId,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        self.approval = store.approval(approval)?;
        match self.approval.as_ref().map(|approval| approval.room.clone()) {
            Some(room) => self.in_room(caller, &room, store, lookup_cache),
            None => Ok(()),
        }
    }

    pub(super) fn about_rule(
        &mut self,
        room: &RoomId,
        agent: &AgentId,
        tool: &str,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.rule = store.approval_rule(room, agent, tool)?;
        Ok(())
    }
}
