//! Contract tests: each test runs on every store and checks the ports call by call.

mod accounts;
mod agents;
mod approvals;
mod audit;
mod automatic;
mod blobs;
mod cache;
mod callers;
mod conversations;
mod dead_letters;
mod invitations;
mod leases;
mod log;
mod mail;
mod marks;
mod messages;
mod news;
mod reach;
mod rooms;
mod routers;
mod search;
mod second_factor;
mod services;
mod tasks;
mod transactions;
mod trimming;
mod turns;
mod uploads;

use crate::stores::{StoreFixture, kinds};
use parlor_engine::changes::{Change, MessageChange};
use parlor_engine::effects::Effects;
use parlor_engine::ports::{Reader, Snapshot, Store};
use parlor_model::{Epoch, Event, LoggedEvent, Seq, Time};
use std::sync::Arc;

/// A store under test, with the log position that the writer would track.
pub struct Ports {
    pub store: Box<dyn Store>,
    pub reader: Arc<dyn Reader>,
    fixture: Box<dyn StoreFixture>,
    seq: Seq,
}

/// Runs a test on a new store of each kind. The name printed last before a failure is the failing store.
pub fn each(test: impl Fn(&mut Ports)) {
    for kind in kinds() {
        println!("store: {}", kind.name);
        let fixture = (kind.make)(Epoch(0xa11ce));
        let (store, reader) = fixture.open();
        test(&mut Ports { store, reader, fixture, seq: Seq(0) });
    }
}

impl Ports {
    pub fn commit(&mut self, changes: Vec<Change>, events: Vec<Event>) {
        let effects = self.effects(changes, events);
        let mut transaction = self.store.begin().unwrap();
        transaction.apply(&effects).unwrap();
        transaction.commit().unwrap();
    }

    pub fn change(&mut self, changes: Vec<Change>) {
        self.commit(changes, Vec::new());
    }

    /// Stores a message and logs its event, as a decision does. Its `Seq` must be the next one.
    pub fn post(&mut self, message: parlor_model::Message) {
        assert_eq!(message.seq, self.seq.next(), "a message has the `Seq` of its event");
        let message = Arc::new(message);
        let event = Event::MessagePosted { message: message.clone(), deliveries: Arc::new([]) };
        self.commit(vec![Change::Message(MessageChange::PutMessage(message))], vec![event]);
    }

    /// Builds the effects of a decision. Each event gets the next `Seq`; event times are a millisecond apart.
    pub fn effects(&mut self, changes: Vec<Change>, events: Vec<Event>) -> Effects {
        let events = events.into_iter().map(|event| {
            self.seq = self.seq.next();
            LoggedEvent { seq: self.seq, at: Time(self.seq.0 as i64 * 1000), event }
        });
        Effects { changes, events: events.collect(), ..Effects::default() }
    }

    pub fn next_seq(&self) -> u64 {
        self.seq.0 + 1
    }

    pub fn read<T>(&self, mut read: impl FnMut(&mut dyn Snapshot) -> Result<T, parlor_engine::Fault>) -> T {
        let mut found = None;
        self.reader
            .with(&mut |snapshot| {
                found = Some(read(snapshot)?);
                Ok(())
            })
            .unwrap();
        found.unwrap()
    }

    pub fn tail(&self) -> Vec<LoggedEvent> {
        self.read(|s| s.tail(Seq(0), usize::MAX))
    }

    pub fn events(&self) -> Vec<Event> {
        self.tail().into_iter().map(|logged_event| logged_event.event).collect()
    }

    pub fn restart(self: &mut Ports) {
        // The old handles must be dropped before the new ones are opened.
        let placeholder = parlor_testkit::stores::MemoryStore::open(Epoch(0));
        (self.store, self.reader) = placeholder;
        (self.store, self.reader) = self.fixture.open();
    }
}
