//! Questions of agents and the answers of users, to and from the types of the model.

use crate::canonical;
use parlor_model::run_event::{self, Choice, Question};
use parlor_model::{Approval, ApprovalSubject, InputDigest, Payload};
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct AskedQuestion {
    pub question: String,
    pub header: String,
    pub options: Vec<AskedOption>,
    pub multi_select: bool,
}

#[derive(Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct AskedOption {
    pub label: String,
    #[schema(required)]
    pub description: Option<String>,
    #[schema(required)]
    pub preview: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
#[cfg_attr(test, derive(TS), ts(optional_fields))]
pub struct QuestionAnswer {
    pub question_index: usize,
    /// Labels of the selected options.
    #[serde(default)]
    pub selected: Vec<String>,
    /// Free-text answer, instead of or in addition to options.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub custom_text: Option<String>,
}

/// Encodes the questions of an approval; a tool approval has none.
pub fn asked(approval: &Approval) -> Vec<AskedQuestion> {
    match &approval.subject {
        ApprovalSubject::Questions(questions) => questions.iter().map(AskedQuestion::from).collect(),
        ApprovalSubject::Tool(_) => Vec::new(),
    }
}

/// Returns the digest by which the hub recognises a question set that an agent sends again.
pub fn digest(questions: &[Question]) -> Option<InputDigest> {
    let questions: Vec<_> = questions.iter().map(AskedQuestion::from).collect();
    canonical::digest(&Payload(serde_json::to_string(&questions).ok()?.into()))
}

impl From<&Question> for AskedQuestion {
    fn from(question: &Question) -> Self {
        let option = |choice: &Choice| AskedOption {
            label: choice.label.as_ref().into(),
            description: choice.description.as_deref().map(Into::into),
            preview: choice.preview.as_deref().map(Into::into),
        };
        Self {
            question: question.text.as_ref().into(),
            header: question.header.as_ref().into(),
            options: question.options.iter().map(option).collect(),
            multi_select: question.several,
        }
    }
}

impl From<&run_event::QuestionAnswer> for QuestionAnswer {
    fn from(answer: &run_event::QuestionAnswer) -> Self {
        Self {
            question_index: answer.question,
            selected: answer.selected.iter().map(|label| label.as_ref().into()).collect(),
            custom_text: answer.text.as_deref().map(Into::into),
        }
    }
}

impl From<QuestionAnswer> for run_event::QuestionAnswer {
    fn from(answer: QuestionAnswer) -> Self {
        Self {
            question: answer.question_index,
            selected: answer.selected.into_iter().map(Into::into).collect(),
            text: answer.custom_text.map(Into::into),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_question_and_an_answer_have_the_keys_of_the_protocol() {
        let choice = Choice { label: "Tea".into(), description: None, preview: Some("hot".into()) };
        let question =
            Question { text: "What?".into(), header: "Drink".into(), options: vec![choice], several: true };
        assert_eq!(
            serde_json::to_string(&AskedQuestion::from(&question)).unwrap(),
            r#"{"question":"What?","header":"Drink","options":[{"label":"Tea","description":null,"preview":"hot"}],"multi_select":true}"#
        );
        for text in [
            r#"{"question_index":1,"selected":["Tea"]}"#,
            r#"{"question_index":0,"selected":[],"custom_text":""}"#,
        ] {
            let answer: QuestionAnswer = serde_json::from_str(text).unwrap();
            let answer = run_event::QuestionAnswer::from(answer);
            assert_eq!(serde_json::to_string(&QuestionAnswer::from(&answer)).unwrap(), text);
        }
    }

    #[test]
    fn equal_questions_have_equal_digests() {
        let question =
            |several| Question { text: "What?".into(), header: "H".into(), options: Vec::new(), several };
        assert_eq!(digest(&[question(true)]), digest(&[question(true)]));
        assert_ne!(digest(&[question(true)]), digest(&[question(false)]));
        assert!(digest(&[]).is_some());
    }
}
