//! A whole hub on a store, with a clock and an id generator controlled by the test.

use crate::stores::StoreFixture;
use parking_lot::Mutex;
use parlor_engine::hub::{Hub, HubDependencies};
use parlor_engine::ports::{Bus, BusPoll, Clock, IdGenerator, Reader, Snapshot};
use parlor_engine::{Fault, Limits};
use parlor_model::{LoggedEvent, Time};
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, AtomicU64, Ordering};

pub struct TestHub {
    /// `None` only during a restart.
    running: Option<(Hub, Arc<dyn Reader>)>,
    pub clock: Arc<SetClock>,
    ids: Arc<CountedIds>,
    bus: Arc<RecordingBus>,
    fixture: Box<dyn StoreFixture>,
    limits: Limits,
}

impl TestHub {
    /// Must be called within a tokio runtime.
    pub fn open(fixture: Box<dyn StoreFixture>, now: Time) -> Self {
        Self::with_limits(fixture, now, Limits::default())
    }

    /// Must be called within a tokio runtime.
    pub fn with_limits(fixture: Box<dyn StoreFixture>, now: Time, limits: Limits) -> Self {
        let clock = Arc::new(SetClock(AtomicI64::new(now.0)));
        let (ids, bus) = (Arc::new(CountedIds::default()), Arc::new(RecordingBus::default()));
        let running = Some(start(&*fixture, &clock, &ids, &bus, &limits));
        Self { running, clock, ids, bus, fixture, limits }
    }

    pub fn hub(&self) -> &Hub {
        &self.running.as_ref().expect("the hub runs except during a restart").0
    }

    /// Stops the hub and starts it again on the same store.
    pub async fn restart(&mut self) {
        self.close().await;
        self.running = Some(start(&*self.fixture, &self.clock, &self.ids, &self.bus, &self.limits));
    }

    pub async fn close(&mut self) {
        if let Some((hub, reader)) = self.running.take() {
            hub.close().await;
            drop((hub, reader));
        }
    }

    /// Takes the events published since the last call.
    pub fn published(&self) -> Vec<LoggedEvent> {
        std::mem::take(&mut self.bus.0.lock())
    }

    pub fn read<T>(&self, mut read: impl FnMut(&mut dyn Snapshot) -> Result<T, Fault>) -> T {
        let mut found = None;
        let (_, reader) = self.running.as_ref().expect("the hub runs except during a restart");
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
    fixture: &dyn StoreFixture,
    clock: &Arc<SetClock>,
    ids: &Arc<CountedIds>,
    bus: &Arc<RecordingBus>,
    limits: &Limits,
) -> (Hub, Arc<dyn Reader>) {
    let (store, reader) = fixture.open();
    let dependencies = HubDependencies {
        store,
        reader: reader.clone(),
        bus: bus.clone(),
        triage: Arc::new(parlor_engine::runs::RuleBasedTriage),
        clock: clock.clone(),
        ids: ids.clone(),
        limits: limits.clone(),
    };
    (Hub::open(dependencies).unwrap(), reader)
}

/// Clock that only moves when the test sets it.
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

/// Deterministic ids: hubs that decide the same commands generate the same ids.
#[derive(Default)]
struct CountedIds(AtomicU64);

impl IdGenerator for CountedIds {
    fn next(&self) -> String {
        // Ids do not ascend, so that no test passes by accident because ids sort in order of creation.
        let count = self.0.fetch_add(1, Ordering::SeqCst);
        format!("{:02x}-{count}", (count * 151) % 256)
    }
}

/// Bus that records published events for the test. No client is connected, so the log tailer gets `Closed`.
#[derive(Default)]
struct RecordingBus(Mutex<Vec<LoggedEvent>>);

impl Bus for RecordingBus {
    fn publish(&self, batch: Arc<[LoggedEvent]>) {
        self.0.lock().extend(batch.iter().cloned());
    }

    fn next(&self) -> BusPoll {
        BusPoll::Closed
    }
}
