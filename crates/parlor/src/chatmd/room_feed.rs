//! The connection of a bridge inside the hub's process: a feed of the room, queries and commands, without frames.
//!
//! The feed starts at the present, and the bridge reads the history from its saved position up to there. So an
//! interruption that is longer than the log is kept loses nothing.

use parlor_chatmd::bridge::room::{RoomConnection, TooLarge};
use parlor_engine::feed::{DisconnectReason, Feed, Interest, Item};
use parlor_engine::{Hub, PendingReceipt};
use parlor_model::command::{Posted, Relay};
use parlor_model::query::{ListHistory, ListMembers, Page};
use parlor_model::{Caller, Event, LoggedEvent, MessageId, Position, Refusal, RoomId, Seq, UserId};
use parlor_wire::broker::client::{Answer, HubFrame, Relay as RelayFrame, RoomMember, RoomMessage};
use parlor_wire::broker::codes;
use std::collections::VecDeque;
use std::pin::Pin;
use tokio::task::JoinSet;

/// Queues a command. Returns the number of its request and its pending receipt.
type Submitting = Pin<Box<dyn Future<Output = (u64, PendingReceipt<Posted>)> + Send>>;

/// A connection that acts as one account. The hub checks the rights of the account for each request and each event.
pub struct RoomFeed {
    hub: Hub,
    caller: Caller,
    /// The feed of the room, once it is open. If the bridge falls behind, it resumes from the store.
    feed: Option<Feed>,
    /// Answers and pushes that `next` has not returned yet: those of one request or one item of the feed.
    arrived: VecDeque<HubFrame>,
    /// Queries whose answers are outstanding. Dropping the connection aborts them.
    queries: JoinSet<(u64, Result<Queried, Refusal>)>,
    /// Lines for the writer's queue, in order. The first one waits for space in the queue.
    unsent: VecDeque<(u64, Relay)>,
    submitting: Option<Submitting>,
    receipts: VecDeque<(u64, PendingReceipt<Posted>)>,
    last_request: u64,
}

enum Queried {
    Opened { feed: Box<Feed>, position: Position, members: Vec<RoomMember> },
    Answer(Answer),
}

impl RoomFeed {
    pub fn new(hub: Hub, account: UserId) -> Self {
        Self {
            hub,
            caller: Caller::connector(account),
            feed: None,
            arrived: VecDeque::new(),
            queries: JoinSet::new(),
            unsent: VecDeque::new(),
            submitting: None,
            receipts: VecDeque::new(),
            last_request: 0,
        }
    }

    fn next_request(&mut self) -> u64 {
        self.last_request += 1;
        self.last_request
    }

    fn query(&mut self, query: impl Future<Output = Result<Queried, Refusal>> + Send + 'static) -> u64 {
        let request = self.next_request();
        self.queries.spawn(async move { (request, query.await) });
        request
    }

    fn queried(&mut self, request: u64, result: Result<Queried, Refusal>) {
        let outcome = result.map(|queried| match queried {
            Queried::Opened { feed, position, members } => {
                self.feed = Some(*feed);
                Answer::Listening { position, members }
            }
            Queried::Answer(answer) => answer,
        });
        self.answer(request, outcome);
    }

    fn answer(&mut self, request: u64, outcome: Result<Answer, Refusal>) {
        let outcome = outcome.map_err(|refusal| codes::sentence(&refusal, None).into());
        self.arrived.push_back(HubFrame::Answer { request, outcome });
    }

    fn delivered(&mut self, item: &Item) -> Result<(), String> {
        match item {
            Item::Events(events) => {
                let epoch = self.hub.epoch();
                self.arrived.extend(events.value.iter().filter_map(|event| pushed(event, epoch)));
            }
            Item::RoomLost(lost) => {
                self.arrived.push_back(HubFrame::RoomLost { room: lost.value.room.as_str().into() });
            }
            // The bridge reads the missed messages from the history over the next connection.
            Item::Live { live, .. } if live.resync.is_some() => return Err("events were missed".into()),
            _ => {}
        }
        Ok(())
    }
}

fn pushed(logged_event: &LoggedEvent, epoch: parlor_model::Epoch) -> Option<HubFrame> {
    match &logged_event.event {
        Event::MessagePosted { message, .. } => {
            message.destination.room()?;
            Some(HubFrame::Message(Box::new(RoomMessage::of(message, epoch))))
        }
        Event::MembersChanged { room, .. } => {
            Some(HubFrame::MembersChanged { room: room.id.as_str().into() })
        }
        Event::RoomRemoved { room, .. } => Some(HubFrame::RoomLost { room: room.as_str().into() }),
        _ => None,
    }
}

impl RoomConnection for RoomFeed {
    fn listen(&mut self, room: &str) -> u64 {
        let (hub, caller, room) = (self.hub.clone(), self.caller.clone(), RoomId::stored(room));
        self.query(async move {
            let feed = hub.feed(&caller, Interest::Room(room.clone()), None).await?;
            let position = feed.position().ok_or(Refusal::Unavailable)?;
            // Read after the feed is open: the feed reports every later change.
            let members = members(&hub, &caller, room).await?;
            Ok(Queried::Opened { feed: Box::new(feed), position, members })
        })
    }

    fn members(&mut self, room: &str) -> u64 {
        let (hub, caller, room) = (self.hub.clone(), self.caller.clone(), RoomId::stored(room));
        self.query(async move { Ok(Queried::Answer(Answer::Members(members(&hub, &caller, room).await?))) })
    }

    fn history(&mut self, room: &str, after: Option<Position>, limit: usize) -> u64 {
        let (hub, caller, room) = (self.hub.clone(), self.caller.clone(), RoomId::stored(room));
        self.query(async move {
            let epoch = hub.epoch();
            let after = match after {
                Some(position) if position.epoch != epoch => {
                    return Err(Refusal::Resync { now: Position { epoch, seq: Seq(0) } });
                }
                Some(position) => position.seq,
                None => Seq(0),
            };
            let page = hub.read(&caller, ListHistory { room, page: Page::After(after), limit }).await?;
            let messages = page.messages.iter().map(|message| RoomMessage::of(message, epoch)).collect();
            Ok(Queried::Answer(Answer::History(messages)))
        })
    }

    /// Never fails: the hub refuses a text that is too long.
    fn relay(&mut self, relay: &RelayFrame<'_>) -> Result<u64, TooLarge> {
        let request = self.next_request();
        let command = Relay {
            room: RoomId::stored(relay.room_id),
            author: relay.author.into(),
            recipient: relay.recipient.map(Into::into),
            observers: relay.observers.iter().map(|observer| observer.as_str().into()).collect(),
            text: relay.text.into(),
            continues: relay.continues.map(MessageId::stored),
            source: relay.source.into(),
            external_id: Some(relay.external_id.into()),
        };
        self.unsent.push_back((request, command));
        Ok(request)
    }

    async fn next(&mut self) -> Result<HubFrame, String> {
        loop {
            if let Some(frame) = self.arrived.pop_front() {
                return Ok(frame);
            }
            if self.submitting.is_none()
                && let Some((request, command)) = self.unsent.pop_front()
            {
                let (hub, caller) = (self.hub.clone(), self.caller.clone());
                self.submitting =
                    Some(Box::pin(async move { (request, hub.submit(&caller, command).await) }));
            }
            tokio::select! {
                Some(done) = self.queries.join_next() => {
                    let (request, result) = done.map_err(|error| error.to_string())?;
                    self.queried(request, result);
                }
                Some(submitted) = queued(self.submitting.as_mut()) => {
                    self.submitting = None;
                    self.receipts.push_back(submitted);
                }
                Some((request, posted)) = decided(self.receipts.front_mut()) => {
                    self.receipts.pop_front();
                    let answer =
                        posted.map(|Posted { id, position, .. }| Answer::Relayed { id: id.as_str().into(), position });
                    self.answer(request, answer);
                }
                Some(item) = next_item(&mut self.feed) => {
                    let item = item.map_err(|reason| ended(reason).to_owned())?;
                    self.delivered(&item)?;
                }
                else => std::future::pending().await,
            }
        }
    }

    async fn close(&mut self) {
        self.queries.shutdown().await;
    }
}

async fn queued(submitting: Option<&mut Submitting>) -> Option<(u64, PendingReceipt<Posted>)> {
    Some(submitting?.await)
}

async fn decided(
    oldest: Option<&mut (u64, PendingReceipt<Posted>)>,
) -> Option<(u64, Result<Posted, Refusal>)> {
    let (request, receipt) = oldest?;
    Some((*request, receipt.await))
}

async fn next_item(feed: &mut Option<Feed>) -> Option<Result<Item, DisconnectReason>> {
    match feed {
        Some(feed) => Some(feed.next().await),
        None => None,
    }
}

async fn members(hub: &Hub, caller: &Caller, room: RoomId) -> Result<Vec<RoomMember>, Refusal> {
    let query = ListMembers { room, limit: ListMembers::MAX_NAMES, offset: 0 };
    Ok(hub.read(caller, query).await?.members.iter().map(RoomMember::from).collect())
}

fn ended(reason: DisconnectReason) -> &'static str {
    match reason {
        DisconnectReason::TooSlow | DisconnectReason::Unavailable => "the hub cannot read missed events now",
        DisconnectReason::Revoked => "the account can no longer follow the room",
        DisconnectReason::ShuttingDown => "the hub is shutting down",
    }
}
