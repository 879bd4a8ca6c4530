//! Tasks of a room.

use super::{Change, Effects, EffectsBuilder, runs};
use parlor_model::command::{NewTask, TaskChanges};
use parlor_model::{Command, EntityKind, Event, MemberId, Receipt, Refusal, Task, TaskId, TaskStatus};
use std::sync::Arc;

/// How many one room keeps.
const MOST_TASKS: usize = 1000;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateTask(new) => create(new, effects_builder),
        Command::ChangeTask { changes, .. } => change(changes, effects_builder),
        Command::ReportTask { status, result, .. } => {
            let (status, result) = (Some(*status), result.clone().map(Some));
            change(&TaskChanges { status, result, ..TaskChanges::default() }, effects_builder)
        }
        Command::RemoveTask { .. } => remove(effects_builder),
        _ => unreachable!("the dispatcher sends only task commands here"),
    }
}

fn create(new: &NewTask, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    if effects_builder.facts.tasks >= MOST_TASKS {
        return Err(Refusal::invalid("title", "one more than the 1000 tasks that a room keeps"));
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
    wanted: Option<&MemberId>,
    effects_builder: &EffectsBuilder,
) -> Result<Option<MemberId>, Refusal> {
    match wanted {
        Some(_) if !effects_builder.facts.assignable => {
            Err(Refusal::invalid("assigneeId", "must be a member of the room"))
        }
        wanted => Ok(wanted.cloned()),
    }
}

fn put(task: Task, effects_builder: &mut EffectsBuilder) -> Receipt {
    let task = Arc::new(task);
    effects_builder.change(Change::PutTask(task.clone()));
    effects_builder.tell(Event::TaskChanged(task.clone()));
    Receipt::Task(task)
}

fn the_task(effects_builder: &EffectsBuilder) -> Result<Task, Refusal> {
    effects_builder.facts.task.clone().ok_or(Refusal::NotFound(EntityKind::Task))
}

/// What changes nothing is told to nobody.
fn change(changes: &TaskChanges, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let before = the_task(&effects_builder)?;
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
    if let Some(description) = &changes.description {
        task.description = description.clone();
    }
    if let Some(result) = &changes.result {
        task.result = result.clone();
    }
    if let Some(due_at) = changes.due_at {
        task.due_at = due_at;
    }
    if let Some(wanted) = &changes.assignee {
        task.assignee = assignee(wanted.as_ref(), &effects_builder)?;
    }
    if task == before {
        return effects_builder.done(Receipt::Task(Arc::new(task)));
    }
    task.updated_at = effects_builder.facts.now;
    let given = task.assignee != before.assignee;
    let receipt = put(task, &mut effects_builder);
    if let (Receipt::Task(task), true) = (&receipt, given) {
        runs::assign(task, &mut effects_builder);
    }
    effects_builder.done(receipt)
}

fn remove(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let Task { id, room, .. } = the_task(&effects_builder)?;
    effects_builder.change(Change::RemoveTask(id.clone()));
    effects_builder.tell(Event::TaskRemoved { room, task: id });
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

    fn change(changes: TaskChanges, given: Facts) -> Result<Effects, Refusal> {
        decide_with(&Command::ChangeTask { task: TaskId::stored("task"), changes }, &given)
    }

    #[test]
    fn what_is_over_is_opened_before_it_goes_on() {
        for before in TaskStatus::ALL {
            for after in TaskStatus::ALL {
                let given = Facts { task: Some(task(before)), ..facts() };
                let changes = TaskChanges { status: Some(after), ..TaskChanges::default() };
                let over = matches!(before, TaskStatus::Completed | TaskStatus::Cancelled);
                match change(changes, given) {
                    Err(refusal) => {
                        assert_eq!(refusal, Refusal::HasEnded(EntityKind::Task));
                        assert!(over && after == TaskStatus::InProgress, "{before:?} to {after:?}");
                    }
                    Ok(plan) => {
                        assert!(!over || after != TaskStatus::InProgress, "{before:?} to {after:?}");
                        let expected = if before == after { 0 } else { 1 };
                        assert_eq!((plan.changes.len(), plan.events.len()), (expected, expected));
                    }
                }
            }
        }
    }

    #[test]
    fn a_task_is_given_to_members_only() {
        let ann = Some(MemberId::User(UserId::stored("ann")));
        let wanted = TaskChanges { assignee: Some(ann.clone()), ..TaskChanges::default() };
        let given = Facts { task: Some(task(TaskStatus::Pending)), ..facts() };
        let refused = change(wanted.clone(), given.clone()).map(|plan| plan.receipt);
        assert_eq!(refused, Err(Refusal::invalid("assigneeId", "must be a member of the room")));
        let plan = change(wanted, Facts { assignable: true, ..given.clone() }).unwrap();
        let changed = Task { assignee: ann, updated_at: NOW, ..task(TaskStatus::Pending) };
        assert_eq!(plan.receipt, Receipt::Task(Arc::new(changed)));
        let nobody = TaskChanges { assignee: Some(None), ..TaskChanges::default() };
        assert!(change(nobody, given).is_ok());
    }
}
