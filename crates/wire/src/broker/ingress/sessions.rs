//! Requests about sessions, instructions, tools, logs and questions.

use super::super::frames::sessions::{
    AbortSession, ContinueSession, ConversationOf, LogOptions, SearchLogs, StartSession,
};
use super::super::frames::tools::{AnswerUser, ExecuteTool};
use super::{EchoedFields, agent, named, required, time_from, time_to};
use parlor_model::query::{EntryFilter, SearchConversations};
use parlor_model::{AgentId, ApprovalId, EntryKind, Payload, SessionId, ToolCall};
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::sync::Arc;

#[derive(Debug)]
pub enum SessionRequest {
    List {
        agent: AgentId,
    },
    /// Starts a run in a session, which is created if it does not exist.
    Start {
        agent: AgentId,
        /// `None` for a new session.
        session: Option<SessionId>,
        prompt: Arc<str>,
    },
    /// Starts a run in an existing session.
    Continue {
        agent: AgentId,
        session: SessionId,
        prompt: Arc<str>,
    },
    Abort {
        agent: Option<AgentId>,
        session: SessionId,
    },
    Active {
        agent: Option<AgentId>,
    },
    History {
        agent: AgentId,
        session: SessionId,
    },
    SearchLogs(SearchConversations),
    Conversations {
        /// Beginning of the agent ids.
        prefix: Box<str>,
    },
}

#[derive(Debug)]
pub enum ToolRequest {
    List { agent: AgentId },
    Refresh { agent: Option<AgentId> },
    Execute(ToolCall),
}

/// Answer of a user to the questions of an agent.
#[derive(Debug)]
pub struct UserAnswer {
    /// `None` if the id cannot be one of the hub.
    pub question: Option<ApprovalId>,
    pub answers: UserAnswers,
}

#[derive(Debug)]
pub enum UserAnswers {
    /// The answer to the only question of the set.
    One(Box<str>),
    /// One answer to each question of the set, in its order.
    Each(Vec<Box<str>>),
}

const DEFAULT_MATCHES: usize = 100;
/// Maximum number of entries that one `logs.search` returns.
const MAX_MATCHES: usize = 1000;

pub(super) fn start(form: StartSession<'_>, about: &mut EchoedFields) -> Result<SessionRequest, Box<str>> {
    let session = form.id.map(|id| session(id, about)).transpose()?;
    let agent = named(required("agent", form.agent)?, about)?;
    Ok(SessionRequest::Start { agent, session, prompt: prompt(form.prompt)? })
}

pub(super) fn continued(
    form: ContinueSession<'_>,
    about: &mut EchoedFields,
) -> Result<SessionRequest, Box<str>> {
    let session = session(required("sessionId", form.session_id)?, about)?;
    let agent = named(required("agent", form.agent)?, about)?;
    Ok(SessionRequest::Continue { agent, session, prompt: prompt(form.prompt)? })
}

pub(super) fn abort(form: AbortSession<'_>, about: &mut EchoedFields) -> Result<SessionRequest, Box<str>> {
    let session = session(form.session_id, about)?;
    Ok(SessionRequest::Abort { agent: form.agent.as_deref().map(agent).transpose()?, session })
}

pub(super) fn history(
    form: ConversationOf<'_>,
    about: &mut EchoedFields,
) -> Result<SessionRequest, Box<str>> {
    let agent = named(form.agent, about)?;
    Ok(SessionRequest::History { agent, session: session(form.session_id, about)? })
}

pub(super) fn search(form: SearchLogs<'_>) -> Result<SessionRequest, Box<str>> {
    let LogOptions { query, agent_prefix, agent_id, role, kind, from_time, to_time, limit } =
        form.options.unwrap_or_default();
    let pattern = query.filter(|query| !query.is_empty());
    let pattern = pattern.ok_or_else(|| Box::<str>::from("logScanner.search: query is required"))?;
    // An unknown type matches no entry of the original broker. Here it is an error of the program.
    let kind = kind.map(|kind| {
        EntryKind::parse(&kind).ok_or_else(|| Box::<str>::from(format!("Unknown entry type: {kind:.50}")))
    });
    let filter = EntryFilter {
        agent: agent_id.as_deref().map(agent).transpose()?,
        agent_prefix: agent_prefix.map(Into::into),
        session: None,
        role: role.map(Into::into),
        kind: kind.transpose()?,
        from: from_time.map(time_from),
        to: to_time.map(time_to),
    };
    let limit = limit.unwrap_or(DEFAULT_MATCHES).clamp(1, MAX_MATCHES);
    Ok(SessionRequest::SearchLogs(SearchConversations { pattern: pattern.into(), filter, limit }))
}

pub(super) fn execute(form: ExecuteTool<'_>, about: &mut EchoedFields) -> Result<ToolRequest, Box<str>> {
    let agent = named(form.agent_id, about)?;
    let session = form.session_id.map(|id| session(id, about)).transpose()?;
    let input = form.input.map_or("{}", RawValue::get);
    if !input.starts_with('{') {
        return Err("input must be an object".into());
    }
    about.subject = Some((&*form.tool_name).into());
    let (tool, input) = (form.tool_name.into(), Payload(input.into()));
    Ok(ToolRequest::Execute(ToolCall { agent, session, tool, input }))
}

pub(super) fn answer(form: AnswerUser<'_>, about: &mut EchoedFields) -> Result<UserAnswer, Box<str>> {
    let question = ApprovalId::parse(&form.question_id).ok();
    about.subject = Some(form.question_id.into());
    let answers = match (form.answer, form.answers) {
        (Some(answer), _) => UserAnswers::One(answer.into()),
        (None, Some(answers)) => UserAnswers::Each(answers.into_iter().map(Into::into).collect()),
        (None, None) => return Err("answer is required".into()),
    };
    Ok(UserAnswer { question, answers })
}

fn prompt(prompt: Option<Cow<'_, str>>) -> Result<Arc<str>, Box<str>> {
    let prompt = prompt.filter(|prompt| !prompt.trim().is_empty());
    Ok(required("prompt", prompt)?.into_owned().into())
}

fn session(id: Cow<'_, str>, about: &mut EchoedFields) -> Result<SessionId, Box<str>> {
    let parsed = SessionId::parse(&id);
    let parsed = parsed.map_err(|_| Box::<str>::from(format!("Invalid session ID: {id:.200}")));
    about.session = Some(id.into());
    parsed
}
