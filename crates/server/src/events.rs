//! Chat events protocol: `GET /api/events`, a server-sent event stream of everything that the caller may see.
//!
//! The same events are also sent as frames on `/ws/client`.

use crate::App;
use crate::auth;
use crate::connection::admission::admit;
use crate::connection::concurrency::ConcurrencyPermit;
use crate::connection::frame;
use crate::connection::open_sockets::SocketGuard;
use crate::encoders::{ConnectionEncoder, EVENT_STREAM, Encoder};
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
use parlor_engine::feed::{
    Codec, DisconnectReason, Drained, Encoding, Interest, LiveFrame, NewSession, Open, Outbox, Resync,
    RoomFilter, Session,
};
use parlor_model::query::MayReadRooms;
use parlor_model::{
    AgentId, Caller, EntityKind, Epoch, LoggedEvent, Position, Refusal, RoomId, RoomSelection, Signal,
    SignalStamp,
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

/// Encoder of chat events, as server-sent events or as frames on `/ws/client` beside the frames of AgentIM.
pub struct EventsEncoder {
    filter: Filter,
    epoch: Epoch,
}

impl EventsEncoder {
    /// Encoder without a filter.
    pub fn new(form: StreamFormat, epoch: Epoch) -> Self {
        Self { filter: Filter { form, ..Filter::default() }, epoch }
    }

    fn frame(&self, text: String) -> Bytes {
        match self.filter.form {
            StreamFormat::Block => text.into(),
            StreamFormat::Frame => frame::text(&text),
        }
    }
}

impl Encoder for EventsEncoder {
    fn event(&self, logged_event: &LoggedEvent, root: Option<&str>) -> Option<Bytes> {
        let mut texts = egress::event(logged_event, self.epoch, &self.filter, root);
        if texts.len() > 1 {
            let frames: Vec<Bytes> = texts.into_iter().map(|text| self.frame(text)).collect();
            return Some(frame::concat(&frames));
        }
        texts.pop().map(|text| self.frame(text))
    }

    fn open_approval(&self, asked: &LoggedEvent, stamp: SignalStamp, root: Option<&str>) -> Option<Bytes> {
        egress::replay(asked, stamp, &self.filter, root).map(|text| self.frame(text))
    }

    fn room_lost(&self, room: &RoomId, by: &LoggedEvent, root: Option<&str>) -> Option<Bytes> {
        egress::room_lost(room, by, &self.filter, root).map(|text| self.frame(text))
    }

    fn signal(&self, signal: &Signal, stamp: SignalStamp, root: Option<&str>) -> Option<Bytes> {
        egress::signal(signal, stamp, &self.filter, root).map(|text| self.frame(text))
    }

    /// Empty: the stream simply ends, and a client with valid credentials reconnects and resumes by itself.
    fn disconnect(&self, _: DisconnectReason) -> Bytes {
        Bytes::new()
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
    let (encoding, encoder) = match filter == Filter::default() {
        true => (EVENT_STREAM, ConnectionEncoder::of(&app.encoders, EVENT_STREAM)),
        false => {
            let own: Arc<dyn Encoder> = Arc::new(EventsEncoder { filter, epoch: app.hub.epoch() });
            let private = Encoding { codec: Codec::PRIVATE, ..EVENT_STREAM };
            (private, ConnectionEncoder::private(&app.encoders, [own].into()))
        }
    };
    let outbox = Arc::new(Outbox::new(app.config.outbox));
    // A stream is often read by a program, so it does not make its user present.
    let new = NewSession {
        outbox: outbox.clone(),
        encoding,
        present: false,
        enters_places: false,
        greeting: GREETING.into(),
    };
    let (session, _, permit) = admit(&app, &mut None, &caller, new).await?;
    let session = Arc::new(session);
    let position = |at| egress::position(at, StreamFormat::Block);
    let live = live_frame(StreamFormat::Block, Bytes::from, position);
    let (interest, since) = (Interest::MyRooms(following), since.into());
    let open = Open { interest, since, encoding, opened: None, live: Some(live) };
    let event_stream = EventStream {
        encoder,
        opening: app.tasks.spawn(open_feed(session.clone(), outbox.clone(), open)),
        session,
        outbox,
        _permit: permit,
        _guard: app.open_sockets.begin("/api/events"),
        buffered: Vec::new().into_iter(),
        ended: false,
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

/// Sends the missed events at the pace of the client, then live events. On failure it ends the stream.
async fn open_feed(session: Arc<Session>, outbox: Arc<Outbox>, open: Open) {
    if let Err(refusal) = session.open(open).await {
        tracing::debug!(?refusal, "failed to start an event stream");
        outbox.close(Bytes::new());
    }
}

/// Frame with the position from which on events are live, after a resync if events are missing. `encode` turns the
/// text of a frame into bytes, and `position` encodes the frame that tells the client its position.
pub fn live_frame(
    form: StreamFormat,
    encode: fn(String) -> Bytes,
    position: fn(Position) -> String,
) -> LiveFrame {
    Arc::new(move |live| {
        let current = encode(position(live.at));
        let Some(Resync { lost, stamp }) = live.resync else { return current };
        let reason = if lost.is_some() { "too_old" } else { "new_epoch" };
        let resync = encode(egress::resync(reason, lost, Some(live.at), stamp, form));
        [resync, current].concat().into()
    })
}

/// Body of one open event stream; ends its session when the client closes the stream.
struct EventStream {
    session: Arc<Session>,
    outbox: Arc<Outbox>,
    encoder: ConnectionEncoder,
    opening: JoinHandle<()>,
    _permit: ConcurrencyPermit,
    _guard: SocketGuard,
    buffered: std::vec::IntoIter<Bytes>,
    ended: bool,
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
            let mut entries = Vec::new();
            let taken = self.outbox.take(&mut entries, MAX_BUFFERS_PER_DRAIN);
            let taken = tokio::time::timeout(KEEP_ALIVE_INTERVAL, taken).await;
            let mut blocks: Vec<Bytes> =
                entries.iter().filter_map(|entry| Some(self.encoder.encode(entry)?.clone())).collect();
            match taken {
                Ok(Drained::More) => {}
                Ok(Drained::Last(_)) => {
                    self.ended = true;
                    let lost = self.outbox.lost();
                    if lost > 0 {
                        let stamp = self.session.next_stamp();
                        let form = StreamFormat::Block;
                        blocks.push(egress::resync("broadcast_lag", Some(lost), None, stamp, form).into());
                    }
                }
                Err(_) => blocks.push(Bytes::from_static(b":\n\n")),
            }
            self.buffered = blocks.into_iter();
        }
    }
}

impl Drop for EventStream {
    fn drop(&mut self) {
        self.opening.abort();
        self.session.end();
    }
}
