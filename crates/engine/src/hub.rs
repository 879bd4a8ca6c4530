//! `Hub`: the engine's API for protocol adapters. `submit` and `execute` run commands, `read` answers
//! queries, `connect` and `attach` subscribe connections to live events.
//!
//! Owns: start-up and shutdown of the writer and log-tailer threads, the concurrency limits for reads, and
//! the answers to queries. Permissions are in `authorise.rs`, rules in `decide/`, live delivery in `fanout/`.

use crate::cache::Cache;
use crate::commands::{self, Job, PendingReceipt, QueuedJob};
use crate::fanout::{Fanout, JoinResult, ReceivesEvents, RoomRoots, Subscriber, SubscriberId};
use crate::health::{Health, HealthCell};
use crate::log_tailer::LogTailer;
use crate::metrics::{HubMetrics, WriterMetrics};
use crate::permission::{AuthContext, CallerContext, PermitError};
use crate::pipeline::Writer;
use crate::ports::{Bus, Clock, Head, IdGenerator, OpenApprovalsOf, Reader, Snapshot, Store, Triage};
use crate::queries;
pub(crate) use crate::queries::answer_budget::count_within_budget;
use crate::read_view::ReadView;
use crate::runs::{SchedulerHandle, driver::run_loop, idle_prompts};
use crate::{Fault, Limits};
use bytes::Bytes;
use parlor_model::command::AppendNoop;
use parlor_model::command::{DisconnectGateway, ExpireApproval};
use parlor_model::query::{MayFollowRoom, MayListenToMailbox};
use parlor_model::{
    AgentId, ApiKey, ApprovalId, BlobDigest, Caller, Chunk, EntityKind, Epoch, Event, Gateway, HubSettings,
    LoggedEvent, Mailbox, Position, Refusal, RoomId, Scope, SecondFactor, SecretHash, Seq, Signal, Time,
    User, UserId,
};
use std::any::Any;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Weak};
use tokio::sync::{Notify, Semaphore, mpsc};
use tracing::Instrument;

#[derive(Clone)]
pub struct Hub {
    inner: Arc<Inner>,
}

struct Inner {
    bus: Arc<dyn Bus>,
    queue: parking_lot::Mutex<Option<mpsc::Sender<Box<dyn QueuedJob>>>>,
    reader: Arc<dyn Reader>,
    fanout: Arc<Fanout>,
    clock: Arc<dyn Clock>,
    limits: Limits,
    epoch: Epoch,
    health: Arc<HealthCell>,
    tally: Arc<WriterMetrics>,
    released: Arc<Notify>,
    services: Arc<Notify>,
    /// Limits concurrent reads, which run on blocking threads; further reads wait for a permit.
    reads: Arc<Semaphore>,
    searches: Arc<Semaphore>,
    threads: parking_lot::Mutex<Vec<std::thread::JoinHandle<()>>>,
    stop: Arc<AtomicBool>,
    scheduler: Arc<SchedulerHandle>,
    triage: Arc<dyn Triage>,
    ids: Arc<dyn IdGenerator>,
}

/// A reference to the hub that does not keep it alive.
pub struct WeakHub(Weak<Inner>);

impl WeakHub {
    pub fn upgrade(&self) -> Option<Hub> {
        self.0.upgrade().map(|inner| Hub { inner })
    }
}

/// Ports and limits that a hub is built from.
pub struct HubDependencies {
    pub store: Box<dyn Store>,
    pub reader: Arc<dyn Reader>,
    pub bus: Arc<dyn Bus>,
    pub clock: Arc<dyn Clock>,
    pub ids: Arc<dyn IdGenerator>,
    pub triage: Arc<dyn Triage>,
    pub limits: Limits,
}

impl Hub {
    /// Starts the writer and log-tailer threads. Must be called within a tokio runtime.
    pub fn open(parts: HubDependencies) -> Result<Self, Fault> {
        let HubDependencies { store, reader, bus, clock, ids, triage, limits } = parts;
        let health = Arc::new(HealthCell::default());
        let mut writer =
            Writer::new(store, bus.clone(), clock.clone(), ids.clone(), health.clone(), limits.clone())?;
        let expired_approvals = expire_open_approvals(&mut writer, &*reader)?;
        mark_gateways_disconnected(&mut writer, &*reader)?;
        // Takes a new `Seq`, so that the ordinals of signals sent before this start stay lower than all
        // ordinals sent from now on.
        run_startup_commands(&mut writer, vec![AppendNoop]);
        let (Head { epoch, seq, .. }, writer_metrics) = (writer.head(), writer.tally());
        let (released, services) = (writer.released(), writer.services());
        let fanout = Arc::new(Fanout::new(epoch, seq, &limits, clock.clone()));
        let (queue, queued_commands) = mpsc::channel(limits.max_queued_commands);
        let stop = Arc::new(AtomicBool::new(false));
        let scheduler_handle = Arc::new(SchedulerHandle::default());
        reader.with(&mut |snapshot| {
            scheduler_handle.lock().count_queues_from(seq);
            snapshot.rooms_with_root()?.iter().for_each(|room| fanout.roots().apply_room(room));
            for run in snapshot.open_runs()? {
                fanout.apply_run(&run);
                let trigger =
                    run.trigger.as_ref().map(|trigger| snapshot.message(trigger)).transpose()?.flatten();
                scheduler_handle.restore(run, trigger);
            }
            for approval in &expired_approvals {
                scheduler_handle.close_question(snapshot.approval(approval)?);
            }
            Ok(())
        })?;
        let log_tailer = LogTailer {
            bus: bus.clone(),
            reader: reader.clone(),
            fanout: fanout.clone(),
            scheduler: scheduler_handle.clone(),
            stop: stop.clone(),
        };
        let timer_runtime = tokio::runtime::Builder::new_current_thread().enable_time().build();
        let timer_runtime = timer_runtime
            .map_err(|error| Fault::new("starting a thread", crate::fault::Severity::Permanent, error))?;
        let threads = vec![
            spawn("parlor-writer", move || writer.run(queued_commands, &timer_runtime))?,
            spawn("parlor-follower", move || log_tailer.run())?,
        ];
        let (reads, searches) = (limits.reads, limits.searches);
        let inner = Inner {
            bus,
            queue: parking_lot::Mutex::new(Some(queue)),
            reader,
            fanout,
            clock,
            limits,
            epoch,
            health,
            tally: writer_metrics,
            released,
            services,
            reads: Arc::new(Semaphore::new(reads)),
            searches: Arc::new(Semaphore::new(searches)),
            threads: parking_lot::Mutex::new(threads),
            stop,
            scheduler: scheduler_handle,
            triage,
            ids,
        };
        let hub = Self { inner: Arc::new(inner) };
        tokio::spawn(run_loop(WeakHub(Arc::downgrade(&hub.inner))));
        tokio::spawn(idle_prompts::run_loop(WeakHub(Arc::downgrade(&hub.inner))));
        Ok(hub)
    }

    pub(crate) fn scheduler(&self) -> &SchedulerHandle {
        &self.inner.scheduler
    }

    pub(crate) fn shared_scheduler(&self) -> Arc<SchedulerHandle> {
        self.inner.scheduler.clone()
    }

    pub(crate) fn triage_port(&self) -> &dyn Triage {
        &*self.inner.triage
    }

    pub(crate) fn new_id(&self) -> Box<str> {
        self.inner.ids.next().into()
    }

    pub(crate) fn fanout(&self) -> &Fanout {
        &self.inner.fanout
    }

    pub(crate) fn shared_fanout(&self) -> Arc<Fanout> {
        self.inner.fanout.clone()
    }

    pub(crate) fn limits(&self) -> &Limits {
        &self.inner.limits
    }

    /// `Seq` of the newest committed event.
    pub(crate) fn committed(&self) -> Seq {
        Seq(self.inner.tally.head.load(Ordering::Relaxed))
    }

    pub(crate) fn is_closing(&self) -> bool {
        self.inner.stop.load(Ordering::Acquire)
    }

    /// Validates a command and queues it for the writer. Commands that one caller submits one after the other
    /// are decided in that order. Waits only for space in the queue; the result is the value of the returned
    /// future.
    pub async fn submit<C: commands::Command>(
        &self,
        caller: &Caller,
        command: C,
    ) -> PendingReceipt<C::Receipt> {
        if let Err(refusal) = command.validate(&self.inner.limits) {
            return PendingReceipt::refused(refusal);
        }
        let (job, receipt) = Job::new(caller.clone(), command);
        if self.enqueue(Box::new(job)).await {
            receipt
        } else {
            PendingReceipt::refused(Refusal::Unavailable)
        }
    }

    /// Waits for space in the queue. Returns whether the job was queued.
    async fn enqueue(&self, job: Box<dyn QueuedJob>) -> bool {
        let queue = self.inner.queue.lock().clone();
        match queue {
            Some(queue) => queue.send(job).await.is_ok(),
            None => false,
        }
    }

    pub async fn execute<C: commands::Command>(
        &self,
        caller: &Caller,
        command: C,
    ) -> Result<C::Receipt, Refusal> {
        async { self.submit(caller, command).await.await }.instrument(tracing::debug_span!("command")).await
    }

    pub async fn read<Q: queries::Query>(&self, caller: &Caller, query: Q) -> Result<Q::Answer, Refusal> {
        query.validate(&self.inner.limits)?;
        let search_permit = match query.is_search() {
            true => Some(self.inner.searches.clone().acquire_owned().await),
            false => None,
        };
        let caller = caller.clone();
        self.read_snapshot(move |hub, snapshot| {
            let _held = &search_permit;
            match hub.permitted(&caller, &query, snapshot)? {
                Ok(facts) => query.answer(facts, snapshot, &hub.inner.limits).map(Ok),
                Err(refusal) => Ok(Err(refusal)),
            }
        })
        .await?
    }

    /// Whether the caller may run this query, without computing the answer.
    pub async fn may<Q: queries::Query>(&self, caller: &Caller, query: Q) -> Result<(), Refusal> {
        let caller = caller.clone();
        self.read_snapshot(move |hub, snapshot| Ok(hub.permitted(&caller, &query, snapshot)?.map(drop)))
            .await?
    }

    /// Loads the facts of a query, or refuses it.
    pub(crate) fn permitted<Q: queries::Query>(
        &self,
        caller: &Caller,
        query: &Q,
        snapshot: &mut dyn Snapshot,
    ) -> Result<Result<Q::Facts, Refusal>, Fault> {
        self.with_view(caller, snapshot, |caller, view| PermitError::split(query.permit(caller, view)))
    }

    /// Reads through a view of the snapshot, with a cache that lives as long as this read.
    pub(crate) fn with_view<T>(
        &self,
        caller: &Caller,
        snapshot: &mut dyn Snapshot,
        read: impl FnOnce(&CallerContext, &mut ReadView<'_>) -> Result<T, Fault>,
    ) -> Result<T, Fault> {
        let (head, limits) = (Position { epoch: self.inner.epoch, seq: Seq(0) }, &self.inner.limits);
        let mut cache = Cache::new(limits.cache_entries);
        let mut view = ReadView::new(self.now(), head, limits, snapshot, &mut cache);
        let caller = view.caller_context(caller)?;
        read(&caller, &mut view)
    }

    /// Account with this username, including its password hash: for checking credentials only.
    pub async fn account(&self, username: &str) -> Result<Option<User>, Refusal> {
        let username: Box<str> = username.into();
        self.read_snapshot(move |_, snapshot| snapshot.user_named(&username)).await
    }

    /// An account and its confirmed or offered second factor: for checking credentials only.
    pub async fn second_factor(
        &self,
        user: &UserId,
    ) -> Result<Option<(User, Option<SecondFactor>)>, Refusal> {
        let id = user.clone();
        self.read_snapshot(move |_, snapshot| {
            let Some(user) = snapshot.user(&id)? else { return Ok(None) };
            Ok(Some((user, snapshot.second_factor(&id)?)))
        })
        .await
    }

    /// Settings that admins changed at run time; unset fields keep their configured values.
    pub async fn settings(&self) -> Result<HubSettings, Refusal> {
        self.read_snapshot(|_, snapshot| snapshot.settings()).await
    }

    /// API key with this secret: for checking credentials only.
    pub async fn key(&self, secret: SecretHash) -> Result<Option<ApiKey>, Refusal> {
        self.read_snapshot(move |_, snapshot| snapshot.key_with(&secret)).await
    }

    /// Whether an upload refers to this content. Blocks, and bypasses the limit on concurrent reads: only for
    /// the garbage collector of blobs.
    pub(crate) fn refers_to(&self, digest: &BlobDigest) -> Result<bool, Fault> {
        let mut refers = true;
        self.inner.reader.with(&mut |snapshot| {
            refers = snapshot.refers_to(digest)?;
            Ok(())
        })?;
        Ok(refers)
    }

    /// Waits until a built-in agent service is created or changed. Supports a single waiter.
    pub async fn services_changed(&self) {
        self.inner.services.notified().await;
    }

    /// Waits until blobs may have become unreferenced.
    pub(crate) async fn files_released(&self) {
        self.inner.released.notified().await;
    }

    /// The caller's current auth context, or `NotSignedIn` if its account, sign-in or key no longer exists.
    pub async fn auth_context(&self, caller: &Caller) -> Result<AuthContext, Refusal> {
        let caller = caller.clone();
        let found = self
            .read_snapshot(move |hub, snapshot| {
                hub.with_view(&caller, snapshot, |caller, _| Ok(caller.auth.clone()))
            })
            .await?;
        found.as_deref().cloned().ok_or(Refusal::NotSignedIn)
    }

    /// Whether the hub has no admin account yet.
    pub async fn needs_setup(&self) -> Result<bool, Refusal> {
        self.read_snapshot(|_, snapshot| Ok(snapshot.admins()? == 0)).await
    }

    /// Waits until the first admin account exists.
    pub async fn wait_for_first_admin(&self) -> Result<(), Refusal> {
        let mut published = self.inner.fanout.watch();
        while self.needs_setup().await? {
            // The fan-out, which owns the sender, lives as long as this hub, so waiting cannot fail.
            let _ = published.changed().await;
        }
        Ok(())
    }

    /// Registers an authenticated connection and queues its protocol's greeting. From then on the connection
    /// is closed as soon as its sign-in ends. `count` may still reject the caller, for example at a
    /// connection limit.
    pub async fn connect<T: Send + 'static>(
        &self,
        caller: &Caller,
        subscriber: Subscriber,
        greeting: Bytes,
        count: impl FnOnce(&AuthContext) -> Result<T, Refusal> + Send + 'static,
    ) -> Result<(AuthContext, T), Refusal> {
        let (caller, hub, user) = (caller.clone(), self.clone(), subscriber.user.clone());
        let (admission, first) = blocking(move || {
            hub.inner.fanout.connect(subscriber, greeting, || {
                let mut auth = None;
                hub.inner.reader.with(&mut |snapshot| {
                    auth = hub.with_view(&caller, snapshot, |caller, _| Ok(caller.auth.clone()))?;
                    Ok(())
                })?;
                let Some(auth) = auth.as_deref().cloned() else { return Ok(Err(Refusal::NotSignedIn)) };
                let hears = ReceivesEvents(auth.has(Scope::Read));
                Ok(count(&auth).map(|counted| ((auth, counted), hears)))
            })
        })
        .await??;
        if first {
            // If this read fails, only the presence signal is lost; the connection stays registered.
            let _ = self.present(&user, true).await;
        }
        Ok(admission)
    }

    /// Removes a connection. Returns whether its user is no longer online.
    pub fn disconnect(&self, viewer: SubscriberId) -> bool {
        self.inner.fanout.disconnect(viewer)
    }

    /// Publishes that a user is offline, unless the user has reconnected.
    pub async fn publish_absence(&self, user: &UserId) -> Result<(), Refusal> {
        if self.inner.fanout.is_present(user) {
            return Ok(());
        }
        self.present(user, false).await
    }

    /// Publishes a user's presence to all users who share a room with them, and to their own connections.
    async fn present(&self, user: &UserId, online: bool) -> Result<(), Refusal> {
        let id = user.clone();
        let found = self.read_snapshot(move |_, snapshot| Ok((snapshot.user(&id)?, snapshot.peers(&id)?)));
        let (Some(person), mut people) = found.await? else { return Ok(()) };
        people.push(user.clone());
        let signal = Signal::Presence { user: user.clone(), username: person.username, online };
        self.inner.fanout.signal_people(&people, &signal);
        Ok(())
    }

    /// Subscribes a connection to a room. With `since`, the events after that position are sent first,
    /// without gap or duplicate. `welcome` encodes the reached position into a frame that is sent between the
    /// replayed and the live events.
    pub async fn attach(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        room: &RoomId,
        since: Option<Position>,
        welcome: impl Fn(Position) -> Option<Bytes> + Clone + Send + 'static,
    ) -> Result<Position, Refusal> {
        self.may(caller, MayFollowRoom { room: room.clone() }).await?;
        let mut from = since.map(|position| position.seq);
        if let Some(position) = since {
            self.check_position(position).await?;
            // The replay covers everything after the position, so the connection must not receive live events
            // at the same time. Without a position, an existing subscription continues: events missed during
            // an interruption could not be replayed.
            self.inner.fanout.leave(subscriber.id, room);
        }
        loop {
            match self.try_join(caller, subscriber, room, from, welcome.clone()).await? {
                JoinResult::Live { from } => return Ok(from),
                JoinResult::NotPublishedYet => {
                    self.inner.fanout.wait_until_published(from.unwrap_or_default()).await
                }
                JoinResult::NeedsReplay => {
                    let after = from.unwrap_or_default();
                    from = Some(self.catch_up(caller, subscriber, room, after).await?);
                }
            }
        }
    }

    pub fn detach(&self, viewer: SubscriberId, room: &RoomId) {
        self.inner.fanout.leave(viewer, room);
    }

    pub fn is_attached(&self, viewer: SubscriberId, room: &RoomId) -> bool {
        self.inner.fanout.is_in(viewer, room)
    }

    /// Pushes new mail of an agent's mailbox to a connection.
    pub async fn listen(
        &self,
        caller: &Caller,
        viewer: SubscriberId,
        mailbox: Mailbox,
    ) -> Result<(), Refusal> {
        let query = MayListenToMailbox { agent: mailbox.agent.clone() };
        self.may(caller, query.clone()).await?;
        let (caller, hub) = (caller.clone(), self.clone());
        let listening =
            blocking(move || hub.inner.fanout.listen(viewer, mailbox, || hub.admitted(&caller, &query)))
                .await?;
        if listening { Ok(()) } else { Err(Refusal::NotFound(EntityKind::Agent)) }
    }

    /// Waits until all events up to `seq` have been published to their subscribers.
    pub async fn wait_until_published(&self, seq: Seq) {
        self.inner.fanout.wait_until_published(seq).await;
    }

    /// Publishes a typing signal to the other users in a room. Ignored unless the connection is subscribed to
    /// the room.
    pub fn typing(&self, subscriber: &Subscriber, username: &str, room: &RoomId) {
        if self.inner.fanout.is_in(subscriber.id, room) {
            let signal = Signal::Typing {
                room: room.clone(),
                user: subscriber.user.clone(),
                username: username.into(),
            };
            self.inner.fanout.signal_room(room, &signal, Some(&subscriber.user));
        }
    }

    pub fn next_subscriber_id(&self) -> SubscriberId {
        self.inner.fanout.next_subscriber_id()
    }

    pub fn health(&self) -> Health {
        let dead = self.inner.threads.lock().iter().any(std::thread::JoinHandle::is_finished);
        if dead { Health::Broken } else { self.inner.health.get() }
    }

    /// Snapshot of the hub's metrics.
    pub fn metrics(&self) -> HubMetrics {
        let Inner { tally: writer_metrics, limits, reads, reader, fanout, queue, .. } = &*self.inner;
        let free = queue.lock().as_ref().map_or(0, mpsc::Sender::capacity);
        HubMetrics {
            tally: writer_metrics.clone(),
            health: self.health(),
            waiting_commands: limits.max_queued_commands - free,
            most_waiting_commands: limits.max_queued_commands,
            reads: limits.reads - reads.available_permits(),
            most_reads: limits.reads,
            told: fanout.seen(),
            size: reader.size(),
        }
    }

    /// Tool calls in progress in the running runs of a room.
    pub fn tools_in_use(&self, room: &RoomId) -> Vec<(AgentId, Chunk)> {
        self.inner.fanout.tools_in_use(room)
    }

    /// Project roots of rooms, up to date with the published events.
    pub fn roots(&self) -> Arc<RoomRoots> {
        self.inner.fanout.roots().clone()
    }

    pub fn epoch(&self) -> Epoch {
        self.inner.epoch
    }

    pub fn now(&self) -> Time {
        self.inner.clock.now()
    }

    /// Closes every connection with a shutdown frame; commands that are already queued are still decided.
    pub fn disconnect_all(&self) {
        self.inner.fanout.shut_down();
    }

    /// Stops accepting commands, answers those already queued, then ends the writer and log-tailer threads.
    pub async fn close(&self) {
        let hub = self.clone();
        let _ = tokio::task::spawn_blocking(move || hub.close_blocking()).await;
    }

    /// Blocking form of [`Self::close`], for callers outside of a runtime.
    pub fn close_blocking(&self) {
        drop(self.inner.queue.lock().take());
        self.inner.stop.store(true, Ordering::Release);
        self.inner.scheduler.wake();
        self.inner.scheduler.idle.notify_one();
        // Wakes the log tailer, which checks `stop` after each batch.
        self.inner.bus.publish(Arc::new([]));
        let threads = std::mem::take(&mut *self.inner.threads.lock());
        threads.into_iter().for_each(|thread| drop(thread.join()));
    }

    async fn try_join(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        room: &RoomId,
        from: Option<Seq>,
        welcome: impl FnOnce(Position) -> Option<Bytes> + Send + 'static,
    ) -> Result<JoinResult, Refusal> {
        let (caller, hub, id, room) = (caller.clone(), self.clone(), subscriber.id, room.clone());

        blocking(move || {
            let query = MayFollowRoom { room: room.clone() };
            let admitted = || hub.admitted(&caller, &query);
            let joined = hub.inner.fanout.join(id, &room, from, admitted, welcome)?;
            Ok(joined.ok_or(Refusal::NotAMember { room }))
        })
        .await?
    }

    /// Sends one page of missed events from the store. Returns the `Seq` up to which the subscriber is caught
    /// up.
    async fn catch_up(
        &self,
        caller: &Caller,
        subscriber: &Subscriber,
        room: &RoomId,
        after: Seq,
    ) -> Result<Seq, Refusal> {
        const PAGE: usize = 200;
        let (caller, id) = (caller.clone(), room.clone());
        let (events, through) = self
            .read_snapshot(move |hub, snapshot| {
                let query = MayFollowRoom { room: id.clone() };
                if let Err(refusal) = hub.permitted(&caller, &query, snapshot)? {
                    return Ok(Err(refusal));
                }
                let events = snapshot.room_tail(&id, after, PAGE)?;
                let through = match events.last() {
                    Some(last) if events.len() == PAGE => last.seq,
                    _ => snapshot.head()?.seq,
                };
                Ok(Ok((events, through)))
            })
            .await??;
        let for_them = |logged_event: &&LoggedEvent| {
            logged_event.event.only_user().is_none_or(|person| *person == subscriber.user)
        };
        // Open approvals are sent when the subscription to the room begins.
        let is_replayed =
            |logged_event: &&LoggedEvent| !matches!(logged_event.event, Event::ApprovalAsked(_));
        for logged_event in events.iter().filter(for_them).filter(is_replayed) {
            if let Some(bytes) = subscriber.egress.event(logged_event, self.inner.epoch)
                && !subscriber.outbox.push_when_half_empty(bytes).await
            {
                return Err(Refusal::Unavailable);
            }
        }
        Ok(through)
    }

    pub(crate) async fn check_position(&self, position: Position) -> Result<(), Refusal> {
        let head = self.read_snapshot(|_, snapshot| snapshot.head()).await?;
        let known =
            position.epoch == head.epoch && position.seq >= head.trimmed_through && position.seq <= head.seq;
        if known {
            return Ok(());
        }
        Err(Refusal::Resync { now: Position { epoch: head.epoch, seq: head.seq } })
    }

    fn admitted<Q: queries::Query>(&self, caller: &Caller, query: &Q) -> Result<bool, Fault> {
        let mut admitted = false;
        self.inner.reader.with(&mut |snapshot| {
            admitted = self.permitted(caller, query, snapshot)?.is_ok();
            Ok(())
        })?;
        Ok(admitted)
    }

    /// Blocks, and bypasses the limit on concurrent reads: for callers that hold the fan-out's lock.
    pub(crate) fn with_snapshot(
        &self,
        read: &mut dyn FnMut(&mut dyn Snapshot) -> Result<(), Fault>,
    ) -> Result<(), Fault> {
        self.inner.reader.with(read)
    }

    pub(crate) async fn read_snapshot<T: Send + 'static>(
        &self,
        mut read: impl FnMut(&Hub, &mut dyn Snapshot) -> Result<T, Fault> + Send + 'static,
    ) -> Result<T, Refusal> {
        let permit = self.inner.reads.clone().acquire_owned().await.map_err(|_| Refusal::Unavailable)?;
        let (hub, traced) = (self.clone(), tracing::debug_span!("read"));
        blocking(move || {
            let _traced = traced.entered();
            // The closure holds the permit, not the caller's future: the thread stays busy even if the caller
            // stops waiting.
            let _held = permit;
            let mut found = None;
            hub.inner.reader.with(&mut |snapshot| {
                found = Some(read(&hub, snapshot)?);
                Ok(())
            })?;
            Ok(found.expect("`with` runs the closure before it returns `Ok`"))
        })
        .await
    }
}

/// Expires the approvals that the previous process left open: an approval does not survive a restart.
fn expire_open_approvals(writer: &mut Writer, reader: &dyn Reader) -> Result<Vec<ApprovalId>, Fault> {
    let mut open = Vec::new();
    reader.with(&mut |snapshot| {
        open =
            snapshot.open_approvals(OpenApprovalsOf::Everybodys)?.into_iter().map(|open| open.id).collect();
        Ok(())
    })?;
    let expire = |approval: &ApprovalId| ExpireApproval { approval: approval.clone() };
    run_startup_commands(writer, open.iter().map(expire).collect());
    Ok(open)
}

/// Marks gateways as disconnected that were connected when the previous process ended without doing so.
fn mark_gateways_disconnected(writer: &mut Writer, reader: &dyn Reader) -> Result<(), Fault> {
    let mut connected = Vec::new();
    reader.with(&mut |snapshot| {
        connected = snapshot.gateways(None)?;
        Ok(())
    })?;
    connected.retain(|gateway| gateway.disconnected_at.is_none());
    let disconnect = |gateway: Gateway| DisconnectGateway { gateway: gateway.id };
    run_startup_commands(writer, connected.into_iter().map(disconnect).collect());
    Ok(())
}

/// Runs commands as the operator before the hub accepts commands from other callers.
fn run_startup_commands<C: commands::Command>(writer: &mut Writer, commands: Vec<C>) {
    let queued = |command| Box::new(Job::new(Caller::OPERATOR, command).0) as Box<dyn QueuedJob>;
    if !commands.is_empty() {
        writer.process_batch(commands.into_iter().map(queued).collect());
    }
}

pub(crate) async fn blocking<T: Send + 'static>(
    work: impl FnOnce() -> Result<T, Fault> + Send + 'static,
) -> Result<T, Refusal> {
    let found = blocking_any(Box::new(|| work().map(|found| Box::new(found) as AnyResult))).await?;
    Ok(*found.downcast().expect("the closure boxes a value of type `T`"))
}

type AnyResult = Box<dyn Any + Send>;

/// Type-erased form of [`blocking`]: tokio monomorphises the task code for each type of closure it is given.
async fn blocking_any(
    work: Box<dyn FnOnce() -> Result<AnyResult, Fault> + Send>,
) -> Result<AnyResult, Refusal> {
    match tokio::task::spawn_blocking(work).await {
        Ok(Ok(found)) => Ok(found),
        Ok(Err(fault)) => {
            tracing::error!(%fault, "a read failed");
            Err(Refusal::Unavailable)
        }
        Err(_) => Err(Refusal::Unavailable),
    }
}

/// Starts a thread that uses the tracing dispatcher of the calling thread.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<std::thread::JoinHandle<()>, Fault> {
    let log = tracing::dispatcher::get_default(Clone::clone);
    let work = move || tracing::dispatcher::with_default(&log, work);
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map_err(|error| Fault::new("starting a thread", crate::fault::Severity::Permanent, error))
}
