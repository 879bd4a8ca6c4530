//! One connection of a bridge: passes lines and messages until the connection ends or the bridge is stopped.

use super::disk::DiskEvent;
use super::members::Members;
use super::room::RoomConnection;
use super::state::MAX_OWN_LINES;
use super::to_file::RoomStart;
use super::{Bridge, BridgeNotice, explain};
use crate::Follower;
use parlor_wire::broker::client::{Answer, HubFrame, RefusalScope, RoomMember, refusal_scope};
use std::pin::Pin;
use std::time::{Duration, Instant};
use tokio::time::timeout;

/// Time for which a stop waits for the answers to lines that were sent, and for the close of the connection.
const STOP_TIMEOUT: Duration = Duration::from_secs(2);

/// Reason why a connection ended.
#[derive(Debug)]
pub enum SessionEnd {
    /// The bridge was stopped.
    Stopped,
    Lost(String),
    /// The hub refused to let the account read or write the room.
    Refused(String),
}

impl SessionEnd {
    fn of_refusal(sentence: &str) -> Self {
        match refusal_scope(sentence) {
            RefusalScope::ForNow => Self::Lost(sentence.to_owned()),
            RefusalScope::Room | RefusalScope::Request => Self::Refused(explain(sentence)),
        }
    }
}

impl Bridge {
    /// Serves one connection. Lines without an answer are sent again over the next one.
    pub async fn serve<C: RoomConnection>(
        &mut self,
        mut client: C,
        stop: Pin<&mut impl Future<Output = ()>>,
        report: &mut (dyn FnMut(BridgeNotice) + Send),
    ) -> SessionEnd {
        let listen = client.listen(&self.options.room);
        let mut session = Session {
            bridge: self,
            client,
            listen,
            follows: false,
            members: None,
            members_changed: false,
            more: true,
            saves_start: false,
        };
        let end = session.run(stop, report).await;
        if let SessionEnd::Stopped = end {
            let _ = timeout(STOP_TIMEOUT, session.drain(report)).await;
            let _ = timeout(STOP_TIMEOUT, session.client.close()).await;
        }
        self.to_room.connection_lost();
        self.to_file.connection_lost();
        end
    }
}

struct Session<'a, C> {
    bridge: &'a mut Bridge,
    client: C,
    /// Number of the request to follow the room.
    listen: u64,
    follows: bool,
    /// Number of the request for the members that is not answered yet.
    members: Option<u64>,
    /// Whether the members changed since that request.
    members_changed: bool,
    /// Whether the follower has more input.
    more: bool,
    /// Whether the first positions are being saved. Only then the bridge counts as connected: after a kill it
    /// goes on from there.
    saves_start: bool,
}

impl<C: RoomConnection> Session<'_, C> {
    async fn run(
        &mut self,
        mut stop: Pin<&mut impl Future<Output = ()>>,
        report: &mut (dyn FnMut(BridgeNotice) + Send),
    ) -> SessionEnd {
        loop {
            self.advance(report);
            let Bridge { disk, state, follower, to_room, wake_at, .. } = &mut *self.bridge;
            let reads = self.follows && to_room.has_capacity() && !disk.is_appending();
            tokio::select! {
                () = stop.as_mut() => return SessionEnd::Stopped,
                frame = self.client.next() => match frame.map(|frame| self.handle(frame, report)) {
                    Ok(Ok(())) => {}
                    Ok(Err(end)) => return end,
                    Err(why) => return SessionEnd::Lost(why),
                },
                event = disk.next(state) => match event {
                    DiskEvent::Due => {}
                    DiskEvent::Saved { generation } => {
                        to_room.saved(&generation);
                        if std::mem::take(&mut self.saves_start) {
                            report(BridgeNotice::Connected);
                        }
                    }
                    DiskEvent::Failed { why } => report(BridgeNotice::NotWritten { why }),
                    DiskEvent::FailedAgain => {}
                },
                () = file_changed(follower, self.more, *wake_at), if reads => self.read_file(report),
            }
        }
    }

    /// Does everything that can be done without waiting.
    fn advance(&mut self, report: &mut (dyn FnMut(BridgeNotice) + Send)) {
        let Bridge { options, disk, state, to_room, to_file, members, follower, .. } = &mut *self.bridge;
        if self.follows {
            let client = &mut self.client;
            let mut passed = to_room.settle(state);
            to_room.send(state, members, |relay| client.relay(relay), report);
            passed |= to_room.settle(state);
            if passed {
                disk.changed();
            }
            if to_room.waits_for_save() {
                disk.save_now();
            }
            if let Some(page) = to_file.wanted_page() {
                to_file.requested_page(client.history(&options.room, page.after, page.limit));
            }
            if self.members_changed && self.members.is_none() {
                self.members = Some(client.members(&options.room));
                self.members_changed = false;
            }
            let may_append = state.own_lines.len() < MAX_OWN_LINES || to_room.is_idle();
            if state.pending.is_none() && disk.is_free() && may_append {
                let position = state.position;
                if to_file.has_queued() {
                    members.set_file_agents(follower.agent_names());
                }
                state.pending = to_file.next_append(state, members, options.hub.trim_end_matches('/'));
                if state.position != position {
                    disk.changed();
                }
            }
        }
        disk.start(state);
    }

    fn read_file(&mut self, report: &mut (dyn FnMut(BridgeNotice) + Send)) {
        let Bridge { follower, to_room, state, wake_at, .. } = &mut *self.bridge;
        let batch = follower.poll(Instant::now());
        for notice in batch.notices {
            report(BridgeNotice::File(notice));
        }
        to_room.take(batch.messages, follower.cursor(), state, report);
        (self.more, *wake_at) = (batch.more, batch.wake_at);
    }

    /// Handles a frame of the hub. The error ends the connection.
    fn handle(
        &mut self,
        frame: HubFrame,
        report: &mut (dyn FnMut(BridgeNotice) + Send),
    ) -> Result<(), SessionEnd> {
        let bridge = &mut *self.bridge;
        match frame {
            HubFrame::Message(message) => bridge.to_file.pushed(*message),
            HubFrame::MembersChanged { room } => self.members_changed |= *room == *bridge.options.room,
            // The hub also reports rooms that this connection does not follow.
            HubFrame::RoomLost { room } if *room != *bridge.options.room => {}
            HubFrame::RoomLost { .. } => {
                let why = "the account is no longer a member of the room, or the room was deleted";
                return Err(SessionEnd::Refused(why.into()));
            }
            HubFrame::Answer { request, outcome } if bridge.to_room.is_waiting_for(request) => {
                let ends = |sentence: &str| refusal_scope(sentence) != RefusalScope::Request;
                match &outcome {
                    Err(sentence) if ends(sentence) => return Err(SessionEnd::of_refusal(sentence)),
                    _ => bridge.to_room.answered(request, outcome, &mut bridge.state, report),
                }
            }
            HubFrame::Answer { request, outcome } => {
                match outcome.map_err(|sentence| SessionEnd::of_refusal(&sentence))? {
                    Answer::Listening { position, members } if request == self.listen => {
                        self.set_members(&members);
                        self.start(position, report);
                    }
                    Answer::Members(members) if self.members == Some(request) => {
                        self.members = None;
                        self.set_members(&members);
                    }
                    Answer::History(messages) if bridge.to_file.is_waiting_for(request) => {
                        bridge.to_file.received_page(messages);
                    }
                    _ => return Err(SessionEnd::Lost("the hub sent an unexpected answer".into())),
                }
            }
            HubFrame::Failure(_) | HubFrame::Other => {}
        }
        Ok(())
    }

    fn start(&mut self, now: parlor_model::Position, report: &mut (dyn FnMut(BridgeNotice) + Send)) {
        let Bridge { to_file, state, disk, options, has_followed, .. } = &mut *self.bridge;
        let start = to_file.start(now, options.history);
        match start {
            RoomStart::Resumed => report(BridgeNotice::Connected),
            RoomStart::First(from) | RoomStart::HistoryReplaced(from) => {
                state.position = Some(from);
                disk.save_now();
                self.saves_start = true;
            }
        }
        if let RoomStart::HistoryReplaced(_) = start {
            // Sequence numbers of another history cannot be compared.
            state.continuations = Default::default();
            report(BridgeNotice::HistoryReplaced);
        }
        (*has_followed, self.follows) = (true, true);
    }

    fn set_members(&mut self, members: &[RoomMember]) {
        self.bridge.members = Members::new(members);
        self.bridge.follower.set_known_names(self.bridge.members.aliases());
    }

    /// Waits for the answers to the lines that were sent.
    async fn drain(&mut self, report: &mut (dyn FnMut(BridgeNotice) + Send)) {
        while self.bridge.to_room.has_unanswered() {
            let Ok(frame) = self.client.next().await else { return };
            if self.handle(frame, report).is_err() {
                return;
            }
            self.bridge.to_room.settle(&mut self.bridge.state);
        }
    }
}

async fn file_changed(follower: &mut Follower, more: bool, wake_at: Option<Instant>) {
    if !more {
        follower.changed(wake_at).await;
    }
}
