//! Publications: MESSAGE frames of a client, and their ACK or NACK.

use super::channel_error;
use super::encoder::encode;
use super::jaibber::Outcome;
use super::session::Connected;
use crate::connection::peer::Peer;
use crate::connection::protocol::{Acknowledgement, Answer, DecidedReply, Reply};
use bytes::Bytes;
use futures_util::FutureExt;
use parlor_engine::PendingReceipt;
use parlor_model::command::{Publish, Published};
use parlor_model::query::MayFollowRoom;
use parlor_model::{Path, Refusal, RoomId};
use parlor_wire::ably::capability::Operation;
use parlor_wire::ably::channel::{Channel, QualifiedChannel};
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::egress;
use parlor_wire::ably::frames::{Format, Frame, Message, PublishResult, flags};
use parlor_wire::ably::serial::MessageSerial;

/// Maximum number of messages of one frame in a project channel. Each of them is a command of its own.
const MAX_POSTS: usize = 1000;

impl Connected {
    pub async fn publish(&mut self, peer: &Peer, frame: Frame<'static>) -> Reply {
        let Some(serial) = frame.msg_serial else {
            let error = ErrorInfo::new(codes::BAD_REQUEST, "MESSAGE needs a msgSerial");
            return Reply::Frames(encode(&Frame::error(frame.channel.as_deref(), error), self.format));
        };
        match self.try_publish(peer, frame, serial).await {
            Ok(reply) => reply,
            Err(error) => Reply::Frames(encode(&Frame::nack(serial, error), self.format)),
        }
    }

    async fn try_publish(
        &mut self,
        peer: &Peer,
        frame: Frame<'static>,
        serial: u64,
    ) -> Result<Reply, ErrorInfo> {
        let name = frame.channel.unwrap_or_default();
        let channel = QualifiedChannel::parse(&name)?.channel;
        let attached = self.channels.get(&*name);
        let permitted = attached.map_or_else(
            || self.caller.capability.permits(Operation::Publish, &channel.name()),
            |attached| attached.modes & flags::PUBLISH != 0,
        );
        if !permitted {
            return Err(ErrorInfo::new(codes::NOT_PERMITTED, "Publishing is not permitted in this channel"));
        }
        let is_attached = attached.is_some();
        let messages = frame.messages.unwrap_or_default();
        if messages.is_empty() {
            return Err(ErrorInfo::new(codes::BAD_REQUEST, "MESSAGE needs at least one message"));
        }
        let size: usize = messages.iter().map(Message::size).sum();
        let limit = peer.app.config.ably.message_bytes;
        if size > limit {
            let message = format!("Message of {size} bytes exceeds the maximum size of {limit}");
            return Err(ErrorInfo::new(codes::TOO_LARGE, message));
        }
        let messages: Result<Vec<_>, _> = messages
            .into_iter()
            .enumerate()
            .map(|(index, message)| self.stamped(message, serial, index))
            .collect();
        let messages = messages?;
        match &channel {
            Channel::Project(room) => {
                // A caller without access to the room receives the same error for any content.
                if !is_attached {
                    may_see(peer, room).await?;
                }
                self.publish_in_room(peer, room, &messages, serial).await
            }
            Channel::GlobalPresence | Channel::Other(_) => {
                let path = channel.destination().path();
                let receipt = self.submit(peer, path, &channel.name(), &messages).await?;
                Ok(acknowledged(receipt, serial, peer, self.format))
            }
        }
    }

    async fn publish_in_room(
        &mut self,
        peer: &Peer,
        room: &RoomId,
        messages: &[(Message<'static>, bool)],
        serial: u64,
    ) -> Result<Reply, ErrorInfo> {
        let session = &peer.signed_in().map_err(|refusal| codes::error(&refusal))?.session;
        if messages.len() > MAX_POSTS {
            let words = format!("A frame has at most {MAX_POSTS} messages in a project channel");
            return Err(ErrorInfo::new(codes::BAD_REQUEST, words));
        }
        let (caller, user) = (session.caller(), session.user());
        let (projects, facts) = self.projects(&caller, user);
        let mut outcomes = Vec::new();
        for (message, _) in messages {
            outcomes.push(projects.publish(peer, &facts, room, message).await?);
        }
        let (hub, format) = (peer.app.hub.clone(), self.format);
        let reply = async move {
            let mut positions = Vec::new();
            for outcome in outcomes {
                let position = match outcome {
                    Outcome::Done => Ok(None),
                    Outcome::Posted(receipt) => receipt.await.map(|posted| Some(posted.position)),
                    Outcome::Output(output) => output.await,
                };
                match position {
                    Ok(position) => positions.push(position),
                    Err(refusal) => {
                        return encode(&Frame::nack(serial, channel_error(&refusal)), format).into();
                    }
                }
            }
            // A signal is not stored: it has the serial of the newest event.
            let serials = positions.iter().map(|position| position.unwrap_or_else(|| hub.position()));
            let serials = serials.map(|at| MessageSerial::new(at.epoch, at.seq, 0).to_string());
            let answer = acknowledgement(serial, serials.collect(), format);
            let after = positions.into_iter().flatten().map(|position| position.seq).max();
            DecidedReply { answer, after }
        };
        Ok(Reply::Pending(reply.boxed()))
    }

    /// Completes a message with the fields that the connection determines.
    fn stamped(
        &self,
        message: Message<'static>,
        serial: u64,
        index: usize,
    ) -> Result<(Message<'static>, bool), ErrorInfo> {
        if message.action.is_some_and(|action| action != 0) {
            return Err(ErrorInfo::new(codes::BAD_REQUEST, "Messages cannot be changed or deleted"));
        }
        let client = self.caller.identity.of_message(message.client_id.as_deref())?.map(str::to_owned);
        let is_chosen = message.id.is_some();
        let id = message.id.unwrap_or_else(|| self.id.message_id(serial, index).into());
        let stamped = Message {
            id: Some(id),
            client_id: client.map(Into::into),
            connection_id: Some(self.id.as_str().to_owned().into()),
            ..message
        };
        Ok((stamped, is_chosen))
    }

    async fn submit(
        &self,
        peer: &Peer,
        path: Path,
        channel: &str,
        messages: &[(Message<'static>, bool)],
    ) -> Result<PendingReceipt<Published>, ErrorInfo> {
        let client = messages.first().and_then(|(message, _)| message.client_id.as_deref());
        let publish = Publish {
            path,
            sender_name: client.map_or_else(|| self.username.clone(), Into::into),
            source: egress::SOURCE.into(),
            messages: messages
                .iter()
                .map(|(message, is_chosen)| egress::path_message(message, channel, *is_chosen))
                .collect(),
        };
        let session = &peer.signed_in().map_err(|refusal| codes::error(&refusal))?.session;
        Ok(peer.app.hub.submit(&session.caller(), publish).await)
    }
}

/// Returns an error if the room does not exist or the user is no member of it.
async fn may_see(peer: &Peer, room: &RoomId) -> Result<(), ErrorInfo> {
    let session = &peer.signed_in().map_err(|refusal| codes::error(&refusal))?.session;
    match peer.app.hub.read(&session.caller(), MayFollowRoom { room: room.clone() }).await {
        Err(refusal @ (Refusal::NotFound(_) | Refusal::NotAMember { .. })) => Err(channel_error(&refusal)),
        // The command checks whether the credential may publish.
        _ => Ok(()),
    }
}

/// ACK or NACK of a publication, after its commit.
fn acknowledged(receipt: PendingReceipt<Published>, serial: u64, peer: &Peer, format: Format) -> Reply {
    let epoch = peer.app.hub.epoch();
    let reply = async move {
        match receipt.await {
            Ok(published) => {
                let serials = published.messages.iter();
                let serials = serials.map(|(_, at)| MessageSerial::new(epoch, at.seq, 0).to_string());
                let answer = acknowledgement(serial, serials.collect(), format);
                DecidedReply { answer, after: published.messages.last().map(|(_, at)| at.seq) }
            }
            Err(refusal) => encode(&Frame::nack(serial, channel_error(&refusal)), format).into(),
        }
    };
    Reply::Pending(reply.boxed())
}

fn acknowledgement(serial: u64, serials: Vec<String>, format: Format) -> Answer {
    fn frame(first: u64, results: Vec<Vec<String>>, format: Format) -> Bytes {
        let results = results.into_iter().map(|serials| PublishResult { serials });
        encode(&Frame::ack(first, results.collect()), format)
    }
    let encode: fn(u64, Vec<Vec<String>>) -> Bytes = match format {
        Format::Json => |first, results| frame(first, results, Format::Json),
        Format::Msgpack => |first, results| frame(first, results, Format::Msgpack),
    };
    Answer::Acknowledged(Acknowledgement { first: serial, results: vec![serials], encode })
}
