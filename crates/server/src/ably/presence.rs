//! Presence of a connection: enter, update, leave, and requests for the whole set.

use super::channel_error;
use super::encoder::encode;
use super::jaibber::check_global_member;
use super::session::Connected;
use crate::connection::peer::Peer;
use crate::connection::protocol::Reply;
use parlor_engine::feed::OccupantUpdate;
use parlor_wire::ably::capability::Operation;
use parlor_wire::ably::channel::{Channel, QualifiedChannel};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::frames::{Frame, PresenceMessage, PublishResult, flags};
use parlor_wire::ably::occupants;
use parlor_wire::ably::presence::{PresenceAction, PresenceId};

/// Maximum number of changes in one frame. Clients join the changes that they queue before they are connected.
const MAX_CHANGES: usize = 1000;

impl Connected {
    pub async fn change_presence(&mut self, peer: &Peer, frame: Frame<'static>) -> Reply {
        let Some(serial) = frame.msg_serial else {
            let error = ErrorInfo::new(codes::BAD_REQUEST, "PRESENCE needs a msgSerial");
            return Reply::Frames(encode(&Frame::error(frame.channel.as_deref(), error), self.format));
        };
        let answer = match self.try_change_presence(peer, frame, serial).await {
            Ok(()) => Frame::ack(serial, vec![PublishResult::default()]),
            Err(error) => Frame::nack(serial, error),
        };
        Reply::Frames(encode(&answer, self.format))
    }

    async fn try_change_presence(
        &mut self,
        peer: &Peer,
        frame: Frame<'static>,
        serial: u64,
    ) -> Result<(), ErrorInfo> {
        let name = frame.channel.unwrap_or_default();
        let channel = QualifiedChannel::parse(&name)?.channel;
        let attached = self.channels.get(&*name);
        let permitted = attached.map_or_else(
            || self.caller.capability.permits(Operation::Presence, &channel.name()),
            |attached| attached.modes & flags::PRESENCE != 0,
        );
        if !permitted {
            return Err(ErrorInfo::new(codes::NOT_PERMITTED, "Presence is not permitted in this channel"));
        }
        let messages = frame.presence.unwrap_or_default();
        if messages.len() > MAX_CHANGES {
            let words = format!("A frame has at most {MAX_CHANGES} changes of members");
            return Err(ErrorInfo::new(codes::BAD_REQUEST, words));
        }
        let size: usize = messages.iter().map(occupants::size).sum();
        if size > peer.app.config.ably.message_bytes {
            return Err(ErrorInfo::new(codes::TOO_LARGE, "Presence data exceeds the maximum size"));
        }
        for (index, message) in messages.iter().enumerate() {
            self.change_member(peer, &channel, message, (serial, index as u64)).await?;
        }
        Ok(())
    }

    async fn change_member(
        &mut self,
        peer: &Peer,
        channel: &Channel,
        message: &PresenceMessage<'static>,
        number: (u64, u64),
    ) -> Result<(), ErrorInfo> {
        let (agents, renamed) = match channel {
            Channel::Project(room) => {
                self.caller.identity.of_presence(message.client_id.as_deref())?;
                let session = &peer.signed_in().map_err(|refusal| codes::error(&refusal))?.session;
                let (caller, user) = (session.caller(), session.user());
                let (projects, facts) = self.projects(&caller, user);
                projects.presence(peer, &facts, room, message).await?
            }
            Channel::GlobalPresence => {
                let identity = peer.signed_in().map_err(|refusal| codes::error(&refusal))?;
                check_global_member(message, identity.session.user())?;
                (Vec::new(), None)
            }
            Channel::Other(_) => (Vec::new(), None),
        };
        let renamed = renamed.map(|data| PresenceMessage { data: Some(data), ..message.clone() });
        let message = renamed.as_ref().unwrap_or(message);
        let client = self.caller.identity.of_presence(message.client_id.as_deref())?;
        // A client that enters again after a lost connection repeats the id of its earlier message.
        let earlier = message.id.as_deref().and_then(PresenceId::parse);
        let number = match earlier.filter(|id| id.connection == self.id.as_str()) {
            Some(id) => (id.msg_serial, id.index),
            None => number,
        };
        let id = PresenceId { connection: self.id.as_str(), msg_serial: number.0, index: number.1 };
        let update = OccupantUpdate {
            client: client.into(),
            id: id.to_string().into(),
            order: Some(number),
            data: occupants::stored(message),
            agents,
        };
        let place = channel.destination().path();
        match message.action {
            PresenceAction::Enter | PresenceAction::Update | PresenceAction::Present => {
                let entered = self.presence.enter(&place, update).await;
                entered.map_err(|refusal| channel_error(&refusal))
            }
            PresenceAction::Leave | PresenceAction::Absent => {
                self.presence.leave(&place, update);
                Ok(())
            }
        }
    }

    /// Sends the members of a channel again.
    pub async fn send_presence(&mut self, peer: &Peer, frame: &Frame<'_>) -> Reply {
        if let Some(name) = frame.channel.as_deref() {
            self.settle(peer, name).await;
        }
        let attached = frame.channel.as_deref().and_then(|name| self.channels.get(name));
        if let (Some(attached), Ok(identity)) = (attached, peer.signed_in()) {
            identity.session.resend_occupants(&attached.place(), attached.codec);
        }
        Reply::None
    }
}
