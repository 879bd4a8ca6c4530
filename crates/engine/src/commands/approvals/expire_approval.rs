//! Expires an approval, unless it has been decided.

use super::audit::audit_decision;
use super::decision::record_decision;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use parlor_model::command::ExpireApproval;
use parlor_model::{Approval, Decision, EntityKind, Refusal};
use std::sync::Arc;

impl Command for ExpireApproval {
    type Facts = Approval;
    type Receipt = Arc<Approval>;

    /// Allowed for the hub itself.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Approval, PermitError> {
        caller.operator()?;
        Ok(view.store.approval(&self.approval)?.ok_or(Refusal::NotFound(EntityKind::Approval))?)
    }

    fn decide(self, approval: Approval, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Approval>, Refusal> {
        if approval.decision.is_some() {
            return Ok(Arc::new(approval));
        }
        let expired = record_decision(&approval, Decision::Expired, effects)?;
        audit_decision(&expired, None, effects);
        Ok(expired)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::open;
    use super::*;
    use crate::commands::test_fixtures::decide;

    #[test]
    fn a_decided_approval_does_not_expire() {
        let command = || ExpireApproval { approval: open().id };
        let (expired, _) = decide(command(), open()).unwrap();
        assert_eq!(expired.decision, Some(Decision::Expired));
        let decided = Approval { decision: Some(Decision::AllowedByRule), ..open() };
        let (unchanged, effects) = decide(command(), decided.clone()).unwrap();
        assert_eq!((&*unchanged, effects.changes.len()), (&decided, 0));
    }
}
