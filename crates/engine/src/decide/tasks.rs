//! Tasks of a room.

use super::{Change, Effects, EffectsBuilder, runs};
use parlor_model::command::{NewTask, TaskChanges};
use parlor_model::{Command, EntityKind, Event, MemberId, Receipt, Refusal, Task, TaskId, TaskStatus};
use std::sync::Arc;

/// How many one room keeps.
const MOST_TASKS: usize = 1000;

pub fn decide(command: &Command, draft: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateTask(new) => create(new, draft),
        Command::ChangeTask { changes, .. } => change(changes, draft),
        Command::ReportTask { status, result, .. } => {
            let (status, result) = (Some(*status), result.clone().map(Some));
            change(&TaskChanges { status, result, ..TaskChanges::default() }, draft)
        }
        Command::RemoveTask { .. } => remove(draft),
        _ => unreachable!("the dispatcher sends only task commands here"),
    }
}

fn create(new: &NewTask, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    if draft.facts.tasks >= MOST_TASKS {
        return Err(Refusal::invalid("title", "one more than the 1000 tasks that a room keeps"));
    }
    let now = draft.facts.now;
    let task = Task {
        id: TaskId::stored(draft.mint.ids.next()),
        room: new.room.clone(),
        title: new.title.trim().into(),
        description: new.description.clone(),
        status: TaskStatus::Pending,
        result: None,
        due_at: new.due_at,
        assignee: assignee(new.assignee.as_ref(), &draft)?,
        created_by: match &new.by {
            Some(agent) => MemberId::Agent(agent.clone()),
            None => MemberId::User(draft.actor()?.id.clone()),
        },
        created_at: now,
        updated_at: now,
    };
    let receipt = put(task, &mut draft);
    if let Receipt::Task(task) = &receipt {
        runs::assign(task, &mut draft);
    }
    draft.done(receipt)
}

fn assignee(wanted: Option<&MemberId>, draft: &EffectsBuilder) -> Result<Option<MemberId>, Refusal> {
    match wanted {
        Some(_) if !draft.facts.assignable => {
            Err(Refusal::invalid("assigneeId", "must be a member of the room"))
        }
        wanted => Ok(wanted.cloned()),
    }
}

fn put(task: Task, draft: &mut EffectsBuilder) -> Receipt {
    let task = Arc::new(task);
    draft.change(Change::PutTask(task.clone()));
    draft.tell(Event::TaskChanged(task.clone()));
    Receipt::Task(task)
}

fn the_task(draft: &EffectsBuilder) -> Result<Task, Refusal> {
    draft.facts.task.clone().ok_or(Refusal::NotFound(EntityKind::Task))
}

/// What changes nothing is told to nobody.
fn change(changes: &TaskChanges, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let before = the_task(&draft)?;
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
        task.assignee = assignee(wanted.as_ref(), &draft)?;
    }
    if task == before {
        return draft.done(Receipt::Task(Arc::new(task)));
    }
    task.updated_at = draft.facts.now;
    let given = task.assignee != before.assignee;
    let receipt = put(task, &mut draft);
    if let (Receipt::Task(task), true) = (&receipt, given) {
        runs::assign(task, &mut draft);
    }
    draft.done(receipt)
}

fn remove(mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let Task { id, room, .. } = the_task(&draft)?;
    draft.change(Change::RemoveTask(id.clone()));
    draft.tell(Event::TaskRemoved { room, task: id });
    draft.done(Receipt::Done)
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
