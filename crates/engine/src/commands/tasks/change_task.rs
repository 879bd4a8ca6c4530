//! Changes a task: its texts, status, due time or assignee.

use super::assignment::Assignee;
use super::put::{put_if_changed, set_status};
use super::texts::check_texts;
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, SeenTask};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{ChangeTask, TaskChanges};
use parlor_model::{Field, Refusal, Scope, Task};
use std::sync::Arc;

pub struct Facts {
    seen: SeenTask,
    /// The new assignee, if the command sets one.
    assignee: Option<Assignee>,
}

impl Command for ChangeTask {
    type Facts = Facts;
    type Receipt = Arc<Task>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let changes = &self.changes;
        let mut field_errors = FieldErrors::default();
        let description = changes.description.new_value().map(|text| &**text);
        let result = changes.result.new_value().map(|text| &**text);
        field_errors.unless(*changes != TaskChanges::default(), Field::Status, "is required");
        check_texts(changes.title.as_deref(), description, result, &mut field_errors);
        field_errors.into_result()
    }

    /// The status may be changed by every member of the room, all else by the task's creator, its assignee, and
    /// room admins.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let seen = view.seen_task(caller, &self.task, Scope::Write)?;
        if !self.changes.is_status_alone() {
            seen.require_control()?;
        }
        let new_assignee = self.changes.assignee.new_value();
        let assignee = new_assignee.map(|id| Assignee::load(id, &seen.room, view)).transpose()?;
        Ok(Facts { seen, assignee })
    }

    /// A change without effect publishes no event.
    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Task>, Refusal> {
        let Facts { seen: SeenTask { task: before, room, member, .. }, assignee } = facts;
        let mut task = before.clone();
        if let Some(status) = self.changes.status {
            set_status(&mut task, status)?;
        }
        if let Some(priority) = self.changes.priority {
            task.priority = priority;
        }
        if let Some(title) = &self.changes.title {
            task.title = title.trim().into();
        }
        self.changes.description.apply_to(&mut task.description);
        self.changes.result.apply_to(&mut task.result);
        self.changes.due_at.apply_to(&mut task.due_at);
        if !self.changes.assignee.is_keep() {
            task.assignee = assignee.as_ref().map(Assignee::require_member).transpose()?;
        }
        let task = put_if_changed(&before, task, effects);
        if let Some(assignee) = assignee.filter(|_| task.assignee != before.assignee) {
            assignee.create_run(&task, &room, Some(member.role), effects);
        }
        Ok(task)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::NOW;
    use crate::commands::test_fixtures::{auth, decide, member_of, room};
    use crate::effects::Effects;
    use parlor_model::{Edit, EntityKind, MemberId, RoomId, TaskId, TaskPriority, TaskStatus, Time, UserId};

    fn task(status: TaskStatus) -> Task {
        Task {
            id: TaskId::stored("task"),
            room: RoomId::stored("room"),
            title: "Tidy up".into(),
            description: None,
            status,
            priority: TaskPriority::Medium,
            result: None,
            due_at: None,
            assignee: None,
            parent: None,
            created_by: MemberId::User(UserId::stored("ann")),
            created_at: Time(1),
            updated_at: Time(1),
        }
    }

    fn change(
        task: Task,
        changes: TaskChanges,
        assignee: Option<Assignee>,
    ) -> Result<(Arc<Task>, Effects), Refusal> {
        let (caller, member) = (auth("ann"), member_of(&task.room, "ann"));
        let command = ChangeTask { task: task.id.clone(), changes };
        let seen = SeenTask { caller, room: Arc::new(room(&task.room)), task, member };
        decide(command, Facts { seen, assignee })
    }

    #[test]
    fn an_ended_task_is_reopened_before_it_is_in_progress() {
        for before in TaskStatus::ALL {
            for after in TaskStatus::ALL {
                let changes = TaskChanges { status: Some(after), ..TaskChanges::default() };
                let has_ended = matches!(before, TaskStatus::Completed | TaskStatus::Cancelled);
                match change(task(before), changes, None) {
                    Err(refusal) => {
                        assert_eq!(refusal, Refusal::HasEnded(EntityKind::Task));
                        assert!(has_ended && after == TaskStatus::InProgress, "{before:?} to {after:?}");
                    }
                    Ok((_, effects)) => {
                        assert!(!has_ended || after != TaskStatus::InProgress, "{before:?} to {after:?}");
                        let expected = if before == after { 0 } else { 1 };
                        assert_eq!((effects.changes.len(), effects.events.len()), (expected, expected));
                    }
                }
            }
        }
    }

    #[test]
    fn a_task_is_assigned_to_members_only() {
        let ann = MemberId::User(UserId::stored("ann"));
        let requested = TaskChanges { assignee: Edit::Set(ann.clone()), ..TaskChanges::default() };
        let assignee = |is_in_room| Some(Assignee { id: ann.clone(), is_in_room, candidate: None });
        let refused = change(task(TaskStatus::Pending), requested.clone(), assignee(false));
        let expected = Refusal::invalid(Field::Assignee, "must be a member of the room");
        assert_eq!(refused.map(|(task, _)| task), Err(expected));
        let (changed, _) = change(task(TaskStatus::Pending), requested, assignee(true)).unwrap();
        let expected = Task { assignee: Some(ann.clone()), updated_at: NOW, ..task(TaskStatus::Pending) };
        assert_eq!(*changed, expected);
        let unassigned = TaskChanges { assignee: Edit::Clear, ..TaskChanges::default() };
        let (changed, _) = change(expected, unassigned, None).unwrap();
        assert_eq!(changed.assignee, None);
    }
}
