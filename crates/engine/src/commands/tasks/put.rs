//! Changes of tasks that several commands make.

use crate::changes::TaskChange;
use crate::effects::EffectsBuilder;
use parlor_model::{EntityKind, Event, Refusal, Task, TaskStatus};
use std::sync::Arc;

/// Stores and publishes a task.
pub fn put(task: Task, effects: &mut EffectsBuilder<'_>) -> Arc<Task> {
    let task = Arc::new(task);
    effects.change(TaskChange::PutTask(task.clone()));
    effects.publish(Event::TaskChanged(task.clone()));
    task
}

/// Stores and publishes a task with the current time, unless it is the same as before.
pub fn put_if_changed(before: &Task, task: Task, effects: &mut EffectsBuilder<'_>) -> Arc<Task> {
    if task == *before {
        return Arc::new(task);
    }
    put(Task { updated_at: effects.now, ..task }, effects)
}

/// Sets the status of a task. An ended task must be reopened before it can be in progress.
pub fn set_status(task: &mut Task, status: TaskStatus) -> Result<(), Refusal> {
    if !task.status.may_become(status) {
        return Err(Refusal::HasEnded(EntityKind::Task));
    }
    task.status = status;
    Ok(())
}
