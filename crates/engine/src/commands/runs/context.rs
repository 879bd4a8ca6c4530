//! Context that an agent gets with a started run: the cause of the run and the members of its room.

use crate::Fault;
use crate::ports::Lookup;
use parlor_model::{Run, RunTrigger};
use std::sync::Arc;

/// Maximum number of members sent to an agent in a room context.
pub const MEMBERS_IN_CONTEXT: usize = 500;

/// The cause of a run; `None` if it no longer exists or the agent started the run itself.
pub fn load_trigger(run: &Run, store: &mut (impl Lookup + ?Sized)) -> Result<Option<RunTrigger>, Fault> {
    if let Some(message) = &run.trigger {
        Ok(store.message(message)?.map(RunTrigger::Message))
    } else if let Some(task) = &run.task {
        Ok(store.task(task)?.map(|task| RunTrigger::Task(Arc::new(task))))
    } else if let Some(arrival) = &run.arrival {
        Ok(store.user(arrival)?.map(|user| RunTrigger::Arrival { name: user.display_name }))
    } else {
        Ok(None)
    }
}
