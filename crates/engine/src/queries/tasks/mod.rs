//! Queries about tasks.

mod get_task;
mod list_own_tasks;
mod list_tasks;

use crate::queries::answer_budget::count_within_budget;
use parlor_model::Task;

/// Drops the tasks that do not fit into one answer.
fn truncate_tasks(mut tasks: Vec<Task>) -> Vec<Task> {
    let text = |text: &Option<Box<str>>| text.as_ref().map_or(0, |text| text.len());
    tasks.truncate(count_within_budget(
        tasks.iter().map(|task| text(&task.description) + text(&task.result) + 500),
    ));
    tasks
}
