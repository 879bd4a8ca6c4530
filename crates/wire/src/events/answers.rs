//! Question sets of agents and the answers of users. Both are stored in the JSON format of this protocol.
//!
//! Owns: the validation of answers before they are stored.

use parlor_model::run_event::{Choice, Question, Questions};
use parlor_model::{Decision, Payload};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::ToSchema;

/// Maximum characters of a free-text answer.
const MAX_FREE_TEXT_CHARS: usize = 2000;

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AskedQuestion {
    pub question: String,
    pub header: String,
    pub options: Vec<AskedOption>,
    pub multi_select: bool,
}

#[derive(Debug, Serialize, Deserialize, ToSchema)]
pub struct AskedOption {
    pub label: String,
    #[schema(required)]
    pub description: Option<String>,
    #[schema(required)]
    pub preview: Option<String>,
}

#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, ToSchema)]
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

/// Encodes a question set for the store.
pub fn to_payload(questions: &Questions) -> Payload {
    let option = |choice: &Choice| AskedOption {
        label: choice.label.as_ref().into(),
        description: choice.description.as_deref().map(Into::into),
        preview: choice.preview.as_deref().map(Into::into),
    };
    let question = |question: &Question| AskedQuestion {
        question: question.text.as_ref().into(),
        header: question.header.as_ref().into(),
        options: question.options.iter().map(option).collect(),
        multi_select: question.several,
    };
    let questions: Vec<AskedQuestion> = questions.questions.iter().map(question).collect();
    Payload(serde_json::to_string(&questions).expect("consists of strings, numbers and lists").into())
}

/// Decodes a stored question set.
pub fn asked(stored: &Payload) -> Vec<AskedQuestion> {
    serde_json::from_str(&stored.0).unwrap_or_default()
}

/// Decodes stored answers.
pub fn answers(stored: &Payload) -> Vec<QuestionAnswer> {
    serde_json::from_str(&stored.0).unwrap_or_default()
}

/// Returns the status of a question set.
pub fn status(decision: &Decision) -> &'static str {
    match decision {
        Decision::Answered { .. } => "answered",
        Decision::Expired => "expired",
        _ => "withdrawn",
    }
}

/// Checks answers against a stored question set and encodes them for the store. The error is a validation
/// rule.
pub fn validate_answers(stored: &Payload, given: &[QuestionAnswer]) -> Result<Payload, &'static str> {
    let questions = asked(stored);
    if given.is_empty() {
        return Err("must contain at least one answer");
    }
    let mut seen = HashSet::new();
    for answer in given {
        let Some(question) = questions.get(answer.question_index) else {
            return Err("refer to a question that does not exist");
        };
        if !seen.insert(answer.question_index) {
            return Err("must not contain two answers to one question");
        }
        let labels: HashSet<&str> = answer.selected.iter().map(String::as_str).collect();
        let known = |label: &&str| question.options.iter().any(|option| option.label == *label);
        if labels.len() != answer.selected.len() || !labels.iter().all(known) {
            return Err("select an unknown option or one option twice");
        }
        let text = answer.custom_text.as_deref().unwrap_or_default();
        if text.chars().count() > MAX_FREE_TEXT_CHARS {
            return Err("have more than 2000 characters");
        }
        let chosen = labels.len() + usize::from(!text.is_empty());
        if chosen == 0 || (chosen > 1 && !question.multi_select) {
            return Err("must select one option, or several if the question allows it");
        }
    }
    Ok(Payload(serde_json::to_string(given).expect("consists of strings, numbers and lists").into()))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn question(several: bool) -> Question {
        let choice = |label: &str| Choice { label: label.into(), description: None, preview: None };
        let options = vec![choice("Tea"), choice("Water")];
        Question { text: "What?".into(), header: "Drink".into(), options, several }
    }

    fn answer(question_index: usize, selected: &[&str], text: Option<&str>) -> QuestionAnswer {
        let selected = selected.iter().map(|label| (*label).into()).collect();
        QuestionAnswer { question_index, selected, custom_text: text.map(Into::into) }
    }

    #[test]
    fn an_answer_is_an_option_or_free_text_and_several_only_if_allowed() {
        let stored =
            to_payload(&Questions { id: "q".into(), questions: vec![question(false), question(true)] });
        assert_eq!(asked(&stored).len(), 2);
        let good = [
            vec![answer(0, &["Tea"], None)],
            vec![answer(0, &[], Some("Milk")), answer(1, &["Tea", "Water"], Some("both"))],
        ];
        for given in good {
            assert_eq!(answers(&validate_answers(&stored, &given).unwrap()), given);
        }
        let long = "x".repeat(MAX_FREE_TEXT_CHARS + 1);
        let bad = [
            vec![],
            vec![answer(2, &["Tea"], None)],
            vec![answer(usize::MAX, &["Tea"], None)],
            vec![answer(0, &["Beer"], None)],
            vec![answer(0, &["Tea", "Water"], None)],
            vec![answer(0, &["Tea"], Some("and milk"))],
            vec![answer(1, &["Tea", "Tea"], None)],
            vec![answer(0, &[], None)],
            vec![answer(0, &[], Some(""))],
            vec![answer(1, &[], Some(&long))],
            vec![answer(0, &["Tea"], None), answer(0, &["Tea"], None)],
        ];
        for given in bad {
            assert!(validate_answers(&stored, &given).is_err(), "{given:?}");
        }
    }
}
