//! Connections of the Ably protocol by id: open, lost and closed ones.
//!
//! Owns: the decision whether a connection may be resumed. Connection keys are signed, so after a restart of the hub
//! every earlier connection counts as lost at the start of the hub.

use super::STATE_TTL;
use crate::connection::frame;
use parking_lot::Mutex;
use parlor_engine::feed::Outbox;
use parlor_model::Time;
use parlor_wire::ably::codes::{self, ErrorInfo};
use parlor_wire::ably::serial::{self, ConnectionId};
use std::collections::HashMap;
use std::sync::Arc;

/// Number of ended connections after which the registry removes expired ones.
const PRUNE_AT: usize = 256;

pub struct Connections {
    hub_started: Time,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    by_id: HashMap<ConnectionId, Connection>,
    next_generation: u64,
    /// Number of connections that ended since expired connections were last removed.
    ended: usize,
}

enum Connection {
    Open {
        outbox: Arc<Outbox>,
        generation: u64,
    },
    Lost {
        at: Time,
    },
    /// Closed by its client, so that it cannot be resumed.
    Closed {
        at: Time,
    },
}

impl Connections {
    pub fn new(now: Time) -> Self {
        Self { hub_started: now, state: Mutex::default() }
    }

    /// Whether a connection whose key has been verified may be resumed.
    pub fn may_resume(&self, id: &ConnectionId, now: Time) -> Result<(), ErrorInfo> {
        let lost_at = match self.state.lock().by_id.get(id) {
            Some(Connection::Open { .. }) => return Ok(()),
            Some(Connection::Lost { at }) => Some(*at),
            Some(Connection::Closed { .. }) => {
                return Err(ErrorInfo::new(codes::CONNECTION_EXPIRED, "Connection was closed"));
            }
            None => None,
        };
        serial::may_resume(lost_at, self.hub_started, now, STATE_TTL)
    }

    /// Registers an open connection and returns its generation. An earlier socket of the same connection is closed
    /// without an error: its client has replaced it.
    pub fn begin(&self, id: &ConnectionId, outbox: Arc<Outbox>) -> u64 {
        let mut state = self.state.lock();
        state.next_generation += 1;
        let generation = state.next_generation;
        let superseded = state.by_id.insert(id.clone(), Connection::Open { outbox, generation });
        drop(state);
        if let Some(Connection::Open { outbox, .. }) = superseded {
            outbox.close(frame::close(1000, "Resumed by another connection"));
        }
        generation
    }

    /// Ends a connection unless a later socket has resumed it.
    pub fn end(&self, id: &ConnectionId, generation: u64, is_closed: bool, now: Time) {
        let mut state = self.state.lock();
        let is_own = matches!(state.by_id.get(id), Some(Connection::Open { generation: own, .. }) if *own == generation);
        if !is_own {
            return;
        }
        let ended = if is_closed { Connection::Closed { at: now } } else { Connection::Lost { at: now } };
        state.by_id.insert(id.clone(), ended);
        state.ended += 1;
        if state.ended >= PRUNE_AT {
            state.ended = 0;
            state.by_id.retain(|_, connection| match connection {
                Connection::Open { .. } => true,
                Connection::Lost { at } | Connection::Closed { at } => now <= at.plus(STATE_TTL),
            });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_engine::feed::OutboxLimits;

    fn at(seconds: i64) -> Time {
        Time(seconds * 1_000_000)
    }

    fn outbox() -> Arc<Outbox> {
        Arc::new(Outbox::new(OutboxLimits { bytes: 1000, buffers: 8 }))
    }

    fn code(result: Result<(), ErrorInfo>) -> Option<u32> {
        result.err().map(|error| error.code)
    }

    #[test]
    fn a_lost_connection_may_be_resumed_until_it_expires() {
        let (connections, id) = (Connections::new(at(0)), ConnectionId::from_random([1; 12]));
        let generation = connections.begin(&id, outbox());
        assert_eq!(code(connections.may_resume(&id, at(900))), None, "it is open");
        connections.end(&id, generation, false, at(1000));
        assert_eq!(code(connections.may_resume(&id, at(1120))), None);
        assert_eq!(code(connections.may_resume(&id, at(1121))), Some(codes::CONNECTION_EXPIRED));
    }

    #[test]
    fn a_closed_connection_cannot_be_resumed() {
        let (connections, id) = (Connections::new(at(0)), ConnectionId::from_random([1; 12]));
        let generation = connections.begin(&id, outbox());
        connections.end(&id, generation, true, at(10));
        assert_eq!(code(connections.may_resume(&id, at(11))), Some(codes::CONNECTION_EXPIRED));
    }

    #[test]
    fn after_a_restart_every_connection_counts_as_lost_at_the_start() {
        let (connections, id) = (Connections::new(at(500)), ConnectionId::from_random([1; 12]));
        assert_eq!(code(connections.may_resume(&id, at(620))), None);
        assert_eq!(code(connections.may_resume(&id, at(621))), Some(codes::CONNECTION_EXPIRED));
    }

    #[test]
    fn a_resumed_connection_closes_its_earlier_socket_and_ignores_its_end() {
        let (connections, id) = (Connections::new(at(0)), ConnectionId::from_random([1; 12]));
        let (first, second) = (outbox(), outbox());
        let generation = connections.begin(&id, first.clone());
        connections.begin(&id, second.clone());
        assert!(first.is_closed() && !second.is_closed());
        connections.end(&id, generation, true, at(10));
        assert_eq!(code(connections.may_resume(&id, at(10_000))), None, "the second socket is open");
    }
}
