//! Instructions, tools and questions of agents.

use crate::connection::frame;
use crate::connection::peer::Peer;
use crate::connection::protocol::Reply;
use crate::tools::{self, ToolRefusal};
use parlor_engine::ports::FolderError;
use parlor_model::command::AnswerQuestions;
use parlor_model::query::{ListOpenQuestions, MayInstructAgent};
use parlor_model::run_event::{Question, QuestionAnswer};
use parlor_model::{AgentId, ApprovalSubject, EntityKind, Refusal, ToolCall};
use parlor_wire::broker::egress::{
    questions as question_frames, sessions as session_frames, tools as egress,
};
use parlor_wire::broker::frames::RequestType;
use parlor_wire::broker::ingress::{EchoedFields, InstructionsRequest, ToolRequest, UserAnswer, UserAnswers};
use parlor_wire::broker::{codes, egress as answers};
use serde_json::value::RawValue;
use tokio::task::JoinSet;

/// Maximum number of tool calls of a connection that run at the same time. Further ones are refused.
const MAX_CALLS: usize = 16;

/// Tool calls of a connection. They end with the connection.
#[derive(Default)]
pub struct ToolCalls(JoinSet<()>);

impl ToolCalls {
    /// Ends all calls, and the programs that they run.
    pub async fn end(mut self) {
        self.0.shutdown().await;
    }

    /// Runs a call beside the connection, which may take minutes. The result is sent when it is known, possibly after
    /// the answers to later requests: one of them may be the answer that the tool waits for.
    fn begin(&mut self, peer: &Peer, call: ToolCall, req_id: Option<&RawValue>) -> Result<(), Refusal> {
        while self.0.try_join_next().is_some() {}
        if self.0.len() >= MAX_CALLS {
            return Err(Refusal::AtCapacity);
        }
        let (app, outbox, req_id) = (peer.app.clone(), peer.outbox.clone(), req_id.map(ToOwned::to_owned));
        let caller = peer.signed_in()?.session.caller();
        self.0.spawn(async move {
            let (agent, tool) = (call.agent.clone(), call.tool.clone());
            let req_id = req_id.as_deref();
            let text = match tools::execute(&app, &caller, call).await {
                Ok(result) => egress::executed(&agent, &tool, &result, req_id),
                Err(ToolRefusal::Unknown) => {
                    let sentence = format!("Tool not found: {tool} (agent: {agent})");
                    answers::error(RequestType::ToolExecute, req_id, &sentence)
                }
                Err(ToolRefusal::Refused(refusal)) => {
                    let sentence = codes::sentence(&refusal, Some(agent.as_str()));
                    answers::error(RequestType::ToolExecute, req_id, &sentence)
                }
            };
            outbox.push(frame::text(&text));
        });
        Ok(())
    }
}

pub(super) async fn handle(
    peer: &Peer,
    calls: &mut ToolCalls,
    request: ToolRequest,
    (kind, about): (RequestType, &EchoedFields),
    req_id: Option<&RawValue>,
) -> Reply {
    let caller = match peer.signed_in() {
        Ok(identity) => identity.session.caller(),
        Err(refusal) => return Reply::text(&answers::refusal(kind, req_id, about, &refusal)),
    };
    let answered = match request {
        ToolRequest::List { agent } => tools::list(&peer.app, &caller, &agent)
            .await
            .map(|tools| Reply::text(&egress::tools(&agent, &tools, req_id))),
        ToolRequest::Refresh { agent } => tools::refresh(&peer.app, &caller, agent.as_ref())
            .await
            .map(|()| Reply::text(&egress::tools_refreshed(req_id))),
        ToolRequest::Execute(call) => calls.begin(peer, call, req_id).map(|()| Reply::None),
    };
    answered.unwrap_or_else(|refusal| Reply::text(&answers::refusal(kind, req_id, about, &refusal)))
}

/// Reads or replaces the agent's own `CLAUDE.md`.
pub(super) async fn instruct(
    peer: &Peer,
    agent: AgentId,
    request: InstructionsRequest,
    (kind, about): (RequestType, &EchoedFields),
    req_id: Option<&RawValue>,
) -> String {
    let permitted = match peer.signed_in() {
        Ok(identity) => {
            let query = MayInstructAgent { agent: agent.clone() };
            peer.app.hub.may(&identity.session.caller(), query).await
        }
        Err(refusal) => Err(refusal),
    };
    if let Err(refusal) = permitted {
        return answers::refusal(kind, req_id, about, &refusal);
    }
    let (folders, of) = (peer.app.config.folders.clone(), agent.clone());
    let work = move || match request {
        InstructionsRequest::Get => folders.claude_md(&of).map(Some),
        InstructionsRequest::Set { content } => folders.set_claude_md(&of, &content).map(|()| None),
    };
    match tokio::task::spawn_blocking(work).await.unwrap_or(Err(FolderError::Io)) {
        Ok(Some(content)) => egress::instructions(&agent, &content, req_id),
        Ok(None) => egress::instructions_stored(&agent, req_id),
        Err(error) => answers::error(kind, req_id, &capitalised(&error.to_string())),
    }
}

/// Answers the questions of an agent.
pub(super) async fn answer(
    peer: &Peer,
    answer: UserAnswer,
    about: &EchoedFields,
    req_id: Option<&RawValue>,
) -> String {
    let question = about.subject.as_deref().unwrap_or_default();
    match try_answer(peer, answer).await {
        Ok(()) => question_frames::answered(question, req_id),
        Err(sentence) => session_frames::refused(RequestType::AskUserResponse, None, req_id, &sentence),
    }
}

async fn try_answer(peer: &Peer, answer: UserAnswer) -> Result<(), String> {
    const UNKNOWN: &str = "No pending question with that ID (may have timed out)";
    let UserAnswer { question: approval, answers } = answer;
    let approval = approval.ok_or(UNKNOWN)?;
    let sentence = |refusal: Refusal| match refusal {
        Refusal::NotFound(EntityKind::Approval) => UNKNOWN.into(),
        Refusal::AlreadyExists(EntityKind::Approval) => "This question was answered already".into(),
        Refusal::HasEnded(EntityKind::Approval) => "This question is no longer open".into(),
        refusal => codes::sentence(&refusal, None),
    };
    let caller = peer.signed_in().map_err(sentence)?.session.caller();
    let open = peer.app.hub.read(&caller, ListOpenQuestions).await.map_err(sentence)?;
    let open = open.iter().find(|open| open.id == approval);
    // The answers to a question that is not open are refused with the reason.
    let questions = match open.map(|open| &open.subject) {
        Some(ApprovalSubject::Questions(questions)) => &questions[..],
        _ => &[],
    };
    let answers = match answers {
        UserAnswers::One(_) if questions.len() > 1 => {
            return Err(format!("answers is required: there are {} questions", questions.len()));
        }
        UserAnswers::One(text) => vec![text],
        UserAnswers::Each(texts) => texts,
    };
    let answers =
        answers.into_iter().enumerate().map(|(index, text)| selected(questions.get(index), index, text));
    let command = AnswerQuestions { approval, answers: answers.collect() };
    peer.app.hub.execute(&caller, command).await.map(drop).map_err(sentence)
}

/// The answer to a question: one of its options, or a free text.
fn selected(question: Option<&Question>, index: usize, text: Box<str>) -> QuestionAnswer {
    let is_option =
        question.is_some_and(|question| question.options.iter().any(|option| option.label == text));
    match is_option {
        true => QuestionAnswer { question: index, selected: vec![text], text: None },
        false => QuestionAnswer { question: index, selected: Vec::new(), text: Some(text) },
    }
}

fn capitalised(sentence: &str) -> String {
    let mut characters = sentence.chars();
    characters.next().map(|first| first.to_uppercase().chain(characters).collect()).unwrap_or_default()
}
