//! Driver of automatic turns: checks the lanes that are due, asks triage, and sends heartbeats.
//!
//! Each check runs in a task of its own, so that no session waits for the triage of another one.

use super::lanes::Checked;
use crate::Fault;
use crate::commands::turns::batch::{Batch, oldest_pending, sort_mail};
use crate::commands::turns::release_batch::orphans;
use crate::hub::{Hub, WeakHub};
use crate::ports::{BatchCase, BatchTriage, Snapshot};
use parlor_model::command::{BatchVerdict, DecideBatch, ReleaseBatch, SendHeartbeat};
use parlor_model::{Agent, AgentId, AutoRun, Caller, Refusal, Room, Session, SessionId, SessionRef, Time};
use std::collections::BTreeMap;
use std::time::{Duration, Instant};

/// Maximum number of triage requests at a time; further checks wait.
pub(crate) const MAX_CONCURRENT_TRIAGES: usize = 8;
/// Maximum time between two looks at the clock of the hub, which may be set while the driver waits for a heartbeat.
const MAX_HEARTBEAT_WAIT: Duration = Duration::from_secs(30);
/// Delay before the settings are read again after the store was unavailable.
const SETTINGS_RETRY_DELAY: Duration = Duration::from_secs(1);
/// Time after which mail is checked again that waits for the daily turns of its session.
const SPENT_RETRY_DELAY: Duration = Duration::from_secs(600);

pub async fn run_loop(weak: WeakHub) {
    let mut is_loaded = false;
    loop {
        let Some(hub) = weak.upgrade().filter(|hub| !hub.is_closing()) else { return };
        let (turns, changes) = (hub.shared_turns(), hub.turn_changes());
        let changed = changes.take();
        if changed.settings || !is_loaded {
            is_loaded = hub.load_turn_settings().await.is_ok();
        }
        turns.lock().lanes.mail_moved(&changed.mail_of, Instant::now());
        hub.send_heartbeats().await;
        let due = turns.lock().lanes.take_due(Instant::now());
        for (session, auto_run) in due {
            let checking = hub.clone();
            hub.tasks().spawn(async move {
                let result = checking.check_lane(&session, auto_run).await.unwrap_or(Checked::Failed);
                let turns = checking.shared_turns();
                turns.lock().lanes.checked(&session, result, Instant::now());
                turns.wake();
            });
        }
        let deadline = {
            let state = turns.lock();
            let beat = state.heartbeats.next().map(|next| Instant::now() + wait_until(next, hub.now()));
            let reload = (!is_loaded).then(|| Instant::now() + SETTINGS_RETRY_DELAY);
            state.lanes.next_deadline().into_iter().chain(beat).chain(reload).min()
        };
        // The loop must not keep the hub alive while it waits.
        drop(hub);
        let deadline = async {
            match deadline {
                Some(deadline) => tokio::time::sleep_until(deadline.into()).await,
                None => std::future::pending().await,
            }
        };
        tokio::select! {
            () = turns.wake_driver.notified() => {}
            () = changes.changed() => {}
            () = deadline => {}
        }
    }
}

/// Time until a heartbeat is due.
fn wait_until(next: Time, now: Time) -> Duration {
    Duration::from_micros(u64::try_from(next.0.saturating_sub(now.0)).unwrap_or(0)).min(MAX_HEARTBEAT_WAIT)
}

/// A session with pending mail.
struct PendingTurn {
    agent: Agent,
    session: Session,
    room: Option<Room>,
    batch: Batch,
}

/// Mail of a session as found in the store.
enum Found {
    /// Mail that runs hold although they no longer exist.
    Orphans,
    Busy,
    Empty {
        next: Option<Time>,
    },
    /// A batch that is not complete, with the time at which its debounce ends.
    Collecting {
        count: u32,
        until: Time,
    },
    Pending(Box<PendingTurn>),
}

impl Hub {
    /// Reads which sessions have automatic turns and which agents have heartbeats.
    async fn load_turn_settings(&self) -> Result<(), Refusal> {
        let (sessions, crons) = self.read_snapshot(|_, store| read_settings(store)).await?;
        let (turns, now) = (self.shared_turns(), self.now());
        let mut state = turns.lock();
        state.lanes.configure(sessions, Instant::now());
        state.heartbeats.configure(crons, now);
        Ok(())
    }

    /// Sends the heartbeats that are due. Uses the hub's clock, which tests can set.
    pub(crate) async fn send_heartbeats(&self) {
        let due = self.shared_turns().lock().heartbeats.take_due(self.now());
        for (agent, cron) in due {
            // Refused if the agent was removed or its heartbeat has changed. A heartbeat that the store cannot take now
            // is skipped.
            let _ = self.execute(&Caller::OPERATOR, SendHeartbeat { agent, cron }).await;
        }
    }

    async fn check_lane(&self, id: &SessionRef, auto_run: AutoRun) -> Result<Checked, Refusal> {
        if self.scheduler().lock().online_agent(&id.agent).is_none() {
            return Ok(Checked::NeedsHost);
        }
        let (read, limits) = (id.clone(), auto_run.clone());
        let found = self.read_snapshot(move |hub, store| hub.find_mail(&read, &limits, store)).await?;
        let pending = match found {
            Found::Orphans => {
                let SessionRef { agent, session } = id.clone();
                self.execute(&Caller::OPERATOR, ReleaseBatch { agent, session }).await?;
                return Ok(Checked::Decided);
            }
            Found::Busy => return Ok(Checked::Busy),
            Found::Empty { next } => {
                return Ok(Checked::Empty { next: next.map(|next| self.instant_of(next)) });
            }
            Found::Collecting { count, until } => {
                return Ok(Checked::Collecting { count, until: self.instant_of(until) });
            }
            Found::Pending(pending) => *pending,
        };
        let messages = pending.batch.messages();
        let verdict = if pending.batch.fresh.is_empty() {
            BatchVerdict::Start { reason: "".into() }
        } else if !self.runs_sessions_of(&id.agent, pending.room.is_some()) {
            return Ok(Checked::NeedsHost);
        } else if pending.batch.fresh[0].attempts > 0 {
            BatchVerdict::Start { reason: "an earlier attempt failed".into() }
        } else {
            match self.triage_batch(id, pending, auto_run).await {
                Ok(verdict) => verdict,
                Err(until) => {
                    let reason = "triage made no decision, and the budget is used up".into();
                    self.decide_batch(id, messages, BatchVerdict::Hold { reason }).await?;
                    return Ok(Checked::Held(until));
                }
            }
        };
        let receipt = self.decide_batch(id, messages, verdict).await?;
        Ok(match (receipt.run, receipt.is_waiting) {
            (Some(_), _) => Checked::Busy,
            // The check that follows the end of the other run comes earlier.
            (None, true) => Checked::Held(Instant::now() + SPENT_RETRY_DELAY),
            (None, false) => Checked::Decided,
        })
    }

    async fn decide_batch(
        &self,
        id: &SessionRef,
        messages: Vec<parlor_model::MessageId>,
        verdict: BatchVerdict,
    ) -> Result<parlor_model::command::BatchReceipt, Refusal> {
        let SessionRef { agent, session } = id.clone();
        self.execute(&Caller::OPERATOR, DecideBatch { agent, session, messages, verdict }).await
    }

    /// Asks triage about a batch. If it makes no decision, the batch starts a turn while the budget lasts; otherwise
    /// returns the time of the next token.
    async fn triage_batch(
        &self,
        id: &SessionRef,
        pending: PendingTurn,
        auto_run: AutoRun,
    ) -> Result<BatchVerdict, Instant> {
        let PendingTurn { agent, session, room, batch } = pending;
        let messages = batch.fresh.into_iter().map(|copy| copy.message).collect();
        let case = BatchCase { agent, session, room, messages, model: auto_run.triage_model };
        // Never closed while the hub exists.
        let _permit = self.triage_permits().acquire_owned().await;
        let timeout = self.limits().triage_timeout;
        let reason = match tokio::time::timeout(timeout, self.triage_port().should_start_turn(case)).await {
            Ok(Ok(BatchTriage::Yes)) => {
                return Ok(BatchVerdict::Start { reason: "the model decided".into() });
            }
            Ok(Ok(BatchTriage::No(reason))) => return Ok(BatchVerdict::Decline { reason }),
            Ok(Ok(BatchTriage::NoModel)) => "the hub has no triage model",
            Ok(Err(fault)) => {
                tracing::warn!(%fault, agent = %id.agent, "triage of a batch failed");
                "triage failed"
            }
            Err(_) => {
                tracing::warn!(agent = %id.agent, "triage of a batch timed out");
                "triage timed out"
            }
        };
        self.shared_turns().lock().lanes.take_token(id, self.limits(), Instant::now())?;
        Ok(BatchVerdict::Start { reason: reason.into() })
    }

    /// The moment at which the hub's clock shows a time.
    fn instant_of(&self, time: Time) -> Instant {
        let wait = u64::try_from(time.0.saturating_sub(self.now().0)).unwrap_or(0);
        Instant::now() + Duration::from_micros(wait)
    }

    fn find_mail(
        &self,
        id: &SessionRef,
        auto_run: &AutoRun,
        store: &mut dyn Snapshot,
    ) -> Result<Found, Fault> {
        let (now, limit) = (self.now(), auto_run.max_batch as usize);
        let Some(agent) = store.agent(&id.agent)? else { return Ok(Found::Empty { next: None }) };
        if !orphans(id, store)?.is_empty() {
            return Ok(Found::Orphans);
        }
        if !store.open_runs_of_session(&id.agent, &id.session)?.is_empty() {
            return Ok(Found::Busy);
        }
        let copies = oldest_pending(id, now, limit, store)?;
        if copies.is_empty() {
            let mut next: Option<Time> = None;
            for mailbox in id.mailboxes() {
                next = next.into_iter().chain(store.next_lease_end(&mailbox, now)?).min();
            }
            return Ok(Found::Empty { next });
        }
        // Also after a restart and after a run, new mail waits for its debounce. A clock that was set back does not delay
        // it for longer.
        if let Some(newest) = copies.last().filter(|_| copies.iter().all(|copy| copy.attempts == 0)) {
            let until = newest.message.at.plus(auto_run.debounce).min(now.plus(auto_run.debounce));
            if copies.len() < limit && now < until {
                return Ok(Found::Collecting { count: copies.len() as u32, until });
            }
        }
        let batch = sort_mail(&agent, copies, now, self.limits(), store)?;
        let session = store.sessions(&id.agent)?.into_iter().find(|session| session.id == id.session);
        let session = session
            .unwrap_or_else(|| Session::new(id.agent.clone(), id.session.clone(), id.session.as_str(), now));
        let room = match &session.room {
            Some(room) => store.room(room)?,
            None => None,
        };
        Ok(Found::Pending(Box::new(PendingTurn { agent, session, room, batch })))
    }
}

impl Hub {
    /// Whether the agent is online through a gateway that can run its sessions: a gateway that does not know sessions can
    /// only run those with a room.
    fn runs_sessions_of(&self, agent: &AgentId, has_room: bool) -> bool {
        let scheduler = self.scheduler().lock();
        scheduler.is_on_parlor_gateway(agent) || has_room && scheduler.online_agent(agent).is_some()
    }
}

type TurnSettings = (BTreeMap<SessionRef, AutoRun>, BTreeMap<AgentId, Box<str>>);

/// The sessions with enabled automatic turns, where the setting of a session replaces that of its agent, and the cron
/// expressions of heartbeats.
fn read_settings(store: &mut dyn Snapshot) -> Result<TurnSettings, Fault> {
    let (mut sessions, mut crons) = (BTreeMap::new(), BTreeMap::new());
    for agent in store.automatic_agents()? {
        if let Some(cron) = agent.heartbeat() {
            crons.insert(agent.id.clone(), cron);
        }
        // The command that stored the setting has checked it.
        let Ok(Some(auto_run)) = agent.auto_run() else { continue };
        let ids = store.sessions(&agent.id)?.into_iter().map(|session| session.id);
        for session in ids.chain([SessionId::main()]) {
            sessions.insert(SessionRef { agent: agent.id.clone(), session }, auto_run.clone());
        }
    }
    for session in store.automatic_sessions()? {
        if let Some(auto_run) = session.auto_run {
            sessions.insert(SessionRef { agent: session.agent, session: session.id }, auto_run);
        }
    }
    sessions.retain(|_, auto_run| auto_run.enabled);
    Ok((sessions, crons))
}
