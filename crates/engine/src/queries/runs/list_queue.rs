//! Lists the queued runs of the caller's rooms, or of one room.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListQueue, QueueEntry};
use parlor_model::{MemberId, QueuedMessage, RoomId, RoomRole, RunState, Scope};

impl Query for ListQueue {
    /// The rooms whose queued runs are listed.
    type Facts = Vec<RoomId>;
    type Answer = Vec<QueueEntry>;

    /// Allowed for members of the room; without a room, for every user.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Vec<RoomId>, PermitError> {
        if let Some(room) = &self.room {
            view.in_room(caller, room, RoomRole::Member, Scope::Read)?;
            return Ok(vec![room.clone()]);
        }
        let own = MemberId::User(caller.signed_in(Scope::Read)?.user.id.clone());
        Ok(view.store.memberships(&own)?.into_iter().map(|member| member.room).collect())
    }

    fn answer(
        &self,
        rooms: Vec<RoomId>,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<QueueEntry>, Fault> {
        let mut entries = Vec::new();
        for room in rooms {
            for run in store.open_runs_in(&room)?.into_iter().filter(|run| run.state == RunState::Queued) {
                let message = match &run.trigger {
                    Some(trigger) => store.message(trigger)?,
                    None => None,
                };
                let preview = message.map(|message| QueuedMessage::preview_of(&message.text));
                let item = QueuedMessage {
                    run: run.id,
                    message: run.trigger,
                    preview: preview.unwrap_or_default(),
                    at: run.queued_at,
                };
                entries.push(QueueEntry { agent: run.agent, room: run.room, item });
            }
        }
        Ok(entries)
    }
}
