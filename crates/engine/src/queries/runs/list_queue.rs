//! Lists the queued runs of the caller's rooms and of the sessions of the caller's agents, or of one room.

use crate::permission::{CallerContext, PermitError};
use crate::ports::Snapshot;
use crate::queries::Query;
use crate::read_view::ReadView;
use crate::{Fault, Limits};
use parlor_model::query::{ListQueue, QueueEntry};
use parlor_model::{MemberId, QueuedMessage, RoomId, RoomRole, RunCause, RunState, Scope, UserId};

impl Query for ListQueue {
    /// The rooms whose queued runs are listed, and the user whose runs without a room are.
    type Facts = (Vec<RoomId>, Option<UserId>);
    type Answer = Vec<QueueEntry>;

    /// Allowed for members of the room; without a room, for every user.
    fn permit(&self, caller: &CallerContext, view: &mut ReadView<'_>) -> Result<Self::Facts, PermitError> {
        if let Some(room) = &self.room {
            view.in_room(caller, room, RoomRole::Member, Scope::Read)?;
            return Ok((vec![room.clone()], None));
        }
        let user = caller.signed_in(Scope::Read)?.user.id.clone();
        let own = view.store.memberships(&MemberId::User(user.clone()))?;
        Ok((own.into_iter().map(|member| member.room).collect(), Some(user)))
    }

    fn answer(
        &self,
        (rooms, owner): Self::Facts,
        store: &mut dyn Snapshot,
        _limits: &Limits,
    ) -> Result<Vec<QueueEntry>, Fault> {
        let mut open = Vec::new();
        for room in rooms {
            open.extend(store.open_runs_in(&room)?);
        }
        if let Some(owner) = owner {
            open.extend(store.open_runs_of_owner(&owner)?);
        }
        open.retain(|run| run.state == RunState::Queued);
        let mut entries = Vec::new();
        for run in open {
            let preview = match &run.cause {
                RunCause::Message(message) => {
                    store.message(message)?.map(|message| QueuedMessage::preview_of(&message.text))
                }
                RunCause::Explicit { prompt, .. } => Some(QueuedMessage::preview_of(prompt)),
                _ => None,
            };
            let item = QueuedMessage {
                message: run.message().cloned(),
                run: run.id,
                preview: preview.unwrap_or_default(),
                at: run.queued_at,
            };
            entries.push(QueueEntry { agent: run.agent, place: run.place, item });
        }
        Ok(entries)
    }
}
