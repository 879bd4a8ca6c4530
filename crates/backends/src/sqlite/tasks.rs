//! Converts tasks between rows and model types.

use super::rows::{maybe_text, maybe_time, member_id, member_kind, run, shared, text, time};
use parlor_engine::Fault;
use parlor_model::{MemberId, RoomId, Task, TaskId, TaskStatus};
use rusqlite::{Connection, Row};

pub const TASK: &str = "id, room, title, description, status, result, due_at, assignee_kind, assignee, creator_kind, \
     creator, created_at, updated_at";

pub fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    let status: i64 = row.get(4)?;
    let found = TaskStatus::ALL.into_iter().find(|candidate| number(*candidate) == status);
    Ok(Task {
        id: TaskId::stored(shared(row, 0)?),
        room: RoomId::stored(shared(row, 1)?),
        title: text(row, 2)?,
        description: maybe_text(row, 3)?,
        status: found.unwrap_or(TaskStatus::Pending),
        result: maybe_text(row, 5)?,
        due_at: maybe_time(row, 6)?,
        assignee: match row.get::<_, Option<i64>>(7)? {
            Some(kind) => Some(member_id(kind, shared(row, 8)?)),
            None => None,
        },
        created_by: member_id(row.get(9)?, shared(row, 10)?),
        created_at: time(row, 11)?,
        updated_at: time(row, 12)?,
    })
}

/// Number of a task status on disk: never change one.
fn number(status: TaskStatus) -> i64 {
    match status {
        TaskStatus::Pending => 0,
        TaskStatus::InProgress => 1,
        TaskStatus::InputRequired => 2,
        TaskStatus::Completed => 3,
        TaskStatus::Failed => 4,
        TaskStatus::Cancelled => 5,
    }
}

pub fn put(sql: &Connection, task: &Task) -> Result<(), Fault> {
    run(
        sql,
        "INSERT OR REPLACE INTO tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13)",
        &[
            &task.id.as_str(),
            &task.room.as_str(),
            &&*task.title,
            &task.description.as_deref(),
            &number(task.status),
            &task.result.as_deref(),
            &task.due_at.map(|time| time.0),
            &task.assignee.as_ref().map(member_kind),
            &task.assignee.as_ref().map(MemberId::as_str),
            &member_kind(&task.created_by),
            &task.created_by.as_str(),
            &task.created_at.0,
            &task.updated_at.0,
        ],
    )
    .map(drop)
}
