//! Tasks: reads, changes, and conversion between rows and model types.

use super::rooms::member_kind;
use super::rows::{all, maybe_text, maybe_time, number, one, run, shared, text, time};
use super::{Sql, SqlTables, rooms};
use parlor_engine::Fault;
use parlor_engine::changes::TaskChange;
use parlor_engine::ports::ReadTasks;
use parlor_model::{MemberId, RoomId, Task, TaskId, TaskPriority, TaskStatus, UserId};
use rusqlite::{Connection, Row};

impl<C: Sql> ReadTasks for SqlTables<C> {
    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, Fault> {
        let query = format!("SELECT {} FROM tasks WHERE id = ?1", TASK);
        one(self.sql()?, &query, &[&id.as_str()], task)
    }

    fn task_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        self.count("SELECT count(*) FROM tasks WHERE room = ?1", &[&room.as_str()])
    }

    fn tasks(&mut self, room: &RoomId) -> Result<Vec<Task>, Fault> {
        let query = format!("SELECT {} FROM tasks WHERE room = ?1 ORDER BY created_at, id", TASK);
        all(self.sql()?, &query, &[&room.as_str()], task)
    }

    fn tasks_of(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Task>, Fault> {
        let query = format!(
            "SELECT {} FROM tasks WHERE ((assignee_kind = 0 AND assignee = ?1) OR (creator_kind = 0 AND creator = ?1)) \
             AND EXISTS (SELECT 1 FROM members m WHERE m.room = tasks.room AND m.kind = 0 AND m.member = ?1) \
             ORDER BY created_at DESC, id LIMIT ?2 OFFSET ?3",
            TASK
        );
        all(self.sql()?, &query, &[&user.as_str(), &number(limit), &number(offset)], task)
    }
}

pub fn apply(sql: &Connection, change: &TaskChange) -> Result<(), Fault> {
    match change {
        TaskChange::PutTask(task) => put(sql, task)?,
        TaskChange::RemoveTask(task) => {
            run(sql, "DELETE FROM tasks WHERE id = ?1", &[&task.as_str()])?;
        }
    }
    Ok(())
}

pub const TASK: &str = "id, room, title, description, status, result, due_at, assignee_kind, assignee, creator_kind, \
     creator, created_at, updated_at, priority, parent";

pub fn task(row: &Row<'_>) -> rusqlite::Result<Task> {
    let status: i64 = row.get(4)?;
    let found = TaskStatus::ALL.into_iter().find(|candidate| status_number(*candidate) == status);
    let number: i64 = row.get(13)?;
    let priority = TaskPriority::ALL.into_iter().find(|candidate| priority_number(*candidate) == number);
    let parent: Option<Box<str>> = maybe_text(row, 14)?;
    Ok(Task {
        id: TaskId::stored(shared(row, 0)?),
        room: RoomId::stored(shared(row, 1)?),
        title: text(row, 2)?,
        description: maybe_text(row, 3)?,
        status: found.unwrap_or(TaskStatus::Pending),
        priority: priority.unwrap_or_default(),
        result: maybe_text(row, 5)?,
        due_at: maybe_time(row, 6)?,
        assignee: match row.get::<_, Option<i64>>(7)? {
            Some(kind) => Some(rooms::member_id(kind, shared(row, 8)?)),
            None => None,
        },
        parent: parent.map(TaskId::stored),
        created_by: rooms::member_id(row.get(9)?, shared(row, 10)?),
        created_at: time(row, 11)?,
        updated_at: time(row, 12)?,
    })
}

/// Number of a task status on disk: never change one.
fn status_number(status: TaskStatus) -> i64 {
    match status {
        TaskStatus::Pending => 0,
        TaskStatus::InProgress => 1,
        TaskStatus::InputRequired => 2,
        TaskStatus::Completed => 3,
        TaskStatus::Failed => 4,
        TaskStatus::Cancelled => 5,
    }
}

/// Number of a task priority on disk: never change one.
fn priority_number(priority: TaskPriority) -> i64 {
    match priority {
        TaskPriority::Low => 0,
        TaskPriority::Medium => 1,
        TaskPriority::High => 2,
        TaskPriority::Urgent => 3,
    }
}

pub fn put(sql: &Connection, task: &Task) -> Result<(), Fault> {
    run(
        sql,
        "INSERT OR REPLACE INTO tasks VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9, ?10, ?11, ?12, ?13, ?14, ?15)",
        &[
            &task.id.as_str(),
            &task.room.as_str(),
            &&*task.title,
            &task.description.as_deref(),
            &status_number(task.status),
            &task.result.as_deref(),
            &task.due_at.map(|time| time.0),
            &task.assignee.as_ref().map(member_kind),
            &task.assignee.as_ref().map(MemberId::as_str),
            &member_kind(&task.created_by),
            &task.created_by.as_str(),
            &task.created_at.0,
            &task.updated_at.0,
            &priority_number(task.priority),
            &task.parent.as_ref().map(TaskId::as_str),
        ],
    )
    .map(drop)
}
