//! The interface between the connection loop and a WebSocket protocol.

use super::fixed_window::FixedWindow;
use super::peer::Peer;
use super::{SocketMessage, frame};
use crate::App;
use crate::encoders::{ConnectionEncoder, Encoders};
use bytes::Bytes;
use futures_util::future::BoxFuture;
use parlor_engine::feed::Encoding;
use parlor_model::Seq;
use std::sync::Arc;
use std::time::Duration;
use tokio::time::Instant;

/// The protocol-specific part of a connection, which `session_loop::run` drives. A value is the state of one
/// connection.
pub trait Protocol: Send + Sized + 'static {
    /// A decoded frame.
    type Request: Send;
    type ParseError: Send;
    /// Whether a user is online while such a connection is open.
    const COUNTS_AS_PRESENCE: bool = false;
    /// Whether clients enter presence sets themselves, so that the hub derives no members from their connections.
    const ENTERS_PLACES: bool = false;

    /// Encoding of the items that the hub sends to this connection.
    fn encoding(&self) -> Encoding;

    /// Encoders of the items that the hub sends to this connection.
    fn encoder(&self, encoders: &Arc<Encoders>) -> ConnectionEncoder {
        ConnectionEncoder::of(encoders, self.encoding())
    }

    /// Maximum bytes of a message. A longer one ends the connection.
    fn max_message_bytes(app: &App) -> usize;

    /// Rate limit of a connection, which applies once it has authenticated.
    fn rate_limit(_app: &App) -> FixedWindow {
        FixedWindow::unlimited()
    }

    /// Time without a frame from the client after which the loop sends a heartbeat, and its frame. Any frame of the
    /// client is an answer to it.
    fn heartbeat(&self, app: &App) -> (Duration, Bytes) {
        (app.config.heartbeat, frame::ping())
    }

    fn parse(&self, app: &App, message: &SocketMessage) -> Result<Self::Request, Self::ParseError>;

    /// Whether the request may be handled while replies to earlier requests are pending. It must not write to
    /// the outbox itself; the loop keeps its reply in order.
    fn is_pipelined(_request: &Self::Request) -> bool {
        false
    }

    /// Whether the request counts towards the rate limit.
    fn is_rate_limited(_request: &Self::Request) -> bool {
        true
    }

    /// Handles a request. The loop calls it for one request at a time, in the order of their frames.
    fn handle(&mut self, peer: &mut Peer, request: Self::Request) -> impl Future<Output = Reply> + Send;

    /// Reply to a message that `parse` rejected.
    fn unreadable(&self, error: Self::ParseError) -> Bytes;

    /// Last reply to a client whose message exceeds `max_message_bytes`, before the close frame.
    fn too_large(&self) -> Option<Bytes> {
        None
    }

    /// Reply to a message over the rate limit. `request` is `None` if the message could not be parsed.
    fn rate_limited(&self, _request: Option<&Self::Request>) -> Option<Bytes> {
        None
    }

    /// Last reply to a client that has not authenticated in time, before the close frame.
    fn sign_in_timeout(&self) -> Option<Bytes> {
        None
    }

    /// Time at which the loop calls `reach_deadline`, such as the end of a credential.
    fn deadline(&self) -> Option<Instant> {
        None
    }

    fn reach_deadline(&mut self, _peer: &Peer) {}

    /// Releases the registrations of the protocol, such as a gateway's agents. The hub has already removed the
    /// peer's subscriber.
    fn end(self, _peer: &Peer) -> impl Future<Output = ()> + Send {
        std::future::ready(())
    }
}

/// Reply to a request: WebSocket frames. Replies are sent in the order of the requests.
pub enum Reply {
    None,
    Frames(Bytes),
    /// The reply to a command, after its commit.
    Pending(PendingReply),
}

pub type PendingReply = BoxFuture<'static, DecidedReply>;

/// Reply to a decided command.
pub struct DecidedReply {
    pub answer: Answer,
    /// The reply is sent after this event has been published to all its subscribers.
    pub after: Option<Seq>,
}

/// Frames of a reply.
pub enum Answer {
    /// The protocol has no frame for this result.
    None,
    Frames(Bytes),
    Acknowledged(Acknowledgement),
}

/// Acknowledgement of requests with consecutive numbers. The writer joins acknowledgements that are ready together into
/// one frame.
pub struct Acknowledgement {
    /// Number of the first request.
    pub first: u64,
    /// Ids that each request created.
    pub results: Vec<Vec<String>>,
    /// Encodes the frame. Acknowledgements with the same encoder can be joined.
    pub encode: fn(u64, Vec<Vec<String>>) -> Bytes,
}

impl Acknowledgement {
    /// Joins the acknowledgement of the following requests, or returns it if its numbers do not follow.
    pub fn join(&mut self, next: Self) -> Result<(), Self> {
        let follows = self.first.checked_add(self.results.len() as u64) == Some(next.first);
        if !follows || !std::ptr::fn_addr_eq(self.encode, next.encode) {
            return Err(next);
        }
        self.results.extend(next.results);
        Ok(())
    }

    pub fn into_frame(self) -> Bytes {
        (self.encode)(self.first, self.results)
    }
}

impl From<Option<Bytes>> for Answer {
    fn from(frames: Option<Bytes>) -> Self {
        frames.map_or(Self::None, Self::Frames)
    }
}

impl From<Bytes> for DecidedReply {
    fn from(frames: Bytes) -> Self {
        Self { answer: Answer::Frames(frames), after: None }
    }
}

impl Reply {
    pub fn text(text: &str) -> Self {
        Self::Frames(frame::text(text))
    }
}
