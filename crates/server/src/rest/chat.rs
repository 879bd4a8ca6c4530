//! REST calls of the chat events protocol: messages to agents, their queues, runs and questions.

use super::rooms::room_id;
use super::roots::room_selection;
use crate::App;
use crate::auth::tickets;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::Parameters;
use crate::http::problem::{ChatEventsProblem, Problem};
use crate::http::response::{BareJson, Items, bare_json, items};
use crate::rest::uploads;
use axum::extract::State;
use base64::Engine;
use base64::prelude::BASE64_STANDARD;
use http::StatusCode;
use parlor_model::command::{AnswerQuestions, CancelRun, PromptAgent, PromptMode, Prompted, WithdrawRuns};
use parlor_model::query::{
    GetRun, GetRunMessages, ListChildRuns, ListOpenQuestions, ListQueue, ListRooms, ListRuns, MayPromptAgent,
    NamedRun,
};
use parlor_model::{AgentId, ApprovalId, Caller, EntityKind, Refusal, RoomSelection, Run, RunId, RunState};
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
) -> Result<BareJson<Ticket>, ChatEventsProblem> {
    app.hub.may(&caller, ListRooms).await?;
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
) -> Result<BareJson<ChatAccepted>, ChatEventsProblem> {
    let rooms = room_selection(body.session_id.as_deref(), body.project_root.as_deref())?;
    let (agent, text): (_, Arc<str>) = (agent_id(&body.agent_id)?, body.message.into());
    // Checked before the mode, so that a key without the scope is always refused, and before images are stored.
    let check = MayPromptAgent { agent: agent.clone(), rooms: rooms.clone(), text: text.clone() };
    app.hub.may(&caller, check).await?;
    let mode = match body.mode.as_deref() {
        None | Some("") => PromptMode::Normal,
        Some("plan") => PromptMode::Plan,
        Some(_) => return Err(Problem::invalid("mode", "must be plan or omitted").into()),
    };
    let attachments = store_images(&app, &caller, body.images.unwrap_or_default()).await?;
    let prompted = app.hub.execute(&caller, PromptAgent { agent, rooms, text, mode, attachments }).await;
    let Prompted { posted, room, run } = prompted?;
    let (status, reason) = match &run {
        None => ("refused", Some("no gateway hosts this agent".to_owned())),
        Some(run) => match &run.state {
            RunState::Ended(outcome) if outcome.reason().is_some() => {
                ("refused", outcome.reason().map(Into::into))
            }
            RunState::Queued if app.hub.hosting().must_wait(run).await => ("queued", None),
            _ => ("started", None),
        },
    };
    Ok(bare_json(ChatAccepted {
        status,
        session_id: room.as_str().into(),
        message_id: posted.id.as_str().into(),
        run_id: run.map(|run| run.id.as_str().into()),
        reason,
    }))
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
) -> Result<BareJson<QueueList>, ChatEventsProblem> {
    let room = params.session_id.as_deref().map(room_id).transpose()?;
    let agent = params.agent_id.as_deref().map(agent_id).transpose()?;
    let queued = app.hub.read(&caller, ListQueue { room }).await?;
    let matching = queued.iter().filter(|queued| agent.as_ref().is_none_or(|agent| *agent == queued.agent));
    let items = matching
        .map(|queued| {
            let place = &queued.place;
            QueueItem::new(&queued.item, place.room(), place.session(), &queued.agent)
        })
        .collect();
    Ok(bare_json(QueueList { items }))
}

pub async fn unqueue(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<UnqueueQuery>,
) -> Result<BareJson<QueueRemoved>, ChatEventsProblem> {
    let (room, agent) = (room_id(&params.session_id)?, params.agent_id.as_deref().map(agent_id).transpose()?);
    let run = params.id.as_deref().map(run_id).transpose()?;
    let removed = app.hub.execute(&caller, WithdrawRuns { room, agent, run }).await?;
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

impl SessionQuery {
    pub(super) fn rooms(&self) -> Result<RoomSelection, Problem> {
        room_selection(self.session_id.as_deref(), self.project_root.as_deref())
    }
}

pub async fn runs(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<SessionQuery>,
) -> Result<Items<AgentRun>, ChatEventsProblem> {
    let runs = app.hub.read(&caller, ListRuns { rooms: params.rooms()?, limit: MAX_RUNS }).await?;
    Ok(run_list(&app, &runs))
}

fn run_list(app: &App, runs: &[NamedRun]) -> Items<AgentRun> {
    let roots = app.hub.roots();
    let root = |run: &Run| run.room().and_then(|room| roots.of(room));
    items(runs.iter().map(|(run, name)| AgentRun::new(run, name, root(run).as_deref())))
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
) -> Result<Items<AgentRun>, ChatEventsProblem> {
    let query = ListChildRuns { run: run_id(&params.run_id)? };
    Ok(run_list(&app, &app.hub.read(&caller, query).await?))
}

pub async fn context(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(params): Parameters<RunQuery>,
) -> Result<BareJson<RunContext>, ChatEventsProblem> {
    let raw = match params.view.as_deref() {
        None | Some("summary") => false,
        Some("raw") => true,
        Some(_) => return Err(Problem::invalid("view", "must be summary or raw").into()),
    };
    let run = run_id(&params.run_id)?;
    let messages = GetRunMessages { run: run.clone() };
    let (run, name) = app.hub.read(&caller, GetRun { run }).await?;
    let messages = app.hub.read(&caller, messages).await?;
    let root = run.room().and_then(|room| app.hub.roots().of(room));
    Ok(bare_json(RunContext::new(&run, &name, root.as_deref(), &messages, raw)))
}

pub async fn cancel(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewCancel>,
) -> Result<BareJson<Cancelled>, ChatEventsProblem> {
    let cancelled = app.hub.execute(&caller, CancelRun { run: run_id(&body.run_id)? }).await?;
    Ok(bare_json(Cancelled { cancelled_run_ids: cancelled.iter().map(ToString::to_string).collect() }))
}

pub async fn questions(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
) -> Result<Items<OpenQuestion>, ChatEventsProblem> {
    let open = app.hub.read(&caller, ListOpenQuestions).await?;
    Ok(items(open.iter().map(OpenQuestion::from)))
}

pub async fn respond(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Body(body): Body<NewAnswers>,
) -> Result<BareJson<Responded>, ChatEventsProblem> {
    let not_found = Problem::Status(StatusCode::NOT_FOUND, "Question not found");
    let Ok(approval) = ApprovalId::parse(&body.question_id) else { return Err(not_found.into()) };
    let answers = body.answers.into_iter().map(Into::into).collect();
    let answered = app.hub.execute(&caller, AnswerQuestions { approval, answers }).await;
    answered.map(|_| bare_json(Responded { status: "ok" })).map_err(|refusal| match refusal {
        Refusal::NotFound(EntityKind::Approval) => not_found.into(),
        Refusal::AlreadyExists(EntityKind::Approval) => {
            Problem::Status(StatusCode::CONFLICT, "This question was answered already").into()
        }
        Refusal::HasEnded(EntityKind::Approval) => {
            Problem::Status(StatusCode::GONE, "This question is no longer open").into()
        }
        refusal => refusal.into(),
    })
}
