//! Approvals and approval rules, in memory.

use super::TablesView;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::ApprovalChange;
use parlor_engine::ports::{OpenApprovalsOf, ReadApprovals};
use parlor_model::{AgentId, Approval, ApprovalId, ApprovalRule, EventScope, GatewayId, RoomId};

impl ReadApprovals for TablesView {
    fn approval(&mut self, id: &ApprovalId) -> Result<Option<Approval>, Fault> {
        Ok(self.tables.approvals.get(id).cloned())
    }

    fn approvals_called(&mut self, gateway: &GatewayId, request: &str) -> Result<Vec<Approval>, Fault> {
        let approvals = self.tables.approvals.rows().filter(|approval| approval.gateway == *gateway);
        Ok(approvals.filter(|approval| &*approval.request == request).cloned().collect())
    }

    fn open_approvals(&mut self, of: OpenApprovalsOf<'_>) -> Result<Vec<Approval>, Fault> {
        let matches = |approval: &&Approval| match of {
            OpenApprovalsOf::Everybodys => true,
            OpenApprovalsOf::Room(room) => approval.place.room() == Some(room),
            OpenApprovalsOf::Run(run) => approval.run == *run,
            OpenApprovalsOf::Agent(agent) => approval.agent == *agent,
            OpenApprovalsOf::Owner(owner) => approval.place.scope() == EventScope::Owner(owner),
        };
        let open = self.tables.approvals.rows().filter(|approval| approval.decision.is_none());
        Ok(open.filter(matches).cloned().collect())
    }

    fn open_approval_count(&mut self) -> Result<usize, Fault> {
        Ok(self.open_approvals(OpenApprovalsOf::Everybodys)?.len())
    }

    fn approval_rule(
        &mut self,
        room: &RoomId,
        agent: &AgentId,
        tool: &str,
    ) -> Result<Option<ApprovalRule>, Fault> {
        Ok(self.tables.approval_rules.get(&(room.clone(), agent.clone(), tool.into())).cloned())
    }

    fn approval_rules(&mut self, room: &RoomId) -> Result<Vec<ApprovalRule>, Fault> {
        Ok(self.tables.approval_rules.values().filter(|rule| rule.room == *room).cloned().collect())
    }
}

impl Tables {
    pub fn apply_approvals(&mut self, change: &ApprovalChange) {
        match change {
            ApprovalChange::PutApproval(approval) => {
                self.approvals.put(approval.id.clone(), approval.as_ref().clone());
            }
            ApprovalChange::PutApprovalRule(rule) => {
                self.approval_rules.insert(key_of(rule), rule.clone());
            }
            ApprovalChange::RemoveApprovalRule(rule) => {
                self.approval_rules.remove(&key_of(rule));
            }
        }
    }

    pub fn remove_approvals(&mut self, matches: impl Fn(&Approval) -> bool) {
        let approvals = self.approvals.rows().filter(|approval| matches(approval));
        for approval in approvals.map(|approval| approval.id.clone()).collect::<Vec<_>>() {
            self.approvals.remove(&approval);
        }
    }
}

fn key_of(rule: &ApprovalRule) -> (RoomId, AgentId, Box<str>) {
    (rule.room.clone(), rule.agent.clone(), rule.tool.clone())
}
