//! Decides commands on the tasks of a room.

use super::{Change, Effects, EffectsBuilder, runs};
use parlor_model::command::{NewTask, TaskChanges};
use parlor_model::{Command, Edit, EntityKind, Event, MemberId, Receipt, Refusal, Task, TaskId, TaskStatus};
use std::sync::Arc;

/// Maximum number of tasks in one room.
const MAX_TASKS: usize = 1000;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateTask(new) => create(new, effects_builder),
        Command::ChangeTask { changes, .. } => change(changes, effects_builder),
        Command::ReportTask { status, result, .. } => {
            let (status, result) = (Some(*status), result.clone().map_or(Edit::Keep, Edit::Set));
            change(&TaskChanges { status, result, ..TaskChanges::default() }, effects_builder)
        }
        Command::RemoveTask { .. } => remove(effects_builder),
        _ => unreachable!("the dispatcher sends only task commands here"),
    }
}

fn create(new: &NewTask, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    if effects_builder.facts.tasks >= MAX_TASKS {
        return Err(Refusal::invalid("title", "exceeds the limit of 1000 tasks per room"));
    }
    let now = effects_builder.facts.now;
    let task = Task {
        id: TaskId::stored(effects_builder.decide_context.ids.next()),
        room: new.room.clone(),
        title: new.title.trim().into(),
        description: new.description.clone(),
        status: TaskStatus::Pending,
        result: None,
        due_at: new.due_at,
        assignee: assignee(new.assignee.as_ref(), &effects_builder)?,
        created_by: match &new.by {
            Some(agent) => MemberId::Agent(agent.clone()),
            None => MemberId::User(effects_builder.actor()?.id.clone()),
        },
        created_at: now,
        updated_at: now,
    };
    let receipt = put(task, &mut effects_builder);
    if let Receipt::Task(task) = &receipt {
        runs::assign(task, &mut effects_builder);
    }
    effects_builder.done(receipt)
}

fn assignee(
    requested: Option<&MemberId>,
    effects_builder: &EffectsBuilder,
) -> Result<Option<MemberId>, Refusal> {
    match requested {
        Some(_) if !effects_builder.facts.assignable => {
            Err(Refusal::invalid("assigneeId", "must be a member of the room"))
        }
        requested => Ok(requested.cloned()),
    }
}

fn put(task: Task, effects_builder: &mut EffectsBuilder) -> Receipt {
    let task = Arc::new(task);
    effects_builder.change(Change::PutTask(task.clone()));
    effects_builder.publish(Event::TaskChanged(task.clone()));
    Receipt::Task(task)
}

fn require_task(effects_builder: &EffectsBuilder) -> Result<Task, Refusal> {
    effects_builder.facts.task.clone().ok_or(Refusal::NotFound(EntityKind::Task))
}

/// A change without effect publishes no event.
fn change(changes: &TaskChanges, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let before = require_task(&effects_builder)?;
    let mut task = before.clone();
    if let Some(status) = changes.status {
        if !task.status.may_become(status) {
            return Err(Refusal::HasEnded(EntityKind::Task));
        }
        task.status = status;
    }
    if let Some(title) = &changes.title {
        task.title = title.trim().into();
    }
    changes.description.apply_to(&mut task.description);
    changes.result.apply_to(&mut task.result);
    changes.due_at.apply_to(&mut task.due_at);
    if !changes.assignee.is_keep() {
        task.assignee = assignee(changes.assignee.new_value(), &effects_builder)?;
    }
    if task == before {
        return effects_builder.done(Receipt::Task(Arc::new(task)));
    }
    task.updated_at = effects_builder.facts.now;
    let reassigned = task.assignee != before.assignee;
    let receipt = put(task, &mut effects_builder);
    if let (Receipt::Task(task), true) = (&receipt, reassigned) {
        runs::assign(task, &mut effects_builder);
    }
    effects_builder.done(receipt)
}

fn remove(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let Task { id, room, .. } = require_task(&effects_builder)?;
    effects_builder.change(Change::RemoveTask(id.clone()));
    effects_builder.publish(Event::TaskRemoved { room, task: id });
    effects_builder.done(Receipt::Done)
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{NOW, decide_with, facts};
    use super::*;
    use crate::facts::Facts;
    use parlor_model::{RoomId, Time, UserId};

    fn task(status: TaskStatus) -> Task {
        Task {
            id: TaskId::stored("task"),
            room: RoomId::stored("room"),
            title: "Tidy up".into(),
            description: None,
            status,
            result: None,
            due_at: None,
            assignee: None,
            created_by: MemberId::User(UserId::stored("ann")),
            created_at: Time(1),
            updated_at: Time(1),
        }
    }

    fn change(changes: TaskChanges, facts: Facts) -> Result<Effects, Refusal> {
        decide_with(&Command::ChangeTask { task: TaskId::stored("task"), changes }, &facts)
    }

    #[test]
    fn an_ended_task_is_reopened_before_it_is_in_progress() {
        for before in TaskStatus::ALL {
            for after in TaskStatus::ALL {
                let loaded = Facts { task: Some(task(before)), ..facts() };
                let changes = TaskChanges { status: Some(after), ..TaskChanges::default() };
                let has_ended = matches!(before, TaskStatus::Completed | TaskStatus::Cancelled);
                match change(changes, loaded) {
                    Err(refusal) => {
                        assert_eq!(refusal, Refusal::HasEnded(EntityKind::Task));
                        assert!(has_ended && after == TaskStatus::InProgress, "{before:?} to {after:?}");
                    }
                    Ok(plan) => {
                        assert!(!has_ended || after != TaskStatus::InProgress, "{before:?} to {after:?}");
                        let expected = if before == after { 0 } else { 1 };
                        assert_eq!((plan.changes.len(), plan.events.len()), (expected, expected));
                    }
                }
            }
        }
    }

    #[test]
    fn a_task_is_assigned_to_members_only() {
        let ann = Some(MemberId::User(UserId::stored("ann")));
        let requested = TaskChanges { assignee: Some(ann.clone()).into(), ..TaskChanges::default() };
        let loaded = Facts { task: Some(task(TaskStatus::Pending)), ..facts() };
        let refused = change(requested.clone(), loaded.clone()).map(|plan| plan.receipt);
        assert_eq!(refused, Err(Refusal::invalid("assigneeId", "must be a member of the room")));
        let plan = change(requested, Facts { assignable: true, ..loaded.clone() }).unwrap();
        let changed = Task { assignee: ann, updated_at: NOW, ..task(TaskStatus::Pending) };
        assert_eq!(plan.receipt, Receipt::Task(Arc::new(changed)));
        let unassigned = TaskChanges { assignee: Edit::Clear, ..TaskChanges::default() };
        assert!(change(unassigned, loaded).is_ok());
    }
}
