//! Facts for messages that are posted to a room or routed to a path.

use super::{Facts, LookupCache};
use crate::Fault;
use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::ports::{IdempotencyKey, Lookup};
use crate::routing_index::RoutingIndex;
use parlor_model::{AgentId, Caller, MessageId, Path, RoomId};
use std::collections::BTreeSet;

impl Facts {
    /// Checks the idempotency key of a message: the id that its client chose, if any.
    pub(super) fn check_client_message_id(
        &mut self,
        caller: &Caller,
        id: Option<&str>,
        digest: impl FnOnce() -> [u8; 16],
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        if let Some(user) = caller.user() {
            self.once = IdempotencyCheck::of_client_message(user, id, digest, store)?;
        }
        Ok(())
    }

    /// Loads a message and returns its room.
    pub(super) fn about_message(
        &mut self,
        caller: &Caller,
        message: &MessageId,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<Option<RoomId>, Fault> {
        self.message = store.message(message)?;
        let room = self.message.as_ref().and_then(|message| message.destination.room().cloned());
        if let Some(room) = &room {
            self.in_room(caller, room, store, lookup_cache)?;
        }
        Ok(room)
    }

    pub(super) fn about_batch(
        &mut self,
        caller: &Caller,
        messages: &[MessageId],
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        // A message that is named twice counts once.
        for message in messages.iter().collect::<BTreeSet<_>>() {
            self.about_message(caller, message, store, lookup_cache)?;
            self.batch.push((self.message.take(), self.membership.take()));
        }
        Ok(())
    }

    pub(super) fn about_forward(
        &mut self,
        caller: &Caller,
        message: &MessageId,
        to: &RoomId,
        store: &mut (impl Lookup + ?Sized),
        routing_index: &RoutingIndex,
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        self.about_message(caller, message, store, lookup_cache)?;
        self.source = self.membership.take();
        self.about_copies(store)?;
        self.in_room(caller, to, store, lookup_cache)?;
        self.room_recipients(to, None, store, routing_index, lookup_cache)
    }

    /// Adds the agents that are members of the room and subscribe to its path. Starts from the members:
    /// agents of any user may subscribe to all rooms, and must not add cost to messages in rooms they are not
    /// in.
    pub(super) fn room_recipients(
        &mut self,
        room: &RoomId,
        sender: Option<&AgentId>,
        store: &mut (impl Lookup + ?Sized),
        routing_index: &RoutingIndex,
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        if routing_index.is_empty() {
            return Ok(());
        }
        let agents = lookup_cache.agents_in(room, store)?;
        let path = Path::of_room(room);
        for agent in agents.iter().filter(|agent| sender != Some(*agent)) {
            self.recipients.extend(routing_index.of_agent(agent, &path));
        }
        Ok(())
    }

    pub(super) fn check_idempotency(
        &mut self,
        key: IdempotencyKey,
        digest: [u8; 16],
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.once = Some(IdempotencyCheck::load(key, digest, store)?);
        Ok(())
    }
}
