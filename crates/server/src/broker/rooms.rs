//! Requests of programs that follow a room: `msg.room.listen`, `msg.room.members` and `msg.room.history`.

use super::BrokerSession;
use crate::connection::frame;
use crate::encoders::{BROKER_ROOMS, Encoder};
use bytes::Bytes;
use parlor_engine::feed::{DisconnectReason, Interest, LiveFrame, Open};
use parlor_model::query::{ListHistory, ListMembers, MessagePage, Page};
use parlor_model::{Caller, Epoch, Field, LoggedEvent, Member, Position, Refusal, RoomId, Seq};
use parlor_wire::broker::ingress::RoomRequest;
use parlor_wire::broker::{codes, egress, rooms};
use std::sync::Arc;

/// Maximum members of a room that are listed. Names of further members are unknown to the program.
const MAX_LISTED_MEMBERS: usize = 10_000;

/// Encoder of connections that follow rooms.
pub struct RoomEncoder {
    pub epoch: Epoch,
}

impl Encoder for RoomEncoder {
    fn event(&self, logged_event: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        rooms::event(logged_event, self.epoch).map(|text| frame::text(&text))
    }

    fn room_lost(&self, room: &RoomId, _: &LoggedEvent, _: Option<&str>) -> Option<Bytes> {
        Some(frame::text(&rooms::lost(room)))
    }

    fn disconnect(&self, reason: DisconnectReason) -> Bytes {
        super::disconnect_frame(reason)
    }
}

impl BrokerSession {
    pub(super) async fn handle_room_request(
        &mut self,
        room: &RoomId,
        request: RoomRequest,
        req_id: Option<&str>,
    ) {
        let answered = match &request {
            RoomRequest::Listen => self.listen_to_room(room, req_id).await.map(|()| None),
            RoomRequest::Members => {
                self.members(room).await.map(|members| Some(rooms::members(room, &members, req_id)))
            }
            RoomRequest::History { after, limit } => {
                self.room_history(room, after.as_deref(), *limit, req_id).await.map(Some)
            }
        };
        let reply = match answered {
            Ok(None) => return,
            Ok(Some(reply)) => reply,
            Err(refusal) => {
                egress::error(rooms::error_type(&request), req_id, &codes::sentence(&refusal, None))
            }
        };
        self.outbox.push_when_half_empty(frame::text(&reply)).await;
    }

    /// Subscribes the connection to a room. The answer carries the position from which on messages are pushed.
    async fn listen_to_room(&mut self, room: &RoomId, req_id: Option<&str>) -> Result<(), Refusal> {
        let members = self.members(room).await?;
        let authenticated = self.authenticated.as_ref().ok_or(Refusal::NotSignedIn)?;
        let live: LiveFrame = {
            let (room, members, req_id) = (room.clone(), members.clone(), req_id.map(str::to_owned));
            Arc::new(move |live| frame::text(&rooms::listening(&room, live.at, &members, req_id.as_deref())))
        };
        // Only a connection that listens to a room has this encoding: others receive no frame that the original
        // protocol does not have.
        let interest = Interest::Room(room.clone());
        let open = Open { interest, since: None, encoding: BROKER_ROOMS, live: Some(live) };
        authenticated.session.open(open).await?;
        // The members may have changed between their query and the subscription.
        if self.members(room).await? != members {
            self.outbox.push(frame::text(&rooms::changed(room)));
        }
        Ok(())
    }

    async fn members(&self, room: &RoomId) -> Result<Vec<Member>, Refusal> {
        let query = ListMembers { room: room.clone(), limit: MAX_LISTED_MEMBERS, offset: 0 };
        Ok(self.app.hub.read(self.caller()?, query).await?.members)
    }

    async fn room_history(
        &self,
        room: &RoomId,
        after: Option<&str>,
        limit: usize,
        req_id: Option<&str>,
    ) -> Result<String, Refusal> {
        let epoch = self.app.hub.epoch();
        let after = match after {
            None => Seq(0),
            Some(text) => {
                let position = Position::parse(text, epoch);
                let position =
                    position.ok_or_else(|| Refusal::invalid(Field::Position, "must be a position"))?;
                if position.epoch != epoch {
                    return Err(Refusal::Resync { now: Position { epoch, seq: Seq(0) } });
                }
                position.seq
            }
        };
        let query = ListHistory { room: room.clone(), page: Page::After(after), limit };
        let MessagePage { messages, .. } = self.app.hub.read(self.caller()?, query).await?;
        Ok(rooms::history(room, &messages, epoch, req_id))
    }

    fn caller(&self) -> Result<&Caller, Refusal> {
        self.authenticated
            .as_ref()
            .map(|authenticated| authenticated.session.caller())
            .ok_or(Refusal::NotSignedIn)
    }
}
