//! Questions of agents to users.

use super::super::frames::tools::{AnsweredUser, AskUser, UserQuestion};
use super::super::frames::{Answer, Push};
use super::MESSAGE_BYTES;
use crate::frames::{encode, encode_about};
use parlor_model::run_event::Question;
use parlor_model::{Approval, ApprovalSubject};
use serde_json::value::RawValue;
use std::borrow::Cow;

/// Encodes the questions of a run in a session. `None` for a tool approval and for a question in a room.
pub fn asked(approval: &Approval) -> Option<String> {
    let session = approval.place.session()?;
    let ApprovalSubject::Questions(questions) = &approval.subject else { return None };
    let labels = |question: &Question| -> Vec<Cow<'static, str>> {
        question.options.iter().map(|option| option.label.to_string().into()).collect()
    };
    let (question, options, questions) = match &questions[..] {
        [question] => {
            let options = Some(labels(question)).filter(|options| !options.is_empty());
            (Cow::Borrowed(&*question.text), options, Vec::new())
        }
        several => {
            let lines: Vec<&str> = several.iter().map(|question| &*question.text).collect();
            let each = several.iter().map(|question| UserQuestion {
                question: (&*question.text).into(),
                options: labels(question),
                multi_select: question.several,
            });
            (lines.join("\n").into(), None, each.collect())
        }
    };
    let ask = AskUser {
        question_id: approval.id.as_str().into(),
        agent_id: approval.agent.as_str().into(),
        session_id: session.as_str().into(),
        question,
        options,
        context: None,
        questions,
    };
    Some(encode_about(&Push::AskUser(ask), MESSAGE_BYTES))
}

/// Encodes that the answer of a user was accepted.
pub fn answered(question: &str, req_id: Option<&RawValue>) -> String {
    encode(&Answer::AskUserResponse(AnsweredUser { question_id: question.into(), req_id }))
}
