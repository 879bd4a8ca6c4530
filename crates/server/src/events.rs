//! The chat events door: `GET /api/events`, one stream of everything that its reader may see.

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
use parlor_model::{
    AgentId, Caller, Delivery, EntityKind, Epoch, LoggedEvent, Message, Position, Query, Refusal, RoomId,
    Signal, SignalStamp,
};
use parlor_wire::events::egress::{self, Filter};
use parlor_wire::events::frames::StreamFormat;
use serde::Deserialize;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::{Duration, Instant};
use tokio::task::JoinHandle;

/// How often something is said where nothing happens, so that nobody takes the silence for an end.
const KEEP_ALIVE: Duration = Duration::from_secs(15);
/// Buffers taken at once.
const AT_ONCE: usize = 64;
/// Said first: how soon to come back, in milliseconds.
const GREETING: &str = "retry: 1000\n\n";
static ACCEL: HeaderName = HeaderName::from_static("x-accel-buffering");

pub struct EventsEgress {
    filter: Filter,
    roots: Arc<RoomRoots>,
}

impl EventsEgress {
    /// Of everything.
    pub fn new(roots: Arc<RoomRoots>) -> Self {
        Self { filter: Filter::default(), roots }
    }
}

/// The folder that the room is about where something happened.
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

    fn replay_event(&self, logged_event: &LoggedEvent, _: Epoch, given: SignalStamp) -> Option<Bytes> {
        let root = root(&self.roots, logged_event.event.room());
        egress::replay(logged_event, given, &self.filter, root.as_deref()).map(Bytes::from)
    }

    fn room_lost(&self, room: &RoomId, by: &LoggedEvent) -> Option<Bytes> {
        let root = root(&self.roots, Some(room));
        egress::room_lost(room, by, &self.filter, root.as_deref()).map(Bytes::from)
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, signal: &Signal, given: SignalStamp) -> Option<Bytes> {
        let root = root(&self.roots, signal.room());
        egress::signal(signal, given, &self.filter, root.as_deref()).map(Bytes::from)
    }

    /// The stream ends. Whoever may comes back by itself and goes on where it was.
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

/// The same as frames of `/ws/client`, beside what else is said there.
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
        let told = egress::event(logged_event, epoch, &self.filter, root.as_deref());
        let frames: Vec<Bytes> = told.iter().map(|text| frame::text(text)).collect();
        (!frames.is_empty()).then(|| frame::together(&frames))
    }

    fn replay_event(&self, logged_event: &LoggedEvent, _: Epoch, given: SignalStamp) -> Option<Bytes> {
        let root = root(&self.roots, logged_event.event.room());
        egress::replay(logged_event, given, &self.filter, root.as_deref()).map(|text| frame::text(&text))
    }

    fn room_lost(&self, room: &RoomId, by: &LoggedEvent) -> Option<Bytes> {
        let root = root(&self.roots, Some(room));
        egress::room_lost(room, by, &self.filter, root.as_deref()).map(|text| frame::text(&text))
    }

    fn delivery(&self, _: &Message, _: &Delivery) -> Option<Bytes> {
        None
    }

    fn signal(&self, signal: &Signal, given: SignalStamp) -> Option<Bytes> {
        let root = root(&self.roots, signal.room());
        egress::signal(signal, given, &self.filter, root.as_deref()).map(|text| frame::text(&text))
    }

    /// Whichever of the two is ended first speaks for the connection.
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
    Parameters(wanted): Parameters<StreamQuery>,
) -> Result<Response, Problem> {
    let caller = caller(&app, &headers, wanted.ticket.as_deref()).await?.at(peer.0.ip());
    let filter = Filter {
        form: StreamFormat::Block,
        session: wanted
            .session_id
            .as_deref()
            .map(RoomId::parse)
            .transpose()
            .map_err(|_| no(EntityKind::Room))?,
        agent: wanted
            .agent_id
            .as_deref()
            .map(AgentId::parse)
            .transpose()
            .map_err(|_| no(EntityKind::Agent))?,
        root: wanted.project_root.as_deref().map(Into::into),
    };
    let following = filter.session.clone().map_or(RoomFilter::All, RoomFilter::Only);
    app.hub.may_follow(&caller, &following).await?;
    if let Some(root) = &filter.root {
        app.hub.may(&caller, Query::RoomsAt { root: root.clone(), room: filter.session.clone() }).await?;
    }
    // Who comes back by itself asks with the address it began with, and says in the header where it is now.
    let header = headers.get("last-event-id").and_then(|id| id.to_str().ok()).filter(|id| !id.is_empty());
    let since = match header.or(wanted.since.as_deref()) {
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
        id: app.hub.viewer_id(),
        user: caller.user().cloned().ok_or(Refusal::NotSignedIn)?,
        principal: caller.principal.clone(),
        egress,
        outbox: outbox.clone(),
        // A stream is often read by a program: it says nothing of its person.
        present: false,
    };
    let (_, counted) = admit(&app, &mut None, &caller, subscriber.clone(), GREETING.into()).await?;
    let reader = EventStream {
        id: subscriber.id,
        following: tokio::spawn(follow(app.clone(), caller.clone(), subscriber, following, since)),
        outbox,
        caller,
        _counted: counted,
        _ongoing: app.open_sockets.begin("/api/events"),
        app,
        waiting: Vec::new().into_iter(),
        ended: false,
        looked: Instant::now(),
    };
    let body = stream::unfold(reader, |mut reader| async move {
        let next = reader.next().await?;
        Some((Ok::<_, Infallible>(next), reader))
    });
    let headers = [
        (CONTENT_TYPE, "text/event-stream"),
        (CACHE_CONTROL, "no-store"),
        // A proxy that collects answers before it passes them on would collect for ever.
        (ACCEL.clone(), "no"),
    ];
    Ok((headers, Body::from_stream(body)).into_response())
}

fn no(thing: EntityKind) -> Problem {
    Refusal::NotFound(thing).into()
}

async fn caller(app: &App, headers: &HeaderMap, ticket: Option<&str>) -> Result<Caller, Refusal> {
    match (bearer(headers), ticket) {
        (Some(token), _) => auth::caller(app, token).await,
        (None, Some(ticket)) => app.tickets.take(ticket, Instant::now()).ok_or(Refusal::NotSignedIn),
        (None, None) => Err(Refusal::NotSignedIn),
    }
}

/// Tells what was missed, at the pace of its reader, and takes the seats.
async fn follow(
    app: Arc<App>,
    caller: Caller,
    subscriber: Subscriber,
    following: RoomFilter,
    since: Option<Position>,
) {
    let made = |text: String| Bytes::from(text);
    if let Err(refusal) =
        begin(&app, &caller, &subscriber, &following, since, StreamFormat::Block, made).await
    {
        tracing::debug!(?refusal, "a stream could not go on");
        subscriber.outbox.close(Bytes::new());
    }
}

/// Goes live from a position, or tells that it is not known any more and goes live from now; `made` makes bytes of
/// what is written.
pub async fn begin(
    app: &App,
    caller: &Caller,
    subscriber: &Subscriber,
    following: &RoomFilter,
    since: Option<Position>,
    form: StreamFormat,
    made: fn(String) -> Bytes,
) -> Result<(), Refusal> {
    let hub = &app.hub;
    let here = move |position| Some(made(egress::position(position, form)));
    match hub.follow(caller, subscriber, following, since, here).await {
        Err(Refusal::Resync { now }) => {
            // Of another history nobody knows how much was missed.
            let since = since.filter(|since| since.epoch == now.epoch);
            let lost = since.map(|since| now.seq.0.abs_diff(since.seq.0));
            let reason = if lost.is_some() { "too_old" } else { "new_epoch" };
            // It is said under the lock under which numbers are given.
            let given = hub.next_stamp();
            let resync = move |position| {
                let told = made(egress::resync(reason, lost, Some(position), given, form));
                let there = made(egress::position(position, form));
                Some([told, there].concat().into())
            };
            hub.follow(caller, subscriber, following, None, resync).await.map(drop)
        }
        followed => followed.map(drop),
    }
}

/// One stream, for as long as somebody reads it.
struct EventStream {
    app: Arc<App>,
    id: SubscriberId,
    caller: Caller,
    outbox: Arc<Outbox>,
    following: JoinHandle<()>,
    _counted: ConcurrencyPermit,
    _ongoing: SocketGuard,
    waiting: std::vec::IntoIter<Bytes>,
    ended: bool,
    looked: Instant,
}

impl EventStream {
    async fn next(&mut self) -> Option<Bytes> {
        loop {
            if let Some(bytes) = self.waiting.next() {
                if bytes.is_empty() {
                    continue;
                }
                return Some(bytes);
            }
            if self.ended {
                return None;
            }
            let mut taken = Vec::new();
            match tokio::time::timeout(KEEP_ALIVE, self.outbox.take(&mut taken, AT_ONCE)).await {
                Ok(Drained::More) => {}
                Ok(Drained::Last) => {
                    self.ended = true;
                    let lost = self.outbox.lost();
                    if lost > 0 {
                        let moment = self.app.hub.next_stamp();
                        taken.push(
                            egress::resync("broadcast_lag", Some(lost), None, moment, StreamFormat::Block)
                                .into(),
                        );
                    }
                }
                Err(_) => {
                    self.look_again().await;
                    taken.push(Bytes::from_static(b":\n\n"));
                }
            }
            self.waiting = taken.into_iter();
        }
    }

    /// A sign-in may run out while the stream is open; everything else is told at once.
    async fn look_again(&mut self) {
        if self.looked.elapsed() >= AUTH_RECHECK_INTERVAL {
            self.looked = Instant::now();
            if matches!(self.app.hub.auth_context(&self.caller).await, Err(Refusal::NotSignedIn)) {
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
