//! REST calls of the chat events protocol: messages to agents, their queues, runs and questions.

use super::rooms::room_id;
use super::roots::rooms_of_call;
use crate::App;
use crate::auth::tickets;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::response::{BareJson, Items, bare_json, items};
use crate::rest::uploads;
use axum::extract::State;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use parlor_engine::fanout::RoomFilter;
use parlor_model::command::{AnswerQuestions, StartChat};
use parlor_model::query::{
    GetAgentCard, GetApproval, GetRun, GetRunMessages, ListAgents, ListChildRuns, ListMembers,
    ListOpenQuestions, ListRooms, ListRuns, ListRunsOfMessage, MayUpload, NamedRun,
};
use parlor_model::{
    AgentId, ApprovalId, ApprovalKind, Caller, Decision, EntityKind, MemberId, Post, Refusal, RoomId, Run,
    RunId, RunState,
};
use parlor_wire::events::ingress;
use parlor_wire::events::rest::{
    AgentRun, Cancelled, ChatAccepted, NewAnswers, NewCancel, NewChat, OpenQuestion, QueueItem, QueueList,
    QueueRemoved, Responded, RunContext, Ticket,
};
use serde::Deserialize;
use std::sync::Arc;
use std::time::Instant;
use utoipa::IntoParams;

/// Maximum images in one message.
const MAX_IMAGES: usize = 8;
/// Maximum runs in one list.
const MAX_RUNS: usize = 200;

pub async fn ticket(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<BareJson<Ticket>, Problem> {
    app.hub.may_follow(&caller, &RoomFilter::All).await?;
    let ticket = app.tickets.issue(&caller, Instant::now())?;
    Ok(bare_json(Ticket { ticket, expires_in: tickets::TICKET_TTL.as_secs() }))
}

pub(super) fn agent_id(text: &str) -> Result<AgentId, Problem> {
    AgentId::parse(text).map_err(|_| Refusal::NotFound(EntityKind::Agent).into())
}

pub async fn chat(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewChat>,
) -> Result<BareJson<ChatAccepted>, Problem> {
    // The response reveals the resulting run, so a caller without read access is rejected before the post.
    app.hub.may(&caller, ListRooms).await?;
    app.hub.may(&caller, MayUpload).await?;
    let rooms =
        rooms_of_call(&app, &caller, body.session_id.as_deref(), body.project_root.as_deref()).await?;
    if body.session_id.is_none() && rooms.is_some() {
        return Err(Problem::invalid(
            "session_id",
            "is required with project_root: a new room has no project root",
        ));
    }
    let room = rooms.and_then(|rooms| rooms.into_iter().next());
    let (mut agent, mut text) = (agent_id(&body.agent_id)?, body.message.as_str());
    if let Some((name, rest)) = ingress::addressed(text)
        && let Some(named) = find_agent(&app, &caller, room.as_ref(), name).await?
    {
        (agent, text) = (named, rest);
    }
    let text = match body.mode.as_deref() {
        None | Some("") => text.into(),
        Some("plan") if text.starts_with("/plan ") => text.into(),
        Some("plan") => format!("/plan {text}").into(),
        Some(_) => return Err(Problem::invalid("mode", "must be plan or omitted")),
    };
    if room.is_some() && !can_address(&app, &caller, room.as_ref(), &agent).await? {
        return Err(Refusal::NotFound(EntityKind::Agent).into());
    }
    let attachments = store_images(&app, &caller, body.images.unwrap_or_default()).await?;
    let (mentions, reply_to, client_message_id) = (vec![agent.as_str().into()], None, None);
    let new = room.is_none();
    let room = room.unwrap_or_else(|| RoomId::stored("new"));
    let post = Post { room, text, mentions, reply_to, attachments, client_message_id };
    let posted = match new {
        true => app.hub.execute(&caller, StartChat { agent: agent.clone(), post }).await,
        false => app.hub.execute(&caller, post).await,
    };
    let posted = posted.map_err(rename_text_field)?;
    let message = posted.message.ok_or(Refusal::Unavailable)?;
    let session = message.destination.room().ok_or(Refusal::Unavailable)?.as_str().to_owned();
    let runs = app.hub.read(&caller, ListRunsOfMessage { message: message.id.clone() }).await?;
    let run = runs.into_iter().map(|(run, _)| run).find(|run| run.agent == agent);
    let (status, reason) = match &run {
        None => ("refused", Some("no gateway hosts this agent".to_owned())),
        Some(Run { state: RunState::Ended(outcome), .. }) if outcome.reason().is_some() => {
            ("refused", outcome.reason().map(Into::into))
        }
        Some(run) if run.state == RunState::Queued && app.hub.must_wait(run).await => ("queued", None),
        Some(_) => ("started", None),
    };
    Ok(bare_json(ChatAccepted {
        status,
        session_id: session,
        message_id: message.id.as_str().into(),
        run_id: run.map(|run| run.id.as_str().into()),
        reason,
    }))
}

/// Renames the field of text errors from `content` to `message`, as the field is called in this request.
fn rename_text_field(refusal: Refusal) -> Refusal {
    let Refusal::Invalid(mut errors) = refusal else { return refusal };
    errors
        .iter_mut()
        .filter(|error| error.field == "content")
        .for_each(|error| error.field = "message".into());
    Refusal::Invalid(errors)
}

/// Finds the agent with this id, or the only agent with this name, among the agents that the caller can
/// address: the members of `room`, or without a room all agents visible to the caller.
async fn find_agent(
    app: &App,
    caller: &Caller,
    room: Option<&RoomId>,
    name: &str,
) -> Result<Option<AgentId>, Refusal> {
    if let Ok(agent) = AgentId::parse(name)
        && can_address(app, caller, room, &agent).await?
    {
        return Ok(Some(agent));
    }
    let agents = app.hub.read(caller, ListAgents).await?;
    let name = name.to_lowercase();
    let mut found = None;
    for agent in agents.into_iter().filter(|agent| agent.name.to_lowercase() == name) {
        if can_address(app, caller, room, &agent.id).await? && found.replace(agent.id).is_some() {
            return Ok(None);
        }
    }
    Ok(found)
}

/// Whether the caller can address this agent: it is a member of `room`, or without a room it is visible to
/// the caller.
async fn can_address(
    app: &App,
    caller: &Caller,
    room: Option<&RoomId>,
    agent: &AgentId,
) -> Result<bool, Refusal> {
    let Some(room) = room else {
        return match app.hub.read(caller, GetAgentCard { id: agent.clone() }).await {
            Ok(_) => Ok(true),
            Err(Refusal::NotFound(_)) => Ok(false),
            Err(refusal) => Err(refusal),
        };
    };
    let query = ListMembers { room: room.clone(), limit: usize::MAX, offset: 0 };
    let page = app.hub.read(caller, query).await?;
    Ok(page.members.iter().any(|member| member.member == MemberId::Agent(agent.clone())))
}

/// Stores the base64 images of a message as uploads of the caller and returns their ids, for use as
/// attachments.
async fn store_images(
    app: &Arc<App>,
    caller: &Caller,
    images: Vec<String>,
) -> Result<Vec<Box<str>>, Problem> {
    if images.len() > MAX_IMAGES {
        return Err(Problem::invalid("images", "must be at most 8 images"));
    }
    let mut ids = Vec::new();
    for (number, image) in images.iter().enumerate() {
        let content = BASE64_STANDARD.decode(ingress::picture(image));
        let content = content.map_err(|_| Problem::invalid("images", "must be base64"))?;
        let name = format!("image-{}", number + 1);
        ids.push(uploads::store_image(app, caller, &name, content).await?.id.as_str().into());
    }
    Ok(ids)
}

/// Query parameters: `?session_id=&agent_id=`.
#[derive(Deserialize, IntoParams)]
pub struct QueueQuery {
    /// Only messages in this room.
    session_id: Option<String>,
    /// Only messages for this agent.
    agent_id: Option<String>,
}

/// Query parameters: `?session_id=&agent_id=&id=`.
#[derive(Deserialize, IntoParams)]
pub struct UnqueueQuery {
    /// Room whose queued messages are removed.
    session_id: String,
    /// Only messages for this agent.
    agent_id: Option<String>,
    /// Only the queue item with this id.
    id: Option<String>,
}

pub async fn queue(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<QueueQuery>,
) -> Result<BareJson<QueueList>, Problem> {
    let room = params.session_id.as_deref().map(room_id).transpose()?;
    let agent = params.agent_id.as_deref().map(agent_id).transpose()?;
    let queued = app.hub.queue(&caller, room).await?;
    let matching = queued.iter().filter(|queued| agent.as_ref().is_none_or(|agent| *agent == queued.agent));
    let items = matching.map(|queued| QueueItem::new(&queued.item, &queued.room, &queued.agent)).collect();
    Ok(bare_json(QueueList { items }))
}

pub async fn unqueue(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<UnqueueQuery>,
) -> Result<BareJson<QueueRemoved>, Problem> {
    let (room, agent) = (room_id(&params.session_id)?, params.agent_id.as_deref().map(agent_id).transpose()?);
    let run = params.id.as_deref().map(run_id).transpose()?;
    let removed = app.hub.unqueue(&caller, &room, agent.as_ref(), run.as_ref()).await?;
    Ok(bare_json(QueueRemoved { removed: removed.iter().map(ToString::to_string).collect() }))
}

fn run_id(text: &str) -> Result<RunId, Problem> {
    RunId::parse(text).map_err(|_| Refusal::NotFound(EntityKind::Run).into())
}

/// Query parameters: `?session_id=&project_root=`.
#[derive(Deserialize, IntoParams)]
pub struct SessionQuery {
    /// Room id.
    pub(super) session_id: Option<String>,
    /// Absolute path of a project root: selects the caller's rooms with this root.
    pub(super) project_root: Option<String>,
}

pub async fn runs(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
) -> Result<Items<AgentRun>, Problem> {
    let rooms =
        rooms_of_call(&app, &caller, params.session_id.as_deref(), params.project_root.as_deref()).await?;
    let mut runs = Vec::new();
    match rooms {
        None => runs = app.hub.read(&caller, ListRuns { room: None, limit: MAX_RUNS }).await?,
        Some(rooms) => {
            for room in rooms {
                let query = ListRuns { room: Some(room), limit: MAX_RUNS };
                runs.extend(app.hub.read(&caller, query).await?);
            }
            runs.sort_by_key(|(run, _)| std::cmp::Reverse(run.queued_at));
            runs.truncate(MAX_RUNS);
        }
    }
    Ok(run_list(&app, &runs))
}

fn run_list(app: &App, runs: &[NamedRun]) -> Items<AgentRun> {
    let roots = app.hub.roots();
    items(runs.iter().map(|(run, name)| AgentRun::new(run, name, roots.of(&run.room).as_deref())))
}

/// Query parameters of `GET /api/agent-children` and `GET /api/agent-context`; only the latter uses `view`.
#[derive(Deserialize, IntoParams)]
pub struct RunQuery {
    run_id: String,
    /// `summary` (default), or `raw` to include the full message texts.
    view: Option<String>,
}

pub async fn children(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<RunQuery>,
) -> Result<Items<AgentRun>, Problem> {
    let query = ListChildRuns { run: run_id(&params.run_id)? };
    Ok(run_list(&app, &app.hub.read(&caller, query).await?))
}

pub async fn context(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<RunQuery>,
) -> Result<BareJson<RunContext>, Problem> {
    let raw = match params.view.as_deref() {
        None | Some("summary") => false,
        Some("raw") => true,
        Some(_) => return Err(Problem::invalid("view", "must be summary or raw")),
    };
    let run = run_id(&params.run_id)?;
    let messages = GetRunMessages { run: run.clone() };
    let (run, name) = app.hub.read(&caller, GetRun { run }).await?;
    let messages = app.hub.read(&caller, messages).await?;
    let root = app.hub.roots().of(&run.room);
    Ok(bare_json(RunContext::new(&run, &name, root.as_deref(), &messages, raw)))
}

pub async fn cancel(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewCancel>,
) -> Result<BareJson<Cancelled>, Problem> {
    let cancelled = app.hub.cancel(&caller, &run_id(&body.run_id)?).await?;
    Ok(bare_json(Cancelled { cancelled_run_ids: cancelled.iter().map(ToString::to_string).collect() }))
}

pub async fn questions(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Items<OpenQuestion>, Problem> {
    let open = app.hub.read(&caller, ListOpenQuestions).await?;
    Ok(items(open.iter().map(OpenQuestion::from)))
}

const QUESTION_NOT_FOUND: Problem = Problem::Status(StatusCode::NOT_FOUND, "Question not found");

pub async fn respond(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewAnswers>,
) -> Result<BareJson<Responded>, Problem> {
    let id = ApprovalId::parse(&body.question_id).map_err(|_| QUESTION_NOT_FOUND)?;
    open_question(&app, &caller, &id).await?;
    let answers = body.answers.into_iter().map(Into::into).collect();
    match app.hub.answer_questions(&caller, AnswerQuestions { approval: id.clone(), answers }).await {
        Ok(_) => Ok(bare_json(Responded { status: "ok" })),
        Err(refusal) => {
            // Answered or expired since the check above: return the status for that.
            open_question(&app, &caller, &id).await?;
            Err(refusal.into())
        }
    }
}

/// Checks that the question set is still open; otherwise 404 (unknown), 409 (answered) or 410 (closed).
async fn open_question(app: &App, caller: &Caller, id: &ApprovalId) -> Result<(), Problem> {
    let question = match app.hub.read(caller, GetApproval { approval: id.clone() }).await {
        Ok(found) if found.subject.kind() == ApprovalKind::Questions => found,
        Ok(_) | Err(Refusal::NotFound(EntityKind::Approval)) => return Err(QUESTION_NOT_FOUND),
        Err(refusal) => return Err(refusal.into()),
    };
    match &question.decision {
        None => Ok(()),
        Some(Decision::Answered { .. }) => {
            Err(Problem::Status(StatusCode::CONFLICT, "This question was answered already"))
        }
        Some(_) => Err(Problem::Status(StatusCode::GONE, "This question is no longer open")),
    }
}
