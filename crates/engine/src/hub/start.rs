//! Start of a hub: restores the state of the previous process, then starts the writer and log-tailer threads.

use super::{Hub, HubDependencies, Inner, WeakHub};
use crate::Fault;
use crate::commands::{self, Job, QueuedJob};
use crate::feed::{Fanout, LogTailer, Names, merged_replies, occupants, presence};
use crate::health::HealthCell;
use crate::pipeline::Writer;
use crate::ports::{Head, OpenApprovalsOf, Reader};
use crate::runs::{SchedulerHandle, driver::run_loop, idle_prompts};
use crate::tasks::Tasks;
use crate::turns::TurnsHandle;
use crate::turns::driver::{self, MAX_CONCURRENT_TRIAGES};
use parlor_model::command::{AppendNoop, DisconnectGateway, ExpireApproval, FinishRun};
use parlor_model::{ApprovalId, Caller, Gateway, Run, RunOutcome};
use std::sync::Arc;
use std::sync::atomic::AtomicBool;
use tokio::sync::{Semaphore, mpsc};

impl Hub {
    /// Starts the writer and log-tailer threads. Must be called within a tokio runtime.
    pub fn open(parts: HubDependencies) -> Result<Self, Fault> {
        let HubDependencies { store, reader, bus, clock, ids, triage, limits } = parts;
        let health = Arc::new(HealthCell::default());
        let mut writer =
            Writer::new(store, bus.clone(), clock.clone(), ids.clone(), health.clone(), limits.clone())?;
        let expired_approvals = expire_open_approvals(&mut writer, &*reader)?;
        end_stopped_runs(&mut writer, &*reader)?;
        mark_gateways_disconnected(&mut writer, &*reader)?;
        // Takes a new `Seq`, so that the ordinals of signals sent before this start stay lower than all
        // ordinals sent from now on.
        run_startup_commands(&mut writer, vec![AppendNoop]);
        let (Head { epoch, seq, .. }, writer_metrics) = (writer.head(), writer.tally());
        let (released, services) = (writer.released(), writer.services());
        let (turns, turn_changes) = (Arc::new(TurnsHandle::default()), writer.turn_changes());
        let agent_changes = writer.agent_changes();
        let fanout = Arc::new(Fanout::new(epoch, seq, &limits, clock.clone()));
        let (queue, queued_commands) = mpsc::channel(limits.max_queued_commands);
        let stop = Arc::new(AtomicBool::new(false));
        let scheduler_handle = Arc::new(SchedulerHandle::default());
        let names = Arc::new(Names::default());
        reader.with(&mut |snapshot| {
            scheduler_handle.lock().count_queues_from(seq);
            snapshot.rooms_with_root()?.iter().for_each(|room| fanout.roots().apply_room(room));
            names.load(snapshot)?;
            for run in snapshot.open_runs()? {
                fanout.apply_run(&run);
                let trigger = run.message().map(|message| snapshot.message(message)).transpose()?.flatten();
                turns.restore(&run);
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
            projections: vec![scheduler_handle.clone(), names.clone(), turns.clone()],
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
            names,
            clock,
            limits,
            epoch,
            health,
            tally: writer_metrics,
            released,
            services,
            agent_changes,
            reads: Arc::new(Semaphore::new(reads)),
            searches: Arc::new(Semaphore::new(searches)),
            threads: parking_lot::Mutex::new(threads),
            tasks: Tasks::default(),
            stop,
            scheduler: scheduler_handle,
            triage,
            triage_permits: Arc::new(Semaphore::new(MAX_CONCURRENT_TRIAGES)),
            turns,
            turn_changes,
            ids,
        };
        let hub = Self { inner: Arc::new(inner) };
        hub.tasks().spawn(run_loop(WeakHub(Arc::downgrade(&hub.inner))));
        hub.tasks().spawn(idle_prompts::run_loop(WeakHub(Arc::downgrade(&hub.inner))));
        hub.tasks().spawn(driver::run_loop(WeakHub(Arc::downgrade(&hub.inner))));
        hub.tasks().spawn(presence::run_loop(WeakHub(Arc::downgrade(&hub.inner))));
        hub.tasks().spawn(occupants::run_loop(WeakHub(Arc::downgrade(&hub.inner))));
        hub.tasks().spawn(merged_replies::run_loop(WeakHub(Arc::downgrade(&hub.inner))));
        Ok(hub)
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

/// Ends the runs whose stop was requested before the previous process ended. Their gateways receive the end when
/// they resume the runs.
fn end_stopped_runs(writer: &mut Writer, reader: &dyn Reader) -> Result<(), Fault> {
    let mut stopped = Vec::new();
    reader.with(&mut |snapshot| {
        stopped = snapshot.open_runs()?;
        Ok(())
    })?;
    stopped.retain(|run| run.stop_requested);
    let end = |run: Run| FinishRun { run: run.id, outcome: RunOutcome::Cancelled, said: None };
    run_startup_commands(writer, stopped.into_iter().map(end).collect());
    Ok(())
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

/// Starts a thread that uses the tracing dispatcher of the calling thread.
fn spawn(name: &str, work: impl FnOnce() + Send + 'static) -> Result<std::thread::JoinHandle<()>, Fault> {
    let log = tracing::dispatcher::get_default(Clone::clone);
    let work = move || tracing::dispatcher::with_default(&log, work);
    let thread = std::thread::Builder::new().name(name.into()).spawn(work);
    thread.map_err(|error| Fault::new("starting a thread", crate::fault::Severity::Permanent, error))
}
