//! The loop of a WebSocket connection, for all protocols: authentication deadline, limits, order of replies,
//! back-pressure, close and shutdown.

use super::fixed_window::FixedWindow;
use super::peer::Peer;
use super::pending_replies::PendingReplies;
use super::protocol::{DecidedReply, PendingReply, Protocol, Reply};
use super::upgrade::Upgraded;
use super::{Socket, SocketInput, SocketMessage};
use crate::App;
use bytes::Bytes;
use futures_util::FutureExt;
use parlor_engine::feed::DisconnectReason;
use std::sync::Arc;
use tokio::time::Instant;

/// Maximum messages handled in a row before the loop handles other events.
const MAX_MESSAGES_PER_BURST: usize = 64;

/// Heartbeats without an answer after which a connection counts as lost.
const MAX_UNANSWERED_HEARTBEATS: u32 = 4;

/// Runs a connection until it ends. `first` is handled like the request of a first frame; it carries a
/// credential of the handshake.
pub async fn run<P: Protocol>(app: Arc<App>, upgraded: Upgraded, protocol: P, first: Option<P::Request>) {
    let Upgraded { stream, already_read, permit, mut socket_guard } = upgraded;
    let encoder = protocol.encoder(&app.encoders);
    let max_bytes = P::max_message_bytes(&app);
    let limits = app.config.outbox;
    let mut socket = Socket::open(stream, already_read, max_bytes, limits, encoder, &app.tasks).await;
    // The same timer serves the authentication deadline and later the heartbeats, because each timer costs memory in
    // thousands of idle connections.
    let timer = tokio::time::sleep(app.config.auth_timeout);
    tokio::pin!(timer);
    let outbox = socket.outbox.clone();
    let mut connection = Connection {
        rate_limit: P::rate_limit(&app),
        peer: Peer::new(app.clone(), outbox.clone(), permit, &protocol),
        protocol,
        replies: PendingReplies::default(),
        deferred: None,
        last_heartbeat: None,
        heartbeat_due: Instant::now(),
        unanswered_heartbeats: 0,
    };
    if let Some(request) = first {
        connection.handle(request, 0).await;
        if connection.peer.identity.is_some() {
            timer.as_mut().reset(connection.elapse(socket.last_received));
        }
    }
    loop {
        if let Some(deadline) = connection.protocol.deadline()
            && deadline < timer.deadline()
        {
            timer.as_mut().reset(deadline);
        }
        connection.handle_deferred().await;
        tokio::select! {
            biased;
            () = outbox.closed() => break,
            () = connection.send_replies(), if !connection.replies.is_empty() => {}
            () = socket_guard.stopped() => connection.peer.disconnect(DisconnectReason::ShuttingDown),
            () = &mut timer => match connection.peer.identity {
                None => connection.time_out(),
                Some(_) => timer.as_mut().reset(connection.elapse(socket.last_received)),
            },
            input = socket.next(), if connection.can_receive() => {
                if !connection.receive_burst(&mut socket, input).await {
                    break;
                }
            }
        }
    }
    // Boxed: otherwise the compiler reserves space for moved copies of `connection` and `socket` in the future of every
    // connection.
    Box::pin(async move {
        connection.end().await;
        socket.finish(app.config.close_timeout).await;
    })
    .await;
}

struct Connection<P: Protocol> {
    protocol: P,
    peer: Peer,
    replies: PendingReplies,
    /// A request that is not pipelined and waits until all earlier replies are sent, with the bytes of its
    /// message. Until then the connection reads no further messages.
    deferred: Option<(P::Request, usize)>,
    rate_limit: FixedWindow,
    last_heartbeat: Option<Instant>,
    heartbeat_due: Instant,
    /// Heartbeats since the newest frame from the client.
    unanswered_heartbeats: u32,
}

impl<P: Protocol> Connection<P> {
    fn can_receive(&self) -> bool {
        self.deferred.is_none() && self.replies.has_capacity()
    }

    /// Handles one input and those that are ready behind it, because frames arrive in bursts. Returns `false`
    /// when the connection has ended.
    async fn receive_burst(&mut self, socket: &mut Socket, first: SocketInput) -> bool {
        let mut input = Some(first);
        for count in 1..=MAX_MESSAGES_PER_BURST {
            match input.take() {
                Some(SocketInput::Message(message)) => self.receive(&message).await,
                Some(SocketInput::TooLarge) => {
                    self.reject_too_large();
                    self.peer.close(1009, "Message exceeds maximum size");
                }
                Some(SocketInput::NotUtf8) => self.peer.close(1007, "Not UTF-8"),
                Some(SocketInput::Malformed) => self.peer.close(1002, "Malformed frame"),
                Some(SocketInput::Gone) => return false,
                None => break,
            }
            // Read no further input in the last iteration: input that was read must be handled.
            if count == MAX_MESSAGES_PER_BURST || !self.can_receive() || self.peer.outbox.is_closed() {
                break;
            }
            input = socket.next().now_or_never();
        }
        true
    }

    fn reject_too_large(&mut self) {
        let frames = match self.within_rate_limit(None) {
            Ok(()) => self.protocol.too_large(),
            Err(frames) => frames,
        };
        if let Some(frames) = frames {
            self.peer.outbox.push(frames);
        }
    }

    async fn receive(&mut self, message: &SocketMessage) {
        let parsed = self.protocol.parse(&self.peer.app, message);
        let counts = parsed.as_ref().map_or(true, P::is_rate_limited);
        if counts && let Err(frames) = self.within_rate_limit(parsed.as_ref().ok()) {
            return self.reply(frames);
        }
        match parsed {
            Err(error) => self.reply(Some(self.protocol.unreadable(error))),
            Ok(request) if P::is_pipelined(&request) || self.replies.is_empty() => {
                self.handle(request, message.len()).await
            }
            Ok(request) => self.deferred = Some((request, message.len())),
        }
    }

    /// Counts a message. The error is the reply to a message over the limit.
    fn within_rate_limit(&mut self, request: Option<&P::Request>) -> Result<(), Option<Bytes>> {
        if self.peer.identity.is_some() && !self.rate_limit.try_acquire() {
            return Err(self.protocol.rate_limited(request));
        }
        Ok(())
    }

    async fn handle_deferred(&mut self) {
        if self.replies.is_empty()
            && let Some((request, bytes)) = self.deferred.take()
        {
            self.handle(request, bytes).await;
        }
    }

    async fn handle(&mut self, request: P::Request, bytes: usize) {
        // On the heap only while a request is handled: the largest handler would otherwise determine the memory of
        // every idle connection.
        match Box::pin(self.protocol.handle(&mut self.peer, request)).await {
            Reply::None => {}
            Reply::Frames(frames) => self.reply(Some(frames)),
            Reply::Pending(reply) => self.replies.push(reply, bytes),
        }
    }

    /// Sends a reply at once if no other reply waits and the outbox has space; otherwise queues it.
    fn reply(&mut self, frames: Option<Bytes>) {
        let Some(frames) = frames else { return };
        let bytes = frames.len();
        let reply: PendingReply = std::future::ready(DecidedReply::from(frames)).boxed();
        self.replies.push(reply, bytes);
        let _ = self.send_replies().now_or_never();
    }

    /// Cancel-safe.
    async fn send_replies(&mut self) {
        let hub = &self.peer.app.hub;
        self.replies.send(&self.peer.outbox, |seq| hub.reached(seq).map(drop)).await;
    }

    /// Handles the deadline of the protocol and the heartbeat, if they are due. Returns the time of the next call.
    fn elapse(&mut self, last_received: Instant) -> Instant {
        let now = Instant::now();
        if self.protocol.deadline().is_some_and(|deadline| deadline <= now) {
            self.protocol.reach_deadline(&self.peer);
        }
        if self.heartbeat_due <= now {
            self.heartbeat_due = self.send_heartbeat(last_received);
        }
        self.protocol.deadline().map_or(self.heartbeat_due, |deadline| deadline.min(self.heartbeat_due))
    }

    /// Sends a heartbeat to a client that has sent nothing for the protocol's interval, or closes the connection after
    /// too many of them. Returns the time of the next call.
    fn send_heartbeat(&mut self, last_received: Instant) -> Instant {
        let (interval, heartbeat) = self.protocol.heartbeat(&self.peer.app);
        let now = Instant::now();
        let is_answered = self.last_heartbeat.is_none_or(|sent| sent < last_received);
        // A connection that reads nothing until its replies are sent cannot see an answer.
        if is_answered || !self.can_receive() {
            self.unanswered_heartbeats = 0;
        }
        let due = last_received + interval;
        if now < due {
            return due;
        }
        if self.unanswered_heartbeats == MAX_UNANSWERED_HEARTBEATS {
            self.peer.close(1001, "No answer to heartbeats");
        } else {
            self.unanswered_heartbeats += 1;
            self.last_heartbeat = Some(now);
            self.peer.outbox.push(heartbeat);
        }
        now + interval
    }

    /// Closes a connection that has not authenticated in time.
    fn time_out(&mut self) {
        // The permit is released before the client learns that it timed out.
        self.peer.release_unauthenticated_permit();
        if let Some(frames) = self.protocol.sign_in_timeout() {
            self.peer.outbox.push(frames);
        }
        self.peer.close(4001, "Authentication timeout");
    }

    /// Removes the connection from the hub and releases its permits.
    async fn end(self) {
        if let Some(identity) = &self.peer.identity {
            identity.session.end();
        }
        self.protocol.end(&self.peer).await;
    }
}
