//! What every store must do, call by call.

mod accounts;
mod agents;
mod approvals;
mod audit;
mod blobs;
mod callers;
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
use parlor_engine::decide::{Change, Effects};
use parlor_engine::ports::{Reader, Snapshot, Store};
use parlor_model::{Epoch, Event, LoggedEvent, Receipt, Seq, Time};
use std::sync::Arc;

/// A store under test, and what the writer would know about it.
pub struct Ports {
    pub store: Box<dyn Store>,
    pub reader: Arc<dyn Reader>,
    home: Box<dyn StoreFixture>,
    seq: Seq,
}

/// Runs a test on a new store of each kind; a failure prints the last name.
pub fn each(test: impl Fn(&mut Ports)) {
    for kind in kinds() {
        println!("store: {}", kind.name);
        let home = (kind.make)(Epoch(0xa11ce));
        let (store, reader) = home.open();
        test(&mut Ports { store, reader, home, seq: Seq(0) });
    }
}

impl Ports {
    pub fn commit(&mut self, changes: Vec<Change>, events: Vec<Event>) {
        let plan = self.plan(changes, events);
        let mut transaction = self.store.begin().unwrap();
        transaction.apply(&plan).unwrap();
        transaction.commit().unwrap();
    }

    pub fn change(&mut self, changes: Vec<Change>) {
        self.commit(changes, Vec::new());
    }

    /// Puts a message in with its event, as a plan does. Its `Seq` must be the next one.
    pub fn post(&mut self, message: parlor_model::Message) {
        assert_eq!(message.seq, self.seq.next(), "a message is told at its own place");
        let message = Arc::new(message);
        let told = Event::MessagePosted { message: message.clone(), deliveries: Arc::new([]) };
        self.commit(vec![Change::PutMessage(message)], vec![told]);
    }

    /// Takes the next places in the log, one for each event, a millisecond apart.
    pub fn plan(&mut self, changes: Vec<Change>, events: Vec<Event>) -> Effects {
        let events = events.into_iter().map(|event| {
            self.seq = self.seq.next();
            LoggedEvent { seq: self.seq, at: Time(self.seq.0 as i64 * 1000), event }
        });
        Effects { changes, events: events.collect(), routes: Vec::new(), receipt: Receipt::Done }
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
        // The old handles must be gone before the new ones are made.
        let nothing = parlor_backends::memory::MemoryStore::open(Epoch(0));
        (self.store, self.reader) = nothing;
        (self.store, self.reader) = self.home.open();
    }
}
