//! Creates a task in a room.

use super::assignment::Assignee;
use super::put::put;
use super::texts::check_texts;
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::CreateTask;
use parlor_model::{EntityKind, Field, MemberId, Refusal, Room, RoomRole, Scope, Task, TaskId, TaskStatus};
use std::sync::Arc;

/// Maximum number of tasks in one room.
const MAX_TASKS: usize = 1000;

pub struct Facts {
    /// The caller, or the agent that the caller acts for.
    creator: MemberId,
    room: Arc<Room>,
    /// The caller's role in the room. Only a caller who acts for an agent may have none.
    caller_role: Option<RoomRole>,
    /// Number of tasks in the room.
    task_count: usize,
    assignee: Option<Assignee>,
    /// Whether the task that it follows up exists in the room.
    has_parent: bool,
}

impl Command for CreateTask {
    type Facts = Facts;
    type Receipt = Arc<Task>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        check_texts(Some(&self.title), self.description.as_deref(), None, &mut field_errors);
        field_errors.into_result()
    }

    /// Allowed for every member of the room. A task of an agent: for its owner and the hub, if the agent is a
    /// member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let (creator, room, caller_role) = match &self.by {
            None => {
                let creator = view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
                let id = MemberId::User(creator.caller.user.id.clone());
                (id, creator.room, Some(creator.member.role))
            }
            Some(agent) => {
                view.acting_agent(caller, agent)?;
                let room = view.room(&self.room)?.ok_or(Refusal::NotFound(EntityKind::Room))?;
                let id = MemberId::Agent(agent.clone());
                if view.store.member(&room.id, &id)?.is_none() {
                    return Err(Refusal::NotAMember { room: room.id.clone() }.into());
                }
                let caller_member = match &caller.auth {
                    Some(auth) => view.member(&room.id, &auth.user.id)?,
                    None => None,
                };
                (id, room, caller_member.map(|member| member.role))
            }
        };
        let task_count = view.store.task_count(&room.id)?;
        let assignee = self.assignee.as_ref().map(|id| Assignee::load(id, &room, view)).transpose()?;
        let has_parent = match &self.parent {
            Some(parent) => view.store.task(parent)?.is_some_and(|parent| parent.room == room.id),
            None => false,
        };
        Ok(Facts { creator, room, caller_role, task_count, assignee, has_parent })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Task>, Refusal> {
        let Facts { creator, room, caller_role, task_count, assignee, has_parent } = facts;
        if self.parent.is_some() && !has_parent {
            return Err(Refusal::invalid(Field::ParentTask, "references a non-existent task"));
        }
        if task_count >= MAX_TASKS {
            return Err(Refusal::invalid(Field::Title, "exceeds the limit of 1000 tasks per room"));
        }
        let task = Task {
            id: TaskId::stored(effects.new_id()),
            room: self.room,
            title: self.title.trim().into(),
            description: self.description,
            status: TaskStatus::Pending,
            priority: self.priority,
            result: None,
            due_at: self.due_at,
            assignee: assignee.as_ref().map(Assignee::require_member).transpose()?,
            parent: self.parent,
            created_by: creator,
            created_at: effects.now,
            updated_at: effects.now,
        };
        let task = put(task, effects);
        if let Some(assignee) = assignee {
            assignee.create_run(&task, &room, caller_role, effects);
        }
        Ok(task)
    }
}
