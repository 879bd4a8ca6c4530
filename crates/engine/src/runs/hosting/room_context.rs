//! Room contexts: the room, its system prompt and its members, as described to the agents in it.

use super::super::host::{HostCommand, RoomPeer};
use super::Hosting;
use crate::commands::runs::context::MEMBERS_IN_CONTEXT;
use parlor_model::{AgentId, Refusal, Room, RoomId};
use std::sync::Arc;

impl Hosting {
    /// Sends the room context (room, system prompt and members) to all online agents in the room, or to one
    /// of them.
    pub(in crate::runs) async fn send_room_context(
        &self,
        room: &RoomId,
        only: Option<&AgentId>,
    ) -> Result<(), Refusal> {
        let Some((room, members)) = self.room_with_peers(room).await? else { return Ok(()) };
        for agent in members.iter().filter_map(|peer| peer.member.member.agent()) {
            let host = {
                let scheduler = self.hub.scheduler().lock();
                scheduler.online_agent(agent).and_then(|online| scheduler.host(online.connection))
            };
            if let Some(host) = host.filter(|_| only.is_none_or(|only| only == agent)) {
                let (agent, room, members) = (agent.clone(), room.clone(), members.clone());
                host.send(HostCommand::Context { agent, room, members });
            }
        }
        Ok(())
    }

    /// Loads a room and its members.
    async fn room_with_peers(&self, room: &RoomId) -> Result<Option<(Arc<Room>, Arc<[RoomPeer]>)>, Refusal> {
        let room = room.clone();
        self.hub
            .read_snapshot(move |hub, store| {
                let Some(found) = store.room(&room)? else { return Ok(None) };
                let mut peers = Vec::new();
                for member in store.members(&room, MEMBERS_IN_CONTEXT, 0)? {
                    let agent = match member.member.agent() {
                        Some(id) => store.agent(id)?.map(|agent| (agent, hub.hosting().agent_status(id))),
                        None => None,
                    };
                    peers.push(RoomPeer { member, agent });
                }
                Ok(Some((Arc::new(found), peers.into())))
            })
            .await
    }
}
