//! Tasks: those of a room, and those that the caller created or is assigned.

use super::Pages;
use super::jaibber::names::Names;
use super::rooms::room_id;
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::Problem;
use crate::http::response::{Created, Data, Done, List, created, data, list as all};
use axum::extract::State;
use parlor_model::command::{ChangeTask, CreateTask, RemoveTask, TaskChanges};
use parlor_model::query::{GetTask, ListOwnTasks, ListTasks};
use parlor_model::{AgentId, Caller, MemberId, Task, TaskId, TaskPriority, Time, UserId};
use parlor_wire::ably::jaibber::rest::parse_any_status;
use parlor_wire::agentim::rest;
use parlor_wire::time;
use std::sync::Arc;

type TaskList = Result<List<rest::Task<'static>>, Problem>;

fn task_id(id: &str) -> Result<TaskId, Problem> {
    TaskId::parse(id).map_err(|_| Problem::not_an_id())
}

pub async fn own(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Parameters(pages): Parameters<Pages>,
) -> TaskList {
    let query = ListOwnTasks { limit: pages.limit(), offset: pages.offset() };
    let tasks = app.hub.read(&caller, query).await?;
    Ok(all(tasks.iter().map(rest::Task::from)))
}

pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> TaskList {
    let tasks = app.hub.read(&caller, ListTasks { room: room_id(&id)? }).await?;
    Ok(all(tasks.iter().map(rest::Task::from)))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewTask>,
) -> Result<Created<rest::Task<'static>>, Problem> {
    let assignee = match &body.assignee_id {
        Some(id) => Some(parse_assignee(id, body.assignee_type.as_deref())?),
        None => None,
    };
    let command = CreateTask {
        room: room_id(&id)?,
        by: None,
        title: body.title,
        description: body.description,
        priority: TaskPriority::Medium,
        due_at: body.due_date.as_deref().map(parse_due_date).transpose()?,
        assignee,
        parent: None,
    };
    Ok(created(rest::Task::from(&*app.hub.execute(&caller, command).await?)))
}

pub async fn change(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::TaskChanges>,
) -> Result<Data<rest::Task<'static>>, Problem> {
    let task = change_task(&app, &caller, &id, body).await?;
    Ok(data(rest::Task::from(&*task)))
}

pub async fn change_task(
    app: &App,
    caller: &Caller,
    id: &str,
    body: rest::TaskChanges,
) -> Result<Arc<Task>, Problem> {
    let task = task_id(id)?;
    let kind = body.assignee_type.as_deref();
    let status = |word: &str| {
        let rule = "must be pending, in_progress, input_required, completed, failed or cancelled";
        parse_any_status(word).map(|(status, _)| status).ok_or(Problem::invalid("status", rule))
    };
    let priority = |word: &str| {
        TaskPriority::parse(word).ok_or(Problem::invalid("priority", "must be low, medium, high or urgent"))
    };
    let assignee = match (body.assignee_id, body.assigned_agent_name) {
        (Some(id), _) => Some(id.map(|id| parse_assignee(&id, kind)).transpose()?),
        (None, Some(None)) => Some(None),
        (None, Some(Some(name))) => Some(Some(agent_of_room(app, caller, &task, &name).await?)),
        (None, None) => None,
    };
    let changes = TaskChanges {
        title: body.title,
        description: body.description.into(),
        status: body.status.as_deref().map(status).transpose()?,
        priority: body.priority.as_deref().map(priority).transpose()?,
        result: body.result.into(),
        due_at: body.due_date.map(|date| date.as_deref().map(parse_due_date).transpose()).transpose()?.into(),
        assignee: assignee.into(),
    };
    Ok(app.hub.execute(caller, ChangeTask { task, changes }).await?)
}

/// The agent with this name in the room of the task.
async fn agent_of_room(app: &App, caller: &Caller, task: &TaskId, name: &str) -> Result<MemberId, Problem> {
    let room = app.hub.read(caller, GetTask { task: task.clone() }).await?.room;
    let names = Names::of(app, caller, &room).await?;
    let agent = names.agent(name).cloned().map(MemberId::Agent);
    agent.ok_or(Problem::invalid("assignedAgentName", "is not an agent in the room"))
}

pub async fn remove(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
) -> Result<Done, Problem> {
    app.hub.execute(&caller, RemoveTask { task: task_id(&id)? }).await?;
    Ok(Done)
}

fn parse_due_date(text: &str) -> Result<Time, Problem> {
    time::parse(text).ok_or(Problem::invalid("dueDate", "must be a time"))
}

fn parse_assignee(id: &str, kind: Option<&str>) -> Result<MemberId, Problem> {
    let not_an_id = |_| Problem::invalid("assigneeId", "is not an id");
    match kind {
        None | Some("user") => UserId::parse(id).map(MemberId::User).map_err(not_an_id),
        Some("agent") => AgentId::parse(id).map(MemberId::Agent).map_err(not_an_id),
        Some(_) => Err(Problem::invalid("assigneeType", "must be user or agent")),
    }
}
