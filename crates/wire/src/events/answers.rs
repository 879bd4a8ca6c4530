//! What agents ask people, and what these say to it: kept in the form of this door, looked over before it is.

use parlor_model::run_event::{Choice, Question, Questions};
use parlor_model::{Decision, Payload};
use serde::{Deserialize, Serialize};
use std::collections::HashSet;
use utoipa::ToSchema;

/// What somebody writes themselves is no longer than this.
const MAX_FREE_TEXT: usize = 2000;

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
    /// Labels of options.
    #[serde(default)]
    pub selected: Vec<String>,
    /// In one's own words, instead or besides.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub custom_text: Option<String>,
}

/// As it is kept.
pub fn to_payload(asked: &Questions) -> Payload {
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
    let questions: Vec<AskedQuestion> = asked.questions.iter().map(question).collect();
    Payload(serde_json::to_string(&questions).expect("texts and lists of them").into())
}

pub fn asked(kept: &Payload) -> Vec<AskedQuestion> {
    serde_json::from_str(&kept.0).unwrap_or_default()
}

pub fn answers(kept: &Payload) -> Vec<QuestionAnswer> {
    serde_json::from_str(&kept.0).unwrap_or_default()
}

/// What became of questions.
pub fn status(decision: &Decision) -> &'static str {
    match decision {
        Decision::Answered { .. } => "answered",
        Decision::Expired => "expired",
        _ => "withdrawn",
    }
}

/// The answers as they are kept, or what is wrong with one of them.
pub fn validate_answers(kept: &Payload, given: &[QuestionAnswer]) -> Result<Payload, &'static str> {
    let questions = asked(kept);
    if given.is_empty() {
        return Err("must have one for a question at least");
    }
    let mut seen = HashSet::new();
    for answer in given {
        let Some(question) = questions.get(answer.question_index) else {
            return Err("are to questions that were not asked");
        };
        if !seen.insert(answer.question_index) {
            return Err("must be one for each question");
        }
        let labels: HashSet<&str> = answer.selected.iter().map(String::as_str).collect();
        let known = |label: &&str| question.options.iter().any(|option| option.label == *label);
        if labels.len() != answer.selected.len() || !labels.iter().all(known) {
            return Err("select what is no option, or twice");
        }
        let text = answer.custom_text.as_deref().unwrap_or_default();
        if text.chars().count() > MAX_FREE_TEXT {
            return Err("have more than 2000 characters");
        }
        let chosen = labels.len() + usize::from(!text.is_empty());
        if chosen == 0 || (chosen > 1 && !question.multi_select) {
            return Err("must be one, or several where several may be selected");
        }
    }
    Ok(Payload(serde_json::to_string(given).expect("texts and lists of them").into()))
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
    fn an_answer_is_an_option_or_ones_own_words_and_several_only_where_asked_for() {
        let kept =
            to_payload(&Questions { id: "q".into(), questions: vec![question(false), question(true)] });
        assert_eq!(asked(&kept).len(), 2);
        let good = [
            vec![answer(0, &["Tea"], None)],
            vec![answer(0, &[], Some("Milk")), answer(1, &["Tea", "Water"], Some("both"))],
        ];
        for given in good {
            assert_eq!(answers(&validate_answers(&kept, &given).unwrap()), given);
        }
        let long = "x".repeat(MAX_FREE_TEXT + 1);
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
            assert!(validate_answers(&kept, &given).is_err(), "{given:?}");
        }
    }
}
