//! Bodies of the chat-events REST API, without the `{ok, data}` envelope of AgentIM. Times are in seconds
//! since 1970.

use super::answers::{self, AskedQuestion, QuestionAnswer};
use super::egress::{standing, status};
use crate::time::iso;
use parlor_model::{
    AgentId, Approval, CurrentPlan, Message, QueuedMessage, RoomId, Run, RunState, Sender, SessionId, Time,
};
use serde::{Deserialize, Serialize};
#[cfg(test)]
use ts_rs::TS;
use utoipa::ToSchema;

#[derive(Serialize, ToSchema)]
pub struct Ticket {
    pub ticket: String,
    /// Validity in seconds.
    pub expires_in: u64,
}

/// `POST /api/chat`
#[derive(Deserialize, ToSchema)]
pub struct NewChat {
    pub agent_id: String,
    pub message: String,
    /// Room id. If absent, a room is created.
    #[schema(nullable = false)]
    pub session_id: Option<String>,
    /// Project root; must equal that of the room.
    #[schema(nullable = false)]
    pub project_root: Option<String>,
    /// `plan` or absent.
    #[schema(nullable = false)]
    pub mode: Option<String>,
    /// Images in base64, with or without the prefix `data:…;base64,`.
    #[schema(nullable = false)]
    pub images: Option<Vec<String>>,
}

#[derive(Serialize, ToSchema)]
pub struct ChatAccepted {
    /// `started`, `queued`, or `refused` if the agent gets no run.
    pub status: &'static str,
    pub session_id: String,
    pub message_id: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub run_id: Option<String>,
    /// Reason why there is no run.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub reason: Option<String>,
}

#[derive(Debug, Serialize, ToSchema)]
#[cfg_attr(test, derive(TS))]
pub struct QueueItem {
    pub id: String,
    pub agent_id: String,
    /// Room. Absent if the run has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub session_id: Option<String>,
    /// Session of the agent, if the run takes place in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    #[cfg_attr(test, ts(optional))]
    pub agent_session_id: Option<String>,
    #[schema(required)]
    pub message_id: Option<String>,
    pub preview: String,
    pub timestamp: i64,
    pub status: &'static str,
}

impl QueueItem {
    pub fn new(
        item: &QueuedMessage,
        room: Option<&RoomId>,
        session: Option<&SessionId>,
        agent: &AgentId,
    ) -> Self {
        Self {
            id: item.run.as_str().into(),
            agent_id: agent.as_str().into(),
            session_id: room.map(|room| room.as_str().into()),
            agent_session_id: session.map(|session| session.as_str().into()),
            message_id: item.message.as_ref().map(|message| message.as_str().into()),
            preview: item.preview.clone().into(),
            timestamp: seconds(item.at),
            status: "queued",
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct QueueList {
    pub items: Vec<QueueItem>,
}

#[derive(Serialize, ToSchema)]
pub struct QueueRemoved {
    pub removed: Vec<String>,
}

/// `GET /api/project-roots`
#[derive(Serialize, ToSchema)]
pub struct ProjectRoots {
    /// Allowed project roots. A room may use one of these folders or a folder below it.
    pub roots: Vec<Box<str>>,
}

#[derive(Serialize, ToSchema)]
pub struct AgentRun {
    pub run_id: String,
    /// Project root of the room.
    #[schema(required)]
    pub repo_path: Option<String>,
    /// Room. Absent if the run has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session_id: Option<String>,
    /// Session of the agent, if the run takes place in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub agent_session_id: Option<String>,
    pub agent_id: String,
    pub agent_name: String,
    #[schema(required)]
    pub agent_kind: Option<String>,
    #[schema(required)]
    pub parent_run_id: Option<String>,
    /// `queued`, `running`, `completed`, `failed`, `cancelled`, `interrupted`, `refused`.
    pub status: &'static str,
    /// Reason of a refused or failed run.
    #[schema(required)]
    pub detail: Option<String>,
    #[schema(required)]
    pub message_id: Option<String>,
    #[schema(required)]
    pub reply_id: Option<String>,
    pub queued_at: i64,
    #[schema(required)]
    pub started_at: Option<i64>,
    #[schema(required)]
    pub ended_at: Option<i64>,
    pub queued_at_ms: i64,
    #[schema(required)]
    pub started_at_ms: Option<i64>,
    #[schema(required)]
    pub ended_at_ms: Option<i64>,
}

fn seconds(time: Time) -> i64 {
    time.0.div_euclid(1_000_000)
}

fn milliseconds(time: Time) -> i64 {
    time.0.div_euclid(1000)
}

impl AgentRun {
    pub fn new(run: &Run, name: &str, root: Option<&str>) -> Self {
        let (status, detail) = match &run.state {
            RunState::Queued => ("queued", None),
            RunState::Running => ("running", None),
            RunState::Ended(outcome) => (status(outcome), outcome.reason().map(Into::into)),
        };
        Self {
            run_id: run.id.as_str().into(),
            repo_path: root.map(Into::into),
            session_id: run.room().map(|room| room.as_str().into()),
            agent_session_id: run.session().map(|session| session.as_str().into()),
            agent_id: run.agent.as_str().into(),
            agent_name: name.into(),
            agent_kind: None,
            parent_run_id: run.parent.as_ref().map(|parent| parent.as_str().into()),
            status,
            detail,
            message_id: run.message().map(|message| message.as_str().into()),
            reply_id: run.reply.as_ref().map(|message| message.as_str().into()),
            queued_at: seconds(run.queued_at),
            started_at: run.started_at.map(seconds),
            ended_at: run.ended_at.map(seconds),
            queued_at_ms: milliseconds(run.queued_at),
            started_at_ms: run.started_at.map(milliseconds),
            ended_at_ms: run.ended_at.map(milliseconds),
        }
    }
}

#[derive(Serialize, ToSchema)]
pub struct RunContext {
    pub run: AgentRun,
    pub summary: RunSummary,
    /// Present with `view=raw` only.
    #[schema(required)]
    pub messages: Option<Vec<RunMessage>>,
}

#[derive(Serialize, ToSchema)]
pub struct RunSummary {
    pub message_count: usize,
    pub user_messages: usize,
    pub agent_messages: usize,
    pub system_messages: usize,
    #[schema(required)]
    pub started_at: Option<i64>,
    #[schema(required)]
    pub ended_at: Option<i64>,
}

#[derive(Serialize, ToSchema)]
pub struct RunMessage {
    pub message_id: String,
    pub agent_id: String,
    pub from_id: String,
    pub to_id: String,
    pub content: String,
    pub timestamp: i64,
    pub timestamp_ms: i64,
    pub is_observation: bool,
}

impl RunContext {
    pub fn new(
        run: &Run,
        name: &str,
        root: Option<&str>,
        messages: &[std::sync::Arc<Message>],
        raw: bool,
    ) -> Self {
        let by_agent = |message: &&std::sync::Arc<Message>| matches!(message.sender, Sender::Agent(_));
        let agents = messages.iter().filter(by_agent).count();
        let encode = |message: &std::sync::Arc<Message>| {
            let own = message.sender == Sender::Agent(run.agent.clone());
            RunMessage {
                message_id: message.id.as_str().into(),
                agent_id: run.agent.as_str().into(),
                from_id: message.sender.id().into(),
                to_id: if own { "user".into() } else { run.agent.as_str().into() },
                content: (&*message.text).into(),
                timestamp: seconds(message.at),
                timestamp_ms: milliseconds(message.at),
                is_observation: false,
            }
        };
        Self {
            run: AgentRun::new(run, name, root),
            summary: RunSummary {
                message_count: messages.len(),
                user_messages: messages.len() - agents,
                agent_messages: agents,
                system_messages: 0,
                started_at: run.started_at.map(seconds),
                ended_at: run.ended_at.map(seconds),
            },
            messages: raw.then(|| messages.iter().map(encode).collect()),
        }
    }
}

#[derive(Deserialize, ToSchema)]
pub struct NewCancel {
    pub run_id: String,
}

#[derive(Serialize, ToSchema)]
pub struct Cancelled {
    pub cancelled_run_ids: Vec<String>,
}

/// `POST /api/ask-user-response`
#[derive(Deserialize, ToSchema)]
pub struct NewAnswers {
    pub question_id: String,
    pub answers: Vec<QuestionAnswer>,
}

#[derive(Serialize, ToSchema)]
pub struct Responded {
    /// Always `ok`.
    pub status: &'static str,
}

/// A question set that an agent waits for.
#[derive(Serialize, ToSchema)]
pub struct OpenQuestion {
    pub question_id: String,
    /// Room. Absent if the run has none.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub session_id: Option<String>,
    /// Session of the agent, if the run takes place in one.
    #[serde(skip_serializing_if = "Option::is_none")]
    #[schema(nullable = false)]
    pub agent_session_id: Option<String>,
    pub agent_id: String,
    pub agent_name: String,
    pub run_id: String,
    pub questions: Vec<AskedQuestion>,
    pub expires_at: String,
}

impl From<&Approval> for OpenQuestion {
    fn from(approval: &Approval) -> Self {
        Self {
            question_id: approval.id.as_str().into(),
            session_id: approval.place.room().map(|room| room.as_str().into()),
            agent_session_id: approval.place.session().map(|session| session.as_str().into()),
            agent_id: approval.agent.as_str().into(),
            agent_name: approval.agent_name.as_ref().into(),
            run_id: approval.run.as_str().into(),
            questions: answers::asked(approval),
            expires_at: iso(approval.expires_at),
        }
    }
}

/// `POST /api/plan/approve`, `POST /api/plan/reject`
#[derive(Deserialize, ToSchema)]
pub struct OfPlan {
    pub agent_id: String,
    /// Room id. Required only if the agent has plans in several rooms.
    #[schema(nullable = false)]
    pub session_id: Option<String>,
    #[schema(nullable = false)]
    pub project_root: Option<String>,
}

/// `POST /api/plan/edit`
#[derive(Deserialize, ToSchema)]
pub struct PlanEdit {
    pub agent_id: String,
    #[schema(nullable = false)]
    pub session_id: Option<String>,
    #[schema(nullable = false)]
    pub project_root: Option<String>,
    pub text: String,
}

#[derive(Serialize, ToSchema)]
pub struct PlanJudged {
    /// `approved` or `rejected`.
    pub status: &'static str,
}

#[derive(Serialize, ToSchema)]
pub struct Okay {
    pub ok: bool,
}

impl Okay {
    pub const YES: Self = Self { ok: true };
}

/// Current plan of an agent.
#[derive(Serialize, ToSchema)]
pub struct AgentPlan {
    pub session_id: String,
    pub agent_id: String,
    pub run_id: String,
    pub rev: u64,
    /// The plan in the format of `plan_update`.
    #[schema(value_type = Object)]
    pub plan: serde_json::Value,
}

impl From<&CurrentPlan> for AgentPlan {
    fn from(plan: &CurrentPlan) -> Self {
        Self {
            session_id: plan.room.as_str().into(),
            agent_id: plan.agent.as_str().into(),
            run_id: plan.run.as_str().into(),
            rev: plan.rev,
            plan: serde_json::to_value(standing(plan)).expect("a plan consists of texts"),
        }
    }
}
