//! Tasks, in memory.

use super::TablesView;
use super::table::sorted;
use super::tables::Tables;
use parlor_engine::Fault;
use parlor_engine::changes::TaskChange;
use parlor_engine::ports::ReadTasks;
use parlor_model::{MemberId, RoomId, Task, TaskId, UserId};
use std::cmp::Reverse;

impl ReadTasks for TablesView {
    fn task(&mut self, id: &TaskId) -> Result<Option<Task>, Fault> {
        Ok(self.tables.tasks.get(id).cloned())
    }

    fn task_count(&mut self, room: &RoomId) -> Result<usize, Fault> {
        Ok(self.tables.tasks.values().filter(|task| task.room == *room).count())
    }

    fn tasks(&mut self, room: &RoomId) -> Result<Vec<Task>, Fault> {
        let tasks = self.tables.tasks.values().filter(|task| task.room == *room).cloned();
        Ok(sorted(tasks, |task| (task.created_at, task.id.clone())))
    }

    fn tasks_of(&mut self, user: &UserId, limit: usize, offset: usize) -> Result<Vec<Task>, Fault> {
        let own = MemberId::User(user.clone());
        let theirs = |task: &&Task| {
            let involved = task.created_by == own || task.assignee.as_ref() == Some(&own);
            involved && self.tables.in_room(&task.room, &own)
        };
        let tasks = self.tables.tasks.values().filter(theirs).cloned();
        let tasks = sorted(tasks, |task| (Reverse(task.created_at), task.id.clone()));
        Ok(tasks.into_iter().skip(offset).take(limit).collect())
    }
}

impl Tables {
    pub fn apply_tasks(&mut self, change: &TaskChange) {
        match change {
            TaskChange::PutTask(task) => {
                self.tasks.insert(task.id.clone(), task.as_ref().clone());
            }
            TaskChange::RemoveTask(task) => {
                self.tasks.remove(task);
            }
        }
    }
}
