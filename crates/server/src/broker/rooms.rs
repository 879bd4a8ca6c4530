//! Requests of programs that follow a room: `msg.room.listen`, `msg.room.members` and `msg.room.history`.

use super::Broker;
use crate::connection::frame;
use crate::connection::peer::Peer;
use crate::connection::protocol::Reply;
use bytes::Bytes;
use parlor_engine::fanout::{DisconnectReason, Egress, Subscriber};
use parlor_model::query::{ListHistory, ListMembers, MessagePage, Page};
use parlor_model::{
    Delivery, Epoch, Field, LoggedEvent, Member, Message, Position, Refusal, RoomId, Seq, Signal, SignalStamp,
};
use parlor_wire::broker::ingress::RoomRequest;
use parlor_wire::broker::{codes, egress, rooms};

/// Maximum members of a room that are listed. Names of further members are unknown to the program.
const MAX_LISTED_MEMBERS: usize = 10_000;

/// Egress of connections that follow rooms.
pub struct RoomEgress;

impl Egress for RoomEgress {
    fn event(&self, logged_event: &LoggedEvent, epoch: Epoch) -> Option<Bytes> {
        rooms::event(logged_event, epoch).map(|text| frame::text(&text))
    }

    fn room_lost(&self, room: &RoomId, _: &LoggedEvent) -> Option<Bytes> {
        Some(frame::text(&rooms::lost(room)))
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, _: &Signal, _: SignalStamp) -> Option<Bytes> {
        None
    }

    fn disconnect_frame(&self, reason: DisconnectReason) -> Bytes {
        super::disconnect_frame(reason)
    }
}

impl Broker {
    pub(super) async fn handle_room_request(
        &mut self,
        peer: &Peer,
        room: &RoomId,
        request: RoomRequest,
        req_id: Option<&str>,
    ) -> Reply {
        let answered = match &request {
            RoomRequest::Listen => match self.listen_to_room(peer, room, req_id).await {
                Ok(()) => return Reply::None,
                Err(refusal) => Err(refusal),
            },
            RoomRequest::Members => {
                members(peer, room).await.map(|members| rooms::members(room, &members, req_id))
            }
            RoomRequest::History { after, limit } => {
                history(peer, room, after.as_deref(), *limit, req_id).await
            }
        };
        Reply::Text(answered.unwrap_or_else(|refusal| {
            egress::error(rooms::error_type(&request), req_id, &codes::sentence(&refusal, None))
        }))
    }

    /// Subscribes the connection to a room. The answer carries the position from which on messages are pushed.
    async fn listen_to_room(
        &mut self,
        peer: &Peer,
        room: &RoomId,
        req_id: Option<&str>,
    ) -> Result<(), Refusal> {
        let members_before = members(peer, room).await?;
        let subscriber = self.room_subscriber(peer).await?;
        let welcome = {
            let (room, members, req_id) = (room.clone(), members_before.clone(), req_id.map(str::to_owned));
            move |from| Some(frame::text(&rooms::listening(&room, from, &members, req_id.as_deref())))
        };
        peer.app.hub.attach(&peer.signed_in()?.caller, &subscriber, room, None, welcome).await?;
        // The members may have changed between their query and the subscription.
        if members(peer, room).await? != members_before {
            peer.send_text(&rooms::changed(room));
        }
        Ok(())
    }

    /// Returns the subscriber for events of rooms and connects it first if necessary.
    async fn room_subscriber(&mut self, peer: &Peer) -> Result<Subscriber, Refusal> {
        if let Some(subscriber) = &self.room_subscriber {
            return Ok(subscriber.clone());
        }
        let (app, identity) = (&peer.app, peer.signed_in()?);
        let subscriber = Subscriber {
            id: app.hub.next_subscriber_id(),
            egress: app.broker_room_egress.clone(),
            ..identity.subscriber.clone()
        };
        app.hub.connect(&identity.caller, subscriber.clone(), Bytes::new(), |_| Ok(())).await?;
        Ok(self.room_subscriber.insert(subscriber).clone())
    }
}

async fn members(peer: &Peer, room: &RoomId) -> Result<Vec<Member>, Refusal> {
    let query = ListMembers { room: room.clone(), limit: MAX_LISTED_MEMBERS, offset: 0 };
    Ok(peer.app.hub.read(&peer.signed_in()?.caller, query).await?.members)
}

async fn history(
    peer: &Peer,
    room: &RoomId,
    after: Option<&str>,
    limit: usize,
    req_id: Option<&str>,
) -> Result<String, Refusal> {
    let epoch = peer.app.hub.epoch();
    let after = match after {
        None => Seq(0),
        Some(text) => {
            let position = Position::parse(text, epoch);
            let position = position.ok_or_else(|| Refusal::invalid(Field::Position, "must be a position"))?;
            if position.epoch != epoch {
                return Err(Refusal::Resync { now: Position { epoch, seq: Seq(0) } });
            }
            position.seq
        }
    };
    let query = ListHistory { room: room.clone(), page: Page::After(after), limit };
    let MessagePage { messages, .. } = peer.app.hub.read(&peer.signed_in()?.caller, query).await?;
    Ok(rooms::history(room, &messages, epoch, req_id))
}
