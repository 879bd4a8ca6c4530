//! Facts for approvals and approval rules.

use super::{Facts, LookupCache};
use crate::Fault;
use crate::permission::may_approve;
use crate::ports::{Lookup, OpenApprovalsOf};
use parlor_model::command::NewApproval;
use parlor_model::{AgentId, ApprovalId, ApprovalKind, Caller, MemberId, RoomId};

impl Facts {
    pub(super) fn about_new_approval(
        &mut self,
        new: &NewApproval,
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.run = store.run(&new.run)?;
        let Some(run) = self.run.clone() else { return Ok(()) };
        self.about_speaker(&run.agent, &run.room, store)?;
        let mut existing = store.approvals_called(&new.gateway, &new.request)?;
        // An approval of the same run with this request id, or an open one of another run.
        existing.retain(|approval| approval.run == run.id || approval.decision.is_none());
        existing.sort_by_key(|approval| approval.run != run.id);
        self.approval = existing.into_iter().next();
        self.approvals = store.open_approvals(OpenApprovalsOf::Room(&run.room))?;
        self.open_approvals = store.open_approval_count()?;
        if new.subject.kind() == ApprovalKind::Questions {
            // Approval rules cover tools only, not question sets.
            return Ok(());
        }
        self.about_rule(&run.room, &run.agent, &new.tool, store)?;
        if let (Some(rule), Some(room)) = (&self.rule, &self.room) {
            let maker = store.member(&run.room, &MemberId::User(rule.by.clone()))?;
            // A rule no longer applies once the user who created it may not approve in this room.
            if !maker.is_some_and(|maker| may_approve(room, &maker)) {
                self.rule = None;
            }
        }
        Ok(())
    }

    /// Loads an approval, its room, and the caller's membership in the room.
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
