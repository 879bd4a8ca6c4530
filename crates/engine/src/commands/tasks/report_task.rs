//! Sets status and result of a task for the agent that it is assigned to.

use super::put::{put_if_changed, set_status};
use super::texts::check_texts;
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::ReportTask;
use parlor_model::{EntityKind, MemberId, Refusal, Task};
use std::sync::Arc;

impl Command for ReportTask {
    type Facts = Task;
    type Receipt = Arc<Task>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        check_texts(None, None, self.result.as_deref(), &mut field_errors);
        field_errors.into_result()
    }

    /// Allowed for the owner of the agent that the task is assigned to, and for the hub, while the agent is a
    /// member of the room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Task, PermitError> {
        view.acting_agent(caller, &self.agent)?;
        let agent = MemberId::Agent(self.agent.clone());
        let task = view.store.task(&self.task)?.filter(|task| task.assignee.as_ref() == Some(&agent));
        let task = task.ok_or(Refusal::NotFound(EntityKind::Task))?;
        match view.store.member(&task.room, &agent)? {
            Some(_) => Ok(task),
            None => Err(Refusal::NotFound(EntityKind::Task).into()),
        }
    }

    /// A report without effect publishes no event.
    fn decide(self, before: Task, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Task>, Refusal> {
        let mut task = before.clone();
        set_status(&mut task, self.status)?;
        if self.result.is_some() {
            task.result = self.result;
        }
        Ok(put_if_changed(&before, task, effects))
    }
}
