//! Requests of programs that follow a room: `msg.room.listen`, `msg.room.members` and `msg.room.history`.

use crate::connection::frame;
use crate::connection::peer::Peer;
use crate::connection::protocol::Reply;
use crate::encoders::{BROKER_ROOMS, Encoder};
use bytes::Bytes;
use parlor_engine::feed::{DisconnectReason, Interest, LiveFrame, Open, Since};
use parlor_model::query::{ListHistory, ListMembers, MessagePage, Page};
use parlor_model::{Epoch, Field, LoggedEvent, Member, Position, Refusal, RoomId, Seq};
use parlor_wire::broker::frames::RequestType;
use parlor_wire::broker::ingress::RoomRequest;
use parlor_wire::broker::{codes, egress, rooms};
use serde_json::value::RawValue;
use std::sync::Arc;

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

pub(super) async fn handle(
    peer: &Peer,
    room: &RoomId,
    (kind, request): (RequestType, RoomRequest),
    req_id: Option<&RawValue>,
) -> Reply {
    let answered = match &request {
        RoomRequest::Listen => match listen(peer, room, req_id).await {
            Ok(()) => return Reply::None,
            Err(refusal) => Err(refusal),
        },
        RoomRequest::Members => {
            members(peer, room).await.map(|members| rooms::members(room, &members, req_id))
        }
        RoomRequest::History { after, limit } => history(peer, room, after.as_deref(), *limit, req_id).await,
    };
    Reply::text(
        &answered.unwrap_or_else(|refusal| egress::error(kind, req_id, &codes::sentence(&refusal, None))),
    )
}

/// Opens a feed of a room. The answer carries the position from which on messages are pushed.
async fn listen(peer: &Peer, room: &RoomId, req_id: Option<&RawValue>) -> Result<(), Refusal> {
    let members_before = members(peer, room).await?;
    let live: LiveFrame = {
        let (room, members, req_id) = (room.clone(), members_before.clone(), req_id.map(ToOwned::to_owned));
        Arc::new(move |live| frame::text(&rooms::listening(&room, live.at, &members, req_id.as_deref())))
    };
    // Only connections that listen to a room use this encoding: others receive no frame that the original protocol
    // does not have.
    let interest = Interest::Room(room.clone());
    let open = Open { interest, since: Since::Now, encoding: BROKER_ROOMS, opened: None, live: Some(live) };
    peer.signed_in()?.session.open(open).await?;
    // The members may have changed between their query and the subscription.
    if members(peer, room).await? != members_before {
        peer.send_text(&rooms::changed(room));
    }
    Ok(())
}

async fn members(peer: &Peer, room: &RoomId) -> Result<Vec<Member>, Refusal> {
    let query = ListMembers { room: room.clone(), limit: ListMembers::MAX_NAMES, offset: 0 };
    Ok(peer.app.hub.read(&peer.signed_in()?.session.caller(), query).await?.members)
}

async fn history(
    peer: &Peer,
    room: &RoomId,
    after: Option<&str>,
    limit: usize,
    req_id: Option<&RawValue>,
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
    let MessagePage { messages, .. } = peer.app.hub.read(&peer.signed_in()?.session.caller(), query).await?;
    Ok(rooms::history(room, &messages, epoch, req_id))
}
