//! Facts for messages that are posted to a room or routed to a path.

use super::{Facts, LookupCache};
use crate::Fault;
use crate::ports::Lookup;
use crate::routing_index::RoutingIndex;
use parlor_model::{AgentId, Path, RoomId};

impl Facts {
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
}
