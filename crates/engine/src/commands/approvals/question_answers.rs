//! Checks the answers of a user against the questions of an agent.

use parlor_model::run_event::{Question, QuestionAnswer};
use parlor_model::{Field, Refusal};
use std::collections::HashSet;

/// Maximum characters of a free-text answer.
const MAX_FREE_TEXT_CHARS: usize = 2000;

/// Refuses answers unless each of them belongs to another question, selects options of that question, and
/// gives as many of them as the question allows.
pub fn check(questions: &[Question], answers: &[QuestionAnswer]) -> Result<(), Refusal> {
    broken_rule(questions, answers).map_or(Ok(()), |rule| Err(Refusal::invalid(Field::Answers, rule)))
}

fn broken_rule(questions: &[Question], answers: &[QuestionAnswer]) -> Option<&'static str> {
    if answers.is_empty() {
        return Some("must contain at least one answer");
    }
    let mut seen = HashSet::new();
    for answer in answers {
        let Some(question) = questions.get(answer.question) else {
            return Some("refer to a question that does not exist");
        };
        if !seen.insert(answer.question) {
            return Some("must not contain two answers to one question");
        }
        let labels: HashSet<&str> = answer.selected.iter().map(|label| &**label).collect();
        let known = |label: &&str| question.options.iter().any(|option| &*option.label == *label);
        if labels.len() != answer.selected.len() || !labels.iter().all(known) {
            return Some("select an unknown option or one option twice");
        }
        let text = answer.text.as_deref().unwrap_or_default();
        if text.chars().count() > MAX_FREE_TEXT_CHARS {
            return Some("have more than 2000 characters");
        }
        let chosen = labels.len() + usize::from(!text.is_empty());
        if chosen == 0 || (chosen > 1 && !question.several) {
            return Some("must select one option, or several if the question allows it");
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::run_event::Choice;

    fn question(several: bool) -> Question {
        let choice = |label: &str| Choice { label: label.into(), description: None, preview: None };
        let options = vec![choice("Tea"), choice("Water")];
        Question { text: "What?".into(), header: "Drink".into(), options, several }
    }

    fn answer(question: usize, selected: &[&str], text: Option<&str>) -> QuestionAnswer {
        let selected = selected.iter().map(|label| (*label).into()).collect();
        QuestionAnswer { question, selected, text: text.map(Into::into) }
    }

    #[test]
    fn an_answer_is_an_option_or_free_text_and_several_only_if_allowed() {
        let questions = [question(false), question(true)];
        let good = [
            vec![answer(0, &["Tea"], None)],
            vec![answer(0, &[], Some("Milk")), answer(1, &["Tea", "Water"], Some("both"))],
        ];
        for given in good {
            assert_eq!(check(&questions, &given), Ok(()), "{given:?}");
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
            assert!(check(&questions, &given).is_err(), "{given:?}");
        }
    }
}
