//! A whole hub on a store, with time and ids in the test's hands.

use crate::stores::StoreFixture;
use parking_lot::Mutex;
use parlor_engine::hub::{Hub, HubDependencies};
use parlor_engine::ports::{Bus, BusPoll, Clock, IdGenerator, Reader, Snapshot};
use parlor_engine::{Fault, Limits};
use parlor_model::{LoggedEvent, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

pub struct TestHub {
    /// `None` only while it restarts.
    running: Option<(Hub, Arc<dyn Reader>)>,
    pub clock: Arc<SetClock>,
    ids: Arc<CountedIds>,
    gazette: Arc<Gazette>,
    home: Box<dyn StoreFixture>,
    limits: Limits,
}

impl TestHub {
    /// Must be called within a tokio runtime.
    pub fn open(home: Box<dyn StoreFixture>, now: Time) -> Self {
        Self::with_limits(home, now, Limits::default())
    }

    /// Must be called within a tokio runtime.
    pub fn with_limits(home: Box<dyn StoreFixture>, now: Time, limits: Limits) -> Self {
        let clock = Arc::new(SetClock(AtomicI64::new(now.0)));
        let (ids, gazette) = (Arc::new(CountedIds::default()), Arc::new(Gazette::default()));
        let running = Some(start(&*home, &clock, &ids, &gazette, &limits));
        Self { running, clock, ids, gazette, home, limits }
    }

    pub fn hub(&self) -> &Hub {
        &self.running.as_ref().expect("runs between restarts").0
    }

    /// Ends the hub and starts it anew on what the store kept.
    pub async fn restart(&mut self) {
        self.close().await;
        self.running = Some(start(&*self.home, &self.clock, &self.ids, &self.gazette, &self.limits));
    }

    pub async fn close(&mut self) {
        if let Some((hub, reader)) = self.running.take() {
            hub.close().await;
            drop((hub, reader));
        }
    }

    /// What was announced since the last time.
    pub fn news(&self) -> Vec<LoggedEvent> {
        std::mem::take(&mut self.gazette.0.lock())
    }

    pub fn read<T>(&self, mut read: impl FnMut(&mut dyn Snapshot) -> Result<T, Fault>) -> T {
        let mut found = None;
        let (_, reader) = self.running.as_ref().expect("runs between restarts");
        reader
            .with(&mut |snapshot| {
                found = Some(read(snapshot)?);
                Ok(())
            })
            .unwrap();
        found.unwrap()
    }
}

fn start(
    home: &dyn StoreFixture,
    clock: &Arc<SetClock>,
    ids: &Arc<CountedIds>,
    gazette: &Arc<Gazette>,
    limits: &Limits,
) -> (Hub, Arc<dyn Reader>) {
    let (store, reader) = home.open();
    let parts = HubDependencies {
        store,
        reader: reader.clone(),
        bus: gazette.clone(),
        triage: Arc::new(parlor_engine::runs::RuleBasedTriage),
        clock: clock.clone(),
        ids: ids.clone(),
        limits: limits.clone(),
    };
    (Hub::open(parts).unwrap(), reader)
}

/// Stands still until it is set.
pub struct SetClock(pub AtomicI64);

impl SetClock {
    pub fn set(&self, now: Time) {
        self.0.store(now.0, Ordering::SeqCst);
    }
}

impl Clock for SetClock {
    fn now(&self) -> Time {
        Time(self.0.load(Ordering::SeqCst))
    }
}

/// The same ids in the same order for every hub that decides the same commands.
#[derive(Default)]
struct CountedIds(AtomicU64);

impl IdGenerator for CountedIds {
    fn next(&self) -> String {
        // Not in the order in which they are made: nothing may rest on ids that happen to ascend.
        let count = self.0.fetch_add(1, Ordering::SeqCst);
        format!("{:02x}-{count}", (count * 151) % 256)
    }
}

/// Keeps the news for the test; nobody is connected, so the follower may rest.
#[derive(Default)]
struct Gazette(Mutex<Vec<LoggedEvent>>);

impl Bus for Gazette {
    fn publish(&self, news: Arc<[LoggedEvent]>) {
        self.0.lock().extend(news.iter().cloned());
    }

    fn next(&self) -> BusPoll {
        BusPoll::Closed
    }
}
