//! Decides on the use of a tool. The first decision counts.

use super::audit::{audit_decision, audit_rule};
use super::decision::{decider, record_decision};
use crate::Limits;
use crate::changes::ApprovalChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, DecidableApproval, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::audit::Action;
use parlor_model::command::DecideApproval;
use parlor_model::{Approval, ApprovalKind, ApprovalRule, Decision, EntityKind, Field, Refusal};
use std::sync::Arc;

impl Command for DecideApproval {
    type Facts = DecidableApproval;
    type Receipt = Arc<Approval>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        let length = self.reason.as_deref().unwrap_or_default().chars().count();
        field_errors.unless(length <= 1000, Field::Reason, "is longer than 1000 characters");
        field_errors.into_result()
    }

    /// Allowed for users who may approve in the room now, without a room for the owner of the agent; never for API keys, which the agent itself may hold.
    fn permit(
        &self,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<DecidableApproval, PermitError> {
        view.decidable_approval(caller, &self.approval)
    }

    fn decide(
        self,
        facts: DecidableApproval,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<Arc<Approval>, Refusal> {
        let DecidableApproval { caller, room, approval } = facts;
        if approval.subject.kind() != ApprovalKind::Tool {
            return Err(Refusal::NotFound(EntityKind::Approval));
        }
        if approval.decision.is_some() {
            return Err(Refusal::AlreadyExists(EntityKind::Approval));
        }
        if self.digest.is_some_and(|digest| digest != approval.digest) {
            return Err(Refusal::invalid(Field::Digest, "does not match the input of this approval"));
        }
        // In a frozen room nothing is allowed, even before its runs have ended.
        if self.allow && room.as_ref().is_some_and(|room| room.is_frozen()) {
            return Err(Refusal::Forbidden);
        }
        if self.allow && self.always && room.is_none() {
            return Err(Refusal::invalid(Field::Always, "needs a room, and this run has none"));
        }
        let by = decider(&caller);
        let decision = match self.allow {
            true => Decision::Allowed { by },
            false => Decision::Denied { by, reason: self.reason },
        };
        let decided = record_decision(&approval, decision, effects)?;
        let rule = room.filter(|_| self.allow && self.always).map(|room| ApprovalRule {
            room: room.id.clone(),
            agent: decided.agent.clone(),
            tool: decided.tool.clone(),
            by: caller.user.id.clone(),
            at: effects.now,
        });
        if let Some(rule) = &rule {
            effects.change(ApprovalChange::PutApprovalRule(rule.clone()));
        }
        audit_decision(&decided, None, effects);
        if let Some(rule) = &rule {
            audit_rule(Action::ApprovalRuleCreated, rule, effects);
        }
        Ok(decided)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{decidable, frozen_room, open, room, rule};
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::NOW;
    use crate::commands::test_fixtures::decide;
    use crate::effects::Effects;
    use parlor_model::{ApprovalId, ApprovalSubject, Decider, InputDigest, UserId};

    fn decision(allow: bool) -> DecideApproval {
        let approval = ApprovalId::stored("new");
        DecideApproval { approval, allow, always: false, reason: Some("no".into()), digest: None }
    }

    fn decided_by(approval: Approval, command: DecideApproval) -> Result<(Arc<Approval>, Effects), Refusal> {
        decide(command, decidable(approval, room()))
    }

    #[test]
    fn question_sets_are_never_allowed() {
        let questions = Approval { subject: ApprovalSubject::Questions(Vec::new()), ..open() };
        let refused = decided_by(questions, decision(true)).unwrap_err();
        assert_eq!(refused, Refusal::NotFound(EntityKind::Approval));
    }

    #[test]
    fn in_a_frozen_room_nothing_is_allowed() {
        let decide = |allow| decide(decision(allow), decidable(open(), frozen_room()));
        assert_eq!(decide(true).unwrap_err(), Refusal::Forbidden);
        assert!(decide(false).is_ok());
    }

    #[test]
    fn the_first_decision_counts_and_only_for_the_input_that_was_shown() {
        let ann = Decider { user: UserId::stored("ann"), name: "ann".into() };
        let (allowed, _) = decided_by(open(), decision(true)).unwrap();
        assert_eq!(allowed.decision, Some(Decision::Allowed { by: ann.clone() }));
        let (denied, _) = decided_by(open(), decision(false)).unwrap();
        assert_eq!(denied.decision, Some(Decision::Denied { by: ann, reason: Some("no".into()) }));
        let seen = |byte| DecideApproval { digest: Some(InputDigest([byte; 32])), ..decision(true) };
        assert!(decided_by(open(), seen(1)).is_ok());
        assert!(matches!(decided_by(open(), seen(2)), Err(Refusal::Invalid(_))));
        for late in [decision(true), decision(false), seen(2)] {
            let refused = decided_by(Approval::clone(&denied), late).unwrap_err();
            assert_eq!(refused, Refusal::AlreadyExists(EntityKind::Approval));
        }
    }

    #[test]
    fn always_creates_a_rule_only_if_the_tool_is_allowed() {
        let rules = |allow| {
            let command = DecideApproval { always: true, ..decision(allow) };
            let (_, effects) = decided_by(open(), command).unwrap();
            let rule = |change: &Change| match change {
                Change::Approval(ApprovalChange::PutApprovalRule(rule)) => Some(rule.clone()),
                _ => None,
            };
            effects.changes.iter().filter_map(rule).collect::<Vec<_>>()
        };
        assert_eq!(rules(true), [ApprovalRule { by: UserId::stored("ann"), at: NOW, ..rule() }]);
        assert_eq!(rules(false), []);
    }

    #[test]
    fn without_a_room_a_tool_is_never_allowed_permanently() {
        let decide = |allow, always| {
            let facts = DecidableApproval { room: None, ..decidable(open(), room()) };
            decide(DecideApproval { always, ..decision(allow) }, facts).map(drop)
        };
        assert!(matches!(decide(true, true), Err(Refusal::Invalid(_))));
        assert_eq!([decide(true, false), decide(false, true)], [Ok(()), Ok(())]);
    }
}
