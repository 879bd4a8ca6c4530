//! Revokes an approval rule.

use super::audit::audit_rule;
use crate::changes::ApprovalChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::audit::Action;
use parlor_model::command::RevokeApprovalRule;
use parlor_model::{ApprovalRule, EntityKind, Refusal, RoomRole, Scope};

impl Command for RevokeApprovalRule {
    type Facts = ApprovalRule;
    type Receipt = ();

    /// Allowed for the user who created the rule, and for admins of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<ApprovalRule, PermitError> {
        let revoker = view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
        let rule = view.store.approval_rule(&self.room, &self.agent, &self.tool)?;
        let rule = rule.ok_or(Refusal::NotFound(EntityKind::ApprovalRule))?;
        let may = rule.by == revoker.caller.user.id || revoker.member.role >= RoomRole::Admin;
        if may { Ok(rule) } else { Err(Refusal::Forbidden.into()) }
    }

    fn decide(self, rule: ApprovalRule, effects: &mut EffectsBuilder<'_>) -> Result<(), Refusal> {
        effects.change(ApprovalChange::RemoveApprovalRule(rule.clone()));
        audit_rule(Action::ApprovalRuleRevoked, &rule, effects);
        Ok(())
    }
}
