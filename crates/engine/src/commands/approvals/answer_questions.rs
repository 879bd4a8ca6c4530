//! Answers a question set of an agent. The first answers count.

use super::decision::{decider, record_decision};
use super::question_answers;
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, DecidableApproval, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::AnswerQuestions;
use parlor_model::run_event::QuestionAnswer;
use parlor_model::{Approval, ApprovalSubject, Decision, EntityKind, Field, Refusal};
use std::sync::Arc;

/// Maximum bytes of all texts in the answers to a question set. Four free texts are within it.
const MAX_ANSWERS_BYTES: usize = 64 * 1024;

impl Command for AnswerQuestions {
    type Facts = DecidableApproval;
    type Receipt = Arc<Approval>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        let bytes: usize = self.answers.iter().map(QuestionAnswer::length).sum();
        field_errors.unless(bytes <= MAX_ANSWERS_BYTES, Field::Answers, "are too long");
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

    /// Answers grant no permission, and the room sees them, so they are not audited.
    fn decide(
        self,
        facts: DecidableApproval,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<Arc<Approval>, Refusal> {
        let DecidableApproval { caller, room, approval } = facts;
        let ApprovalSubject::Questions(questions) = &approval.subject else {
            return Err(Refusal::NotFound(EntityKind::Approval));
        };
        match approval.decision {
            None => {}
            Some(Decision::Answered { .. }) => return Err(Refusal::AlreadyExists(EntityKind::Approval)),
            Some(_) => return Err(Refusal::HasEnded(EntityKind::Approval)),
        }
        question_answers::check(questions, &self.answers)?;
        if room.is_some_and(|room| room.is_frozen()) {
            return Err(Refusal::Forbidden);
        }
        let decision = Decision::Answered { by: decider(&caller), answers: self.answers };
        record_decision(&approval, decision, effects)
    }
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{decidable, frozen_room, open, room};
    use super::*;
    use crate::commands::test_fixtures::decide;
    use parlor_model::ApprovalId;
    use parlor_model::run_event::{Choice, Question};

    fn answer(answers: Vec<QuestionAnswer>, facts: DecidableApproval) -> Result<Arc<Approval>, Refusal> {
        let command = AnswerQuestions { approval: ApprovalId::stored("new"), answers };
        decide(command, facts).map(|(approval, _)| approval)
    }

    #[test]
    fn question_sets_are_answered_once_and_tools_are_not() {
        let choice = |label: &str| Choice { label: label.into(), description: None, preview: None };
        let options = vec![choice("Tea"), choice("Water")];
        let question = Question { text: "What?".into(), header: "Drink".into(), options, several: false };
        let questions = Approval { subject: ApprovalSubject::Questions(vec![question]), ..open() };
        let tea = vec![QuestionAnswer { question: 0, selected: vec!["Tea".into()], text: None }];
        let invalid = answer(Vec::new(), decidable(questions.clone(), room())).unwrap_err();
        assert!(matches!(invalid, Refusal::Invalid(_)), "{invalid:?}");
        let answered = answer(tea.clone(), decidable(questions.clone(), room())).unwrap();
        assert!(matches!(&answered.decision, Some(Decision::Answered { answers, .. }) if *answers == tea));
        let again = answer(tea.clone(), decidable(Approval::clone(&answered), room()));
        assert_eq!(again, Err(Refusal::AlreadyExists(EntityKind::Approval)));
        let expired = Approval { decision: Some(Decision::Expired), ..questions.clone() };
        let late = answer(tea.clone(), decidable(expired, room()));
        assert_eq!(late, Err(Refusal::HasEnded(EntityKind::Approval)));
        let tool = answer(tea.clone(), decidable(open(), room()));
        assert_eq!(tool, Err(Refusal::NotFound(EntityKind::Approval)));
        let frozen = answer(tea, decidable(questions, frozen_room()));
        assert_eq!(frozen, Err(Refusal::Forbidden));
    }
}
