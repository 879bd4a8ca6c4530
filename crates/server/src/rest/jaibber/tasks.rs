//! Tasks of a project. A task is changed and deleted by the routes that the hub's own clients use.

use super::names::{Names, own_agent};
use super::{invalid, page_limit, project_id};
use crate::App;
use crate::http::Authenticated;
use crate::http::body::Body;
use crate::http::parameters::{Parameters, Path};
use crate::http::problem::{JaibberProblem, Problem};
use crate::http::response::{BareCreated, BareJson, Data, bare_created, bare_json, data};
use crate::rest::tasks::change_task;
use axum::extract::State;
use parlor_model::command::CreateTask;
use parlor_model::query::ListTasks;
use parlor_model::{MemberId, Refusal, Task, TaskId, TaskPriority};
use parlor_wire::ably::jaibber::rest::{self, Continuation, StatusWords};
use parlor_wire::agentim;
use serde::Deserialize;
use std::sync::Arc;
use utoipa::IntoParams;

#[derive(Deserialize, IntoParams)]
#[serde(rename_all = "camelCase")]
#[into_params(rename_all = "camelCase")]
pub struct Filter {
    /// `submitted`, `working`, `input-required`, `completed`, `failed` or `cancelled`.
    status: Option<String>,
    assigned_agent_name: Option<String>,
    /// Default 50, maximum 200.
    limit: Option<usize>,
    /// Returns older tasks than this `cursor` of a page.
    before: Option<String>,
}

type TaskList = rest::Page<'static, rest::Task<'static>>;

/// Lists tasks, newest first.
pub async fn list(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Parameters(filter): Parameters<Filter>,
) -> Result<BareJson<TaskList>, JaibberProblem> {
    let (room, limit) = (project_id(&id)?, page_limit(filter.limit));
    let status = match filter.status.as_deref() {
        None => None,
        Some(word) => Some(rest::parse_status(word).ok_or_else(|| invalid("status", "is unknown"))?),
    };
    let before = match filter.before.as_deref() {
        None => None,
        Some(id) => Some(TaskId::parse(id).map_err(|_| invalid("before", "is not a cursor"))?),
    };
    let tasks = app.hub.read(&caller, ListTasks { room: room.clone() }).await?;
    let names = Names::of(&app, &caller, &room).await?;
    let assignee = filter.assigned_agent_name.as_deref().map(|name| names.agent(name));
    let matches = |task: &&Task| {
        let assigned = task.assignee.as_ref().and_then(MemberId::agent);
        status.is_none_or(|status| task.status == status)
            && assignee.is_none_or(|wanted| wanted.is_some() && assigned == wanted)
    };
    let newest_first = tasks.iter().rev().skip_while(|task| before.as_ref().is_some_and(|id| task.id != *id));
    let found: Vec<&Task> = newest_first.skip(usize::from(before.is_some())).filter(matches).collect();
    let page = &found[..limit.min(found.len())];
    let cursor = page.last().map(|task| task.id.as_str().into());
    let items = page.iter().map(|task| names.task(task)).collect();
    let path = format!("/api/projects/{id}/tasks");
    let more = found.len() > page.len();
    Ok(bare_json(rest::Page::of(items, &path, Continuation::Before, cursor, more)))
}

pub async fn create(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<rest::NewTask>,
) -> Result<BareCreated<rest::One<rest::Task<'static>>>, JaibberProblem> {
    let room = project_id(&id)?;
    let names = Names::of(&app, &caller, &room).await?;
    let assignee = match body.assigned_agent_name.as_deref() {
        None => None,
        Some(name) => {
            let agent = names.agent(name);
            let agent =
                agent.ok_or_else(|| invalid("assignedAgentName", "is not an agent in the project"))?;
            Some(MemberId::Agent(agent.clone()))
        }
    };
    let by = match body.created_by_type.as_deref() {
        None | Some("user") => None,
        Some("agent") => {
            let name = body.created_by_name.as_deref().unwrap_or_default();
            let agent = own_agent(&app, &caller, name, &names).await?;
            Some(agent.ok_or_else(|| invalid("createdByName", "is not an agent of yours"))?.id)
        }
        Some(_) => return Err(invalid("createdByType", "must be user or agent")),
    };
    let parent = match body.parent_task_id.as_deref() {
        None => None,
        Some(id) => Some(TaskId::parse(id).map_err(|_| invalid("parentTaskId", "is not an id"))?),
    };
    let priority = match body.priority.as_deref() {
        None => TaskPriority::Medium,
        Some(word) => TaskPriority::parse(word)
            .ok_or_else(|| invalid("priority", "must be low, medium, high or urgent"))?,
    };
    let (title, description) = (body.title, body.description);
    let command = CreateTask { room, by, title, description, priority, due_at: None, assignee, parent };
    let task = app.hub.execute(&caller, command).await?;
    Ok(bare_created(rest::One { data: names.task(&task) }))
}

/// Changes a task by a body of Jaibber or of the hub's own clients. The answer has the fields of both, and the
/// status in the vocabulary of the body.
pub async fn patch(
    State(app): State<Arc<App>>,
    Authenticated(caller): Authenticated,
    Path(id): Path<String>,
    Body(body): Body<agentim::rest::TaskChanges>,
) -> Result<Data<rest::ChangedTask<'static>>, Problem> {
    let jaibbers = body.priority.is_some() || body.assigned_agent_name.is_some();
    let word = body.status.as_deref().and_then(rest::parse_any_status).and_then(|(_, words)| words);
    let words = word.unwrap_or(if jaibbers { StatusWords::Jaibber } else { StatusWords::Hub });
    let task = change_task(&app, &caller, &id, body).await?;
    // A key without the scope to read may change tasks; its answer has ids in place of names.
    let names = match Names::of(&app, &caller, &task.room).await {
        Err(Refusal::Forbidden) => Names::default(),
        names => names?,
    };
    Ok(data(rest::ChangedTask::of(&task, names.task(&task), words)))
}
