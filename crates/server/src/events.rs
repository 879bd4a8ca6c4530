//! Chat events protocol: `GET /api/events`, a server-sent event stream of everything that the caller may see.
//!
//! The same events are also sent as frames on `/ws/client` ([`SocketEvents`]).

use crate::App;
use crate::agentim::ClientEgress;
use crate::auth;
use crate::connection::admission::admit;
use crate::connection::concurrency::ConcurrencyPermit;
use crate::connection::open_sockets::SocketGuard;
use crate::connection::{AUTH_RECHECK_INTERVAL, frame};
use crate::http::parameters::Parameters;
use crate::http::problem::Problem;
use crate::http::{Peer, bearer};
use axum::body::Body;
use axum::extract::State;
use axum::response::{IntoResponse, Response};
use bytes::Bytes;
use futures_util::stream;
use http::header::{CACHE_CONTROL, CONTENT_TYPE};
use http::{HeaderMap, HeaderName};
use parlor_engine::fanout::{
    DisconnectReason, Drained, Egress, Outbox, RoomFilter, RoomRoots, Subscriber, SubscriberId,
};
use parlor_model::query::{GetAuthContext, MayReadRooms};
use parlor_model::{
    AgentId, Caller, Delivery, EntityKind, Epoch, LoggedEvent, Message, Position, Refusal, RoomId,
    RoomSelection, Signal, SignalStamp,
};
use parlor_wire::events::egress::{self, Filter};
use parlor_wire::events::frames::StreamFormat;
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// Interval between keep-alive comments on an idle stream, so that clients and proxies do not close it.
const KEEP_ALIVE_INTERVAL: Duration = Duration::from_secs(15);
/// Maximum buffers taken from the outbox at a time.
const MAX_BUFFERS_PER_DRAIN: usize = 64;
/// First bytes of a stream: the client's reconnection delay in milliseconds.
const GREETING: &str = "retry: 1000\n\n";
/// Disables response buffering in nginx.
static ACCEL: HeaderName = HeaderName::from_static("x-accel-buffering");

pub struct EventsEgress {
    filter: Filter,
    roots: Arc<RoomRoots>,
}

impl EventsEgress {
    /// Egress without a filter.
    pub fn new(roots: Arc<RoomRoots>) -> Self {
        Self { filter: Filter::default(), roots }
    }
}

/// Project root of the room of an event or signal, if it has one.
fn root(roots: &RoomRoots, room: Option<&RoomId>) -> Option<Arc<str>> {
    room.and_then(|room| roots.of(room))
}

impl Egress for EventsEgress {
    fn event(&self, logged_event: &LoggedEvent, epoch: Epoch) -> Option<Bytes> {
        let root = root(&self.roots, logged_event.event.room());
        let mut blocks = egress::event(logged_event, epoch, &self.filter, root.as_deref());
        if blocks.len() > 1 {
            return Some(blocks.concat().into());
        }
        blocks.pop().map(Bytes::from)
    }

    fn replay_event(&self, logged_event: &LoggedEvent, _: Epoch, stamp: SignalStamp) -> Option<Bytes> {
        let root = root(&self.roots, logged_event.event.room());
        egress::replay(logged_event, stamp, &self.filter, root.as_deref()).map(Bytes::from)
    }

    fn room_lost(&self, room: &RoomId, by: &LoggedEvent) -> Option<Bytes> {
        let root = root(&self.roots, Some(room));
        egress::room_lost(room, by, &self.filter, root.as_deref()).map(Bytes::from)
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, signal: &Signal, stamp: SignalStamp) -> Option<Bytes> {
        let root = root(&self.roots, signal.room());
        egress::signal(signal, stamp, &self.filter, root.as_deref()).map(Bytes::from)
    }

    /// Empty: the stream simply ends, and a client with valid credentials reconnects and resumes by itself.
    fn disconnect_frame(&self, _: DisconnectReason) -> Bytes {
        Bytes::new()
    }

    fn is_shared(&self) -> bool {
        self.filter == Filter::default()
    }

    fn is_totally_ordered(&self) -> bool {
        true
    }
}

/// Egress that sends chat events as frames on `/ws/client`, beside the frames of AgentIM.
pub struct SocketEvents {
    filter: Filter,
    roots: Arc<RoomRoots>,
}

impl SocketEvents {
    pub fn new(roots: Arc<RoomRoots>) -> Self {
        Self { filter: Filter { form: StreamFormat::Frame, ..Filter::default() }, roots }
    }
}

impl Egress for SocketEvents {
    fn event(&self, logged_event: &LoggedEvent, epoch: Epoch) -> Option<Bytes> {
        let root = root(&self.roots, logged_event.event.room());
        let texts = egress::event(logged_event, epoch, &self.filter, root.as_deref());
        let frames: Vec<Bytes> = texts.iter().map(|text| frame::text(text)).collect();
        (!frames.is_empty()).then(|| frame::concat(&frames))
    }

    fn replay_event(&self, logged_event: &LoggedEvent, _: Epoch, stamp: SignalStamp) -> Option<Bytes> {
        let root = root(&self.roots, logged_event.event.room());
        egress::replay(logged_event, stamp, &self.filter, root.as_deref()).map(|text| frame::text(&text))
    }

    fn room_lost(&self, room: &RoomId, by: &LoggedEvent) -> Option<Bytes> {
        let root = root(&self.roots, Some(room));
        egress::room_lost(room, by, &self.filter, root.as_deref()).map(|text| frame::text(&text))
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, signal: &Signal, stamp: SignalStamp) -> Option<Bytes> {
        let root = root(&self.roots, signal.room());
        egress::signal(signal, stamp, &self.filter, root.as_deref()).map(|text| frame::text(&text))
    }

    /// Uses the AgentIM frame: a socket has two subscribers, and the first one to end sends the close frame.
    fn disconnect_frame(&self, reason: DisconnectReason) -> Bytes {
        ClientEgress.disconnect_frame(reason)
    }

    fn is_totally_ordered(&self) -> bool {
        true
    }
}

#[derive(Deserialize)]
pub struct StreamQuery {
    session_id: Option<String>,
    agent_id: Option<String>,
    project_root: Option<String>,
    since: Option<String>,
    ticket: Option<String>,
}

pub async fn stream(
    State(app): State<Arc<App>>,
    peer: Peer,
    headers: HeaderMap,
    Parameters(params): Parameters<StreamQuery>,
) -> Result<Response, Problem> {
    let caller = caller(&app, &headers, params.ticket.as_deref()).await?.at(peer.0.ip());
    let filter = Filter {
        form: StreamFormat::Block,
        session: params
            .session_id
            .as_deref()
            .map(RoomId::parse)
            .transpose()
            .map_err(|_| not_found(EntityKind::Room))?,
        agent: params
            .agent_id
            .as_deref()
            .map(AgentId::parse)
            .transpose()
            .map_err(|_| not_found(EntityKind::Agent))?,
        root: params.project_root.as_deref().map(Into::into),
    };
    let following = filter.session.clone().map_or(RoomFilter::All, RoomFilter::Only);
    let rooms = RoomSelection { room: filter.session.clone(), root: filter.root.clone() };
    app.hub.may(&caller, MayReadRooms { rooms }).await?;
    // `Last-Event-ID` wins over `since`: a browser reconnects with the original URL and its position in the
    // header.
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    let since = match header.or(params.since.as_deref()) {
        None => None,
        Some(text) => {
            let position = Position::parse(text, app.hub.epoch());
            Some(position.ok_or_else(|| Problem::invalid("since", "is not a position"))?)
        }
    };
    let egress: Arc<EventsEgress> = match filter == Filter::default() {
        true => app.events_egress.clone(),
        false => Arc::new(EventsEgress { filter, roots: app.hub.roots() }),
    };
    let outbox = Arc::new(Outbox::new(app.config.outbox, Bytes::new()));
    let subscriber = Subscriber {
        id: app.hub.next_subscriber_id(),
        user: caller.user().cloned().ok_or(Refusal::NotSignedIn)?,
        principal: caller.principal.clone(),
        egress,
        outbox: outbox.clone(),
        // A stream is often read by a program, so it does not make its user present.
        present: false,
        only_follows: true,
    };
    let (_, permit) = admit(&app, &mut None, &caller, subscriber.clone(), GREETING.into()).await?;
    let event_stream = EventStream {
        id: subscriber.id,
        following: app.tasks.spawn(follow(app.clone(), caller.clone(), subscriber, following, since)),
        outbox,
        caller,
        _permit: permit,
        _guard: app.open_sockets.begin("/api/events"),
        app,
        buffered: Vec::new().into_iter(),
        ended: false,
        auth_checked_at: Instant::now(),
    };
    let body = stream::unfold(event_stream, |mut event_stream| async move {
        let next = event_stream.next().await?;
        Some((Ok::<_, Infallible>(next), event_stream))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // A proxy that buffers the response would never forward it, since the stream does not end.
        (ACCEL.clone(), "no"),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

fn not_found(entity: EntityKind) -> Problem {
    Refusal::NotFound(entity).into()
}

async fn caller(app: &App, headers: &HeaderMap, ticket: Option<&str>) -> Result<Caller, Refusal> {
    match (bearer(headers), ticket) {
        (Some(token), _) => auth::caller(app, token).await,
        (None, Some(ticket)) => app.tickets.take(ticket, Instant::now()).ok_or(Refusal::NotSignedIn),
        (None, None) => Err(Refusal::NotSignedIn),
    }
}

/// Sends the missed events at the pace of the client, then subscribes to live events. On failure it ends the
/// stream.
async fn follow(
    app: Arc<App>,
    caller: Caller,
    subscriber: Subscriber,
    following: RoomFilter,
    since: Option<Position>,
) {
    let encode = |text: String| Bytes::from(text);
    if let Err(refusal) =
        begin(&app, &caller, &subscriber, &following, since, StreamFormat::Block, encode).await
    {
        tracing::debug!(?refusal, "failed to start an event stream");
        subscriber.outbox.close(Bytes::new());
    }
}

/// Resumes from a position and goes live. If the position is unknown or too old, sends a resync and goes live
/// from the current position. `encode` turns the text of a frame into bytes.
pub async fn begin(
    app: &App,
    caller: &Caller,
    subscriber: &Subscriber,
    following: &RoomFilter,
    since: Option<Position>,
    form: StreamFormat,
    encode: fn(String) -> Bytes,
) -> Result<(), Refusal> {
    let hub = &app.hub;
    let welcome = move |position| Some(encode(egress::position(position, form)));
    match hub.follow(caller, subscriber, following, since, welcome).await {
        Err(Refusal::Resync { now }) => {
            // The number of missed events is unknown if the position is from another epoch.
            let since = since.filter(|since| since.epoch == now.epoch);
            let lost = since.map(|since| now.seq.0.abs_diff(since.seq.0));
            let reason = if lost.is_some() { "too_old" } else { "new_epoch" };
            // Taken here, because the closure below runs under the lock that assigns stamps.
            let stamp = hub.next_stamp();
            let resync = move |position| {
                let resync = encode(egress::resync(reason, lost, Some(position), stamp, form));
                let current = encode(egress::position(position, form));
                Some([resync, current].concat().into())
            };
            hub.follow(caller, subscriber, following, None, resync).await.map(drop)
        }
        followed => followed.map(drop),
    }
}

/// Body of one open event stream; disconnects its subscriber when the client closes the stream.
struct EventStream {
    app: Arc<App>,
    id: SubscriberId,
    caller: Caller,
    outbox: Arc<Outbox>,
    following: JoinHandle<()>,
    _permit: ConcurrencyPermit,
    _guard: SocketGuard,
    buffered: std::vec::IntoIter<Bytes>,
    ended: bool,
    auth_checked_at: Instant,
}

impl EventStream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.buffered.next() {
                if bytes.is_empty() {
                    continue;
                }
                return Some(bytes);
            }
            if self.ended {
                return None;
            }
            let mut taken = Vec::new();
            match tokio::time::timeout(
                KEEP_ALIVE_INTERVAL,
                self.outbox.take(&mut taken, MAX_BUFFERS_PER_DRAIN),
            )
            .await
            {
                Ok(Drained::More) => {}
                Ok(Drained::Last) => {
                    self.ended = true;
                    let lost = self.outbox.lost();
                    if lost > 0 {
                        let stamp = self.app.hub.next_stamp();
                        taken.push(
                            egress::resync("broadcast_lag", Some(lost), None, stamp, StreamFormat::Block)
                                .into(),
                        );
                    }
                }
                Err(_) => {
                    self.recheck_auth().await;
                    taken.push(Bytes::from_static(b":\n\n"));
                }
            }
            self.buffered = taken.into_iter();
        }
    }

    /// Ends the stream if its sign-in has expired. The hub itself disconnects a revoked sign-in at once.
    async fn recheck_auth(&mut self) {
        if self.auth_checked_at.elapsed() >= AUTH_RECHECK_INTERVAL {
            self.auth_checked_at = Instant::now();
            if matches!(self.app.hub.read(&self.caller, GetAuthContext).await, Err(Refusal::NotSignedIn)) {
                self.outbox.close(Bytes::new());
            }
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.following.abort();
        self.app.hub.disconnect(self.id);
    }
}
