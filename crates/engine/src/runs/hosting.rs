//! `Hub` methods for gateways and their agents: connections, agent status, streamed and completed replies,
//! run events, plans, tasks, terminal output, stops and room contexts.

use super::host::{Host, HostCommand, RoomPeer};
use super::injection::INJECT_CAPABILITY;
use super::scheduler::{GatewayConnection, GatewayConnectionId, PendingEnd, ReplyBinding, Scheduler};
use crate::Hub;
use crate::commands::runs::context::MEMBERS_IN_CONTEXT;
use crate::feed::{ChunkRejected, Projection, ReplyBuffer, ReplyLimits};
use parking_lot::{Mutex, MutexGuard};
use parlor_model::command::{
    PostLateReply, ReportUsage, StartUnpromptedRun, {CreateTask, ReportTask, UpdatePlan},
};
use parlor_model::query::MayStopRuns;
use parlor_model::run_event::Plan;
use parlor_model::{
    Agent, AgentId, AgentReply, AgentStatus, Approval, Caller, Chunk, ConversationId, EntityKind, Event,
    GatewayId, LoggedEvent, MemberId, Message, MessageId, Refusal, Room, RoomId, Run, RunEvent, RunId,
    RunOutcome, RunState, Signal, TaskId, TaskStatus, UsageReport, UserId, mention,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// Maximum number of gateways that one user may have connected.
const MAX_GATEWAYS_PER_USER: usize = 20;

/// The shared scheduler, and the notifications that wake the run driver and the idle prompt loop.
#[derive(Default)]
pub struct SchedulerHandle {
    scheduler: Mutex<Scheduler>,
    pub(super) wake_driver: Notify,
    /// Wakes the idle prompt loop, for example when an agent comes online or a room changes.
    pub(crate) idle: Notify,
}

impl SchedulerHandle {
    /// Locks the scheduler.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock()
    }

    pub fn wake(&self) {
        self.wake_driver.notify_one();
    }

    /// Restores a run that was open when the hub stopped. `trigger` is the message that started it, for its
    /// preview.
    pub fn restore(&self, run: Run, trigger: Option<Arc<Message>>) {
        let (mut scheduler, now) = (self.lock(), Instant::now());
        if let Some(message) = trigger {
            scheduler.apply_event(&Event::MessagePosted { message, deliveries: Arc::new([]) }, now);
        }
        scheduler.apply_event(&Event::RunChanged(Arc::new(run)), now);
    }

    /// Sends decided approvals to their gateways. Does not wait for the driver, because agents are blocked on
    /// them.
    pub(super) fn send_decisions(&self) {
        let answers = self.lock().take_decisions();
        for (host, approval) in answers {
            super::approvals::send_decision(&*host, &approval);
        }
    }

    /// Closes an approval that was open when the hub stopped. The decision is sent when its gateway
    /// reconnects; if the store did not accept the expiry at start-up, it is submitted again.
    pub fn close_question(&self, question: Option<Approval>) {
        let Some(question) = question.map(Arc::new) else { return };
        let (mut scheduler, now) = (self.lock(), Instant::now());
        match question.decision {
            Some(_) => scheduler.apply_event(&Event::ApprovalDecided(question), now),
            None => scheduler.close_question(&question, now),
        }
    }
}

/// The scheduler knows an event before any subscriber receives it: the first chunk of a reply must find its run.
impl Projection for SchedulerHandle {
    fn apply(&self, batch: &[LoggedEvent]) {
        let mut scheduler = self.lock();
        let now = Instant::now();
        for logged_event in batch {
            scheduler.apply_event(&logged_event.event, now);
        }
        drop(scheduler);
        self.send_decisions();
        self.wake_driver.notify_one();
        if batch.iter().any(|logged_event| matches!(logged_event.event, Event::RoomChanged(_))) {
            self.idle.notify_one();
        }
    }
}

/// A gateway's report that an agent has completed a reply.
pub struct RunCompletion {
    /// Full text as sent by the gateway; if it is only a prefix of the streamed chunks, the chunks win.
    pub text: Option<Arc<str>>,
    pub chunks: Vec<Chunk>,
    pub target: Option<Box<str>>,
    pub claimed_depth: u32,
    /// Conversation that the reply belongs to according to the gateway.
    pub conversation: Option<ConversationId>,
    pub outcome: RunOutcome,
}

impl RunCompletion {
    fn into_pending_end(self) -> PendingEnd {
        let Self { text, chunks, target, claimed_depth, outcome, .. } = self;
        PendingEnd { text, chunks, target, claimed_depth, ..PendingEnd::plain(outcome) }
    }
}

/// Identifies a reply: gateway connection, agent, room, and the reply id that the gateway chose.
#[derive(Clone, Copy)]
pub struct ReplyRef<'a> {
    pub connection: GatewayConnectionId,
    pub agent: &'a AgentId,
    pub room: &'a RoomId,
    pub reply: &'a MessageId,
    /// Run of the reply, if the gateway names it.
    pub run: Option<&'a RunId>,
}

impl Hub {
    /// Registers a gateway connection of a user. Refused if the user already has the maximum number of
    /// gateways connected.
    pub fn gateway_connected(
        &self,
        owner: &UserId,
        gateway: GatewayId,
        by_room: bool,
        host: Arc<dyn Host>,
    ) -> Result<GatewayConnectionId, Refusal> {
        let mut scheduler = self.scheduler().lock();
        let connected = scheduler.gateways_of(owner);
        if connected.len() >= MAX_GATEWAYS_PER_USER && !connected.contains(&gateway) {
            return Err(Refusal::TooManyConnections);
        }
        Ok(scheduler.connect_gateway(GatewayConnection { gateway, owner: owner.clone(), by_room, host }))
    }

    /// Returns the agent if it exists and this gateway hosts it.
    pub async fn hosted_agent(&self, id: &AgentId, gateway: &GatewayId) -> Result<Option<Agent>, Refusal> {
        let (id, gateway) = (id.clone(), gateway.clone());
        let found = self.read_snapshot(move |_, store| store.agent(&id)).await?;
        Ok(found.filter(|agent| agent.host.gateway.as_ref() == Some(&gateway)))
    }

    /// Removes a gateway connection. Its agents go offline, except those that are online through a newer
    /// connection.
    pub async fn gateway_disconnected(&self, connection: GatewayConnectionId) {
        let agents = self.scheduler().lock().disconnect_gateway(connection, Instant::now());
        self.scheduler().wake_driver.notify_one();
        for agent in agents {
            self.publish_agent_status(&agent).await;
        }
    }

    pub fn is_connected(&self, gateway: &GatewayId) -> bool {
        self.scheduler().lock().is_gateway_connected(gateway)
    }

    /// Marks a registered agent as online through a gateway connection, and sends it its room contexts, its
    /// pending rewinds and its lost runs. A different gateway that hosted the agent before is told to remove
    /// it.
    pub async fn agent_online(&self, connection: GatewayConnectionId, agent: &Agent) -> Result<(), Refusal> {
        let taken_over = {
            let mut scheduler = self.scheduler().lock();
            let before = scheduler.agent_online(&agent.id, connection, &agent.name, Instant::now());
            let injectable =
                agent.host.capabilities.iter().any(|capability| &**capability == INJECT_CAPABILITY);
            scheduler.set_injectable(&agent.id, injectable);
            before.and_then(|before| scheduler.host(before))
        };
        self.scheduler().send_decisions();
        if let Some(host) = taken_over {
            tracing::warn!(agent = %agent.id, "the agent moved to another gateway");
            host.send(&HostCommand::Remove { agent: &agent.id });
        }
        let id = agent.id.clone();
        let rooms =
            self.read_snapshot(move |_, store| store.memberships(&MemberId::Agent(id.clone()))).await?;
        for membership in rooms {
            self.send_room_context(&membership.room, Some(&agent.id)).await?;
        }
        self.send_pending_rewinds(connection, &agent.id);
        self.redispatch_runs(&agent.id).await;
        self.publish_agent_status(&agent.id).await;
        self.scheduler().wake_driver.notify_one();
        self.scheduler().idle.notify_one();
        Ok(())
    }

    /// Tells a gateway to remove an agent that no longer exists.
    pub fn dismiss(&self, connection: GatewayConnectionId, agent: &AgentId) {
        let host = self.scheduler().lock().host(connection);
        if let Some(host) = host {
            host.send(&HostCommand::Remove { agent });
        }
    }

    pub async fn agent_offline(&self, connection: GatewayConnectionId, agent: &AgentId) {
        if self.scheduler().lock().agent_offline(agent, connection, Instant::now()) {
            self.publish_agent_status(agent).await;
        }
        self.scheduler().wake_driver.notify_one();
    }

    /// Returns the current status of an agent; `Offline` without a gateway connection.
    pub fn agent_status(&self, agent: &AgentId) -> AgentStatus {
        self.scheduler().lock().online_agent(agent).map_or(AgentStatus::Offline, |online| online.status)
    }

    /// Whether an active run has started its reply.
    pub fn has_spoken(&self, run: &RunId) -> bool {
        self.scheduler().lock().has_spoken(run)
    }

    pub async fn report_status(
        &self,
        connection: GatewayConnectionId,
        agent: &AgentId,
        status: AgentStatus,
        queue_depth: u32,
    ) {
        let changed = {
            let mut scheduler = self.scheduler().lock();
            if scheduler.agent_on_connection(agent, connection).is_none() {
                return;
            }
            if status == AgentStatus::Busy {
                scheduler.mark_alive(agent, None);
            } else if queue_depth == 0 {
                scheduler.idle(agent);
                scheduler.stopped(agent, None);
            }
            scheduler.set_status(agent, status, queue_depth)
        };
        self.scheduler().wake_driver.notify_one();
        if changed {
            self.publish_agent_status(agent).await;
        }
    }

    /// Publishes a chunk of a reply to the subscribers of the room.
    pub async fn publish_chunk(&self, reply_ref: ReplyRef<'_>, chunk: &Chunk) -> Result<(), Refusal> {
        let Some((run, name)) = self.bind_or_open_run(reply_ref, false).await? else { return Ok(()) };
        let hub_limits = self.limits();
        let limits = ReplyLimits { chunks: hub_limits.reply_chunks, bytes: hub_limits.reply_bytes };
        match self.fanout().publish_chunk(&run, reply_ref.reply, &name, chunk, limits) {
            // The fan-out does not know the run: it has not applied the start yet, or the run has ended. The
            // chunk is dropped.
            Ok(()) | Err(ChunkRejected::Over) => Ok(()),
            Err(ChunkRejected::TooLong) => {
                Err(Refusal::TooLarge { limit: limits.bytes, got: limits.bytes + 1 })
            }
        }
    }

    /// Returns the run that a reply or a chunk belongs to, with the name of the agent. Starts an unprompted
    /// run if the agent has none; `None` if the run has ended. `is_complete` is false for a chunk.
    async fn bind_or_open_run(
        &self,
        reply_ref: ReplyRef<'_>,
        is_complete: bool,
    ) -> Result<Option<(RunId, Box<str>)>, Refusal> {
        let ReplyRef { agent, room, reply, .. } = reply_ref;
        let (bound, name) = self.bind(reply_ref)?;
        match bound {
            ReplyBinding::Run(run, false) => return Ok(Some((run, name))),
            ReplyBinding::Ended | ReplyBinding::UnknownRun => return Ok(None),
            ReplyBinding::Run(run, true) => {
                // The id belongs to another message, so it cannot be the id of this run's reply.
                if self.message_exists(reply).await? {
                    self.scheduler().lock().unbind(&run);
                    return Err(Refusal::Conflict { first: reply.clone() });
                }
                return Ok(Some((run, name)));
            }
            ReplyBinding::Unbound => {}
        }
        if self.message_exists(reply).await? {
            return Err(Refusal::Conflict { first: reply.clone() });
        }
        // Replies that are started and never completed would accumulate.
        if !is_complete && self.scheduler().lock().is_replying(agent, room) {
            return Err(Refusal::AlreadyExists(EntityKind::Run));
        }
        self.open_run(agent, room).await?;
        Ok(match self.bind(reply_ref)? {
            (ReplyBinding::Run(run, _), name) => Some((run, name)),
            (ReplyBinding::Ended | ReplyBinding::UnknownRun | ReplyBinding::Unbound, _) => None,
        })
    }

    fn bind(&self, reply_ref: ReplyRef<'_>) -> Result<(ReplyBinding, Box<str>), Refusal> {
        let mut scheduler = self.scheduler().lock();
        let online = scheduler
            .agent_on_connection(reply_ref.agent, reply_ref.connection)
            .ok_or(Refusal::NotFound(EntityKind::Agent))?;
        let name = online.name.clone();
        let ReplyRef { agent, room, reply, .. } = reply_ref;
        let bound = match reply_ref.run {
            Some(run) => scheduler.bind_named(agent, room, reply, run),
            None => scheduler.bind(agent, room, reply),
        };
        Ok((bound, name))
    }

    /// Starts an unprompted run and waits until the scheduler knows it.
    pub(super) async fn open_run(&self, agent: &AgentId, room: &RoomId) -> Result<RunId, Refusal> {
        let open = StartUnpromptedRun { agent: agent.clone(), room: room.clone() };
        let run = self.execute(&Caller::OPERATOR, open).await?;
        self.wait_until_caught_up().await?;
        Ok(run.id.clone())
    }

    /// Waits until the scheduler has applied all events committed so far. Applying the run from the receipt
    /// would be faster, but wrong if its end has already been applied.
    pub(super) async fn wait_until_caught_up(&self) -> Result<(), Refusal> {
        self.reached(self.committed()).await
    }

    async fn message_exists(&self, id: &MessageId) -> Result<bool, Refusal> {
        let id = id.clone();
        self.read_snapshot(move |_, store| Ok(store.message(&id)?.is_some())).await
    }

    /// Ends a run with the completed reply of an agent.
    pub async fn complete_reply(
        &self,
        reply_ref: ReplyRef<'_>,
        finished: RunCompletion,
    ) -> Result<(), Refusal> {
        // A gateway that names the run cannot confuse it with another run.
        if reply_ref.run.is_none()
            && let Some(over) = self.find_abandoned_run(reply_ref, finished.conversation.as_ref()).await?
        {
            return self.complete_abandoned_run(reply_ref, finished, &over).await;
        }
        let run = match self.bind_or_open_run(reply_ref, true).await {
            Ok(Some((run, _))) => run,
            Ok(None) => {
                self.scheduler().lock().stopped(reply_ref.agent, Some(reply_ref.room));
                self.scheduler().wake_driver.notify_one();
                return self.complete_ended_run(reply_ref, finished).await;
            }
            Err(Refusal::Conflict { .. }) => {
                let posted = self.post_late_reply(reply_ref, finished, None).await;
                if matches!(posted, Err(Refusal::Conflict { .. })) {
                    self.fail_run_without_reply(reply_ref);
                }
                return posted;
            }
            Err(refusal) => return Err(refusal),
        };
        self.scheduler().lock().end(&run, finished.into_pending_end());
        self.scheduler().wake_driver.notify_one();
        Ok(())
    }

    /// Returns the run of this reply if it was cancelled or interrupted before it produced output.
    /// Third-party gateways name the conversation instead of the run, and an agent has one run per
    /// conversation.
    async fn find_abandoned_run(
        &self,
        reply_ref: ReplyRef<'_>,
        conversation: Option<&ConversationId>,
    ) -> Result<Option<Run>, Refusal> {
        let Some(conversation) = conversation.cloned() else { return Ok(None) };
        if self.scheduler().lock().is_in(reply_ref.agent, &conversation) {
            return Ok(None);
        }
        let (agent, reply) = (reply_ref.agent.clone(), reply_ref.reply.clone());
        let ended = self.read_snapshot(move |_, store| match store.message(&reply)? {
            Some(_) => Ok(None),
            None => store.ended_turn(&agent, &conversation),
        });
        Ok(ended.await?.filter(|run| {
            let given_up =
                [RunOutcome::Cancelled, RunOutcome::Interrupted].map(RunState::Ended).contains(&run.state);
            given_up && run.room == *reply_ref.room && run.reply.is_none()
        }))
    }

    /// Handles the late reply of a run that ended before it produced output: it must not become the reply of
    /// the agent's next run. Chunks do not name their run, so any that were bound to the next run are
    /// unbound. The reply is stored in an unprompted run of its own.
    async fn complete_abandoned_run(
        &self,
        reply_ref: ReplyRef<'_>,
        finished: RunCompletion,
        over: &Run,
    ) -> Result<(), Refusal> {
        let ReplyRef { connection, agent, room, reply, .. } = reply_ref;
        let taken_for = {
            let mut scheduler = self.scheduler().lock();
            scheduler.agent_on_connection(agent, connection).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.stopped(agent, Some(room));
            scheduler.run_bound_to(agent, reply)
        };
        self.scheduler().wake_driver.notify_one();
        let streamed = taken_for.and_then(|run| self.fanout().restart_reply(&run));
        let mut ending = finished.into_pending_end();
        match (streamed, &over.state) {
            (None, RunState::Ended(RunOutcome::Cancelled)) => return Ok(()),
            // Subscribers that have seen the beginning of the cancelled reply also see it end.
            (Some((text, chunks)), RunState::Ended(RunOutcome::Cancelled)) => {
                ending = PendingEnd { text: Some(text), chunks, ..PendingEnd::plain(RunOutcome::Cancelled) };
            }
            (Some((_, chunks)), _) if ending.chunks.is_empty() => ending.chunks = chunks,
            (Some(_) | None, _) => {}
        }
        let run = self.open_run(agent, room).await?;
        let mut scheduler = self.scheduler().lock();
        scheduler.bind_reply(&run, reply);
        scheduler.end(&run, ending);
        drop(scheduler);
        self.scheduler().wake_driver.notify_one();
        Ok(())
    }

    /// Fails the run whose reply came with the id of another message: the gateway will not send another
    /// reply.
    fn fail_run_without_reply(&self, reply_ref: ReplyRef<'_>) {
        let mut scheduler = self.scheduler().lock();
        let here = scheduler.agent_on_connection(reply_ref.agent, reply_ref.connection).is_some();
        if let Some(run) = scheduler.run_without_reply(reply_ref.agent, reply_ref.room).filter(|_| here) {
            let reason = "the id of its reply belongs to another message";
            scheduler.end(&run, PendingEnd::plain(RunOutcome::Failed(reason.into())));
        }
        drop(scheduler);
        self.scheduler().wake_driver.notify_one();
    }

    /// Posts a reply whose run has already ended. A repeated late reply is detected by its id and posted
    /// once.
    pub(super) async fn post_late_reply(
        &self,
        reply_ref: ReplyRef<'_>,
        finished: RunCompletion,
        run: Option<RunId>,
    ) -> Result<(), Refusal> {
        let reply_buffer = self.buffer_of(&finished.chunks);
        let (text, chunks) = reply_buffer.finish(finished.text.as_deref());
        let said = AgentReply {
            message: Some(reply_ref.reply.clone()),
            text,
            chunks: drop_text_only_chunks(chunks),
            target: finished.target,
            claimed_depth: finished.claimed_depth,
        };
        let (agent, room) = (reply_ref.agent.clone(), reply_ref.room.clone());
        self.execute(&Caller::OPERATOR, PostLateReply { agent, room, said, run }).await
    }

    /// Collects chunks in a reply buffer, which merges adjacent text chunks. Chunks beyond the limits are
    /// dropped.
    pub(super) fn buffer_of(&self, chunks: &[Chunk]) -> ReplyBuffer {
        let limits = ReplyLimits { chunks: self.limits().reply_chunks, bytes: self.limits().reply_bytes };
        let mut reply_buffer = ReplyBuffer::default();
        for chunk in chunks {
            if reply_buffer.push(chunk, limits).is_err() {
                break;
            }
        }
        reply_buffer
    }

    /// Updates the plan of an agent's active run. Does nothing if the agent has no active run.
    pub async fn update_plan(
        &self,
        connection: GatewayConnectionId,
        agent: &AgentId,
        room: Option<&RoomId>,
        plan: Plan,
    ) -> Result<(), Refusal> {
        let run = {
            let mut scheduler = self.scheduler().lock();
            scheduler.agent_on_connection(agent, connection).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.mark_alive(agent, room);
            let Some((run, _)) = scheduler.runs(agent, room).pop() else { return Ok(()) };
            run
        };
        match self.execute(&Caller::OPERATOR, UpdatePlan { run, plan }).await {
            // The run has just ended.
            Err(Refusal::NotFound(EntityKind::Run)) => Ok(()),
            result => result.map(drop),
        }
    }

    /// Returns the room of an agent's newest active run, for frames that do not name a room.
    pub fn room_of(&self, agent: &AgentId) -> Option<RoomId> {
        self.scheduler().lock().runs(agent, None).pop().map(|(_, room)| room)
    }

    /// Publishes an event of a run other than its reply, such as usage or a new task. Does nothing if the
    /// agent has no active run.
    pub async fn run_event(
        &self,
        caller: &Caller,
        connection: GatewayConnectionId,
        agent: &AgentId,
        room: Option<&RoomId>,
        event: RunEvent,
    ) -> Result<(), Refusal> {
        let (run, room) = {
            let mut scheduler = self.scheduler().lock();
            scheduler.agent_on_connection(agent, connection).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.mark_alive(agent, room);
            let Some(found) = scheduler.runs(agent, room).pop() else { return Ok(()) };
            found
        };
        if let RunEvent::Usage(UsageReport { spent: Some(usage), .. }) = &event {
            let report = ReportUsage { run: run.clone(), usage: *usage };
            self.execute(&Caller::OPERATOR, report).await?;
        }
        if let RunEvent::Task { title, description, assignee } = &event {
            let assignee = self.member_named(&room, assignee.as_deref()).await?;
            let (title, description) = (title.clone(), description.clone());
            let by = Some(agent.clone());
            let new = CreateTask { room: room.clone(), by, title, description, due_at: None, assignee };
            self.execute(caller, new).await?;
        }
        self.fanout().run_event(&run, &room, event);
        Ok(())
    }

    async fn member_named(&self, room: &RoomId, name: Option<&str>) -> Result<Option<MemberId>, Refusal> {
        let Some(name) = name.map(Box::<str>::from) else { return Ok(None) };
        let room = room.clone();
        let members = self.read_snapshot(move |_, store| store.members(&room, usize::MAX, 0)).await?;
        let found = mention::resolve("", &[name], &members);
        Ok(found.into_iter().next().map(|mention| mention.member))
    }

    /// Reports the status of a task that is assigned to an agent on this gateway connection.
    pub async fn report_task(
        &self,
        caller: &Caller,
        connection: GatewayConnectionId,
        task: TaskId,
        status: TaskStatus,
        result: Option<Box<str>>,
    ) -> Result<(), Refusal> {
        let id = task.clone();
        let found = self.read_snapshot(move |_, store| store.task(&id)).await?;
        let agent = found.and_then(|task| task.assignee?.agent().cloned());
        let here = |agent: &AgentId| self.scheduler().lock().agent_on_connection(agent, connection).is_some();
        // The task of another agent yields the same refusal as a missing task.
        let agent = agent.filter(here).ok_or(Refusal::NotFound(EntityKind::Task))?;
        self.execute(caller, ReportTask { task, agent, status, result }).await.map(drop)
    }

    /// Publishes filtered terminal output of an agent in the room of its active run.
    pub fn terminal(
        &self,
        connection: GatewayConnectionId,
        agent: &AgentId,
        room: Option<&RoomId>,
        data: &str,
    ) {
        let (room, data, agent_name) = {
            let mut scheduler = self.scheduler().lock();
            let Some(name) =
                scheduler.agent_on_connection(agent, connection).map(|online| online.name.clone())
            else {
                return;
            };
            let Some((room, data)) = scheduler.terminal(agent, room, data) else { return };
            (room, data, name)
        };
        if !data.is_empty() {
            let signal =
                Signal::Terminal { room: room.clone(), agent: agent.clone(), agent_name, data: data.into() };
            self.fanout().signal_room(&room, &signal, None);
        }
    }

    /// Stops the runs of an agent in a room on behalf of a user.
    pub async fn stop(&self, caller: &Caller, room: &RoomId, agent: &AgentId) -> Result<(), Refusal> {
        self.may(caller, MayStopRuns { room: room.clone() }).await?;
        let stops = {
            let mut scheduler = self.scheduler().lock();
            scheduler.cancel_runs(room, Some(agent), Instant::now());
            self.take_stop_commands(&mut scheduler)
        };
        for (host, agent, room) in stops {
            host.send(&HostCommand::Stop { agent: &agent, room: &room });
        }
        self.scheduler().wake_driver.notify_one();
        Ok(())
    }

    pub(super) fn take_stop_commands(
        &self,
        scheduler: &mut Scheduler,
    ) -> Vec<(Arc<dyn Host>, AgentId, RoomId)> {
        let stops = scheduler.take_stops().into_iter();
        stops
            .filter_map(|(connection, agent, room)| Some((scheduler.host(connection)?, agent, room)))
            .collect()
    }

    /// Sends the room context (room, system prompt and members) to all online agents in the room, or to one
    /// of them.
    pub(super) async fn send_room_context(
        &self,
        room: &RoomId,
        only: Option<&AgentId>,
    ) -> Result<(), Refusal> {
        let Some((room, peers)) = self.room_with_peers(room).await? else { return Ok(()) };
        for agent in peers.iter().filter_map(|peer| peer.member.member.agent()) {
            let host = {
                let scheduler = self.scheduler().lock();
                scheduler.online_agent(agent).and_then(|online| scheduler.host(online.connection))
            };
            if let Some(host) = host.filter(|_| only.is_none_or(|only| only == agent)) {
                host.send(&HostCommand::Context { agent, room: &room, members: &peers });
            }
        }
        Ok(())
    }

    /// Loads a room and its members.
    async fn room_with_peers(&self, room: &RoomId) -> Result<Option<(Room, Vec<RoomPeer>)>, Refusal> {
        let room = room.clone();
        self.read_snapshot(move |hub, store| {
            let Some(found) = store.room(&room)? else { return Ok(None) };
            let mut peers = Vec::new();
            for member in store.members(&room, MEMBERS_IN_CONTEXT, 0)? {
                let agent = match member.member.agent() {
                    Some(id) => store.agent(id)?.map(|agent| (agent, hub.agent_status(id))),
                    None => None,
                };
                peers.push(RoomPeer { member, agent });
            }
            Ok(Some((found, peers)))
        })
        .await
    }

    /// Publishes the status of an agent to its owner and to all users who share a room with it.
    pub(super) async fn publish_agent_status(&self, agent: &AgentId) {
        let id = agent.clone();
        let found = self.read_snapshot(move |_, store| {
            let Some(agent) = store.agent(&id)? else { return Ok(None) };
            let mut people = BTreeSet::from([agent.owner.clone()]);
            for membership in store.memberships(&MemberId::Agent(id.clone()))? {
                let members = store.members(&membership.room, usize::MAX, 0)?;
                people.extend(members.iter().filter_map(|member| member.member.user().cloned()));
            }
            Ok(Some((agent, people)))
        });
        // If the read fails, only this signal is lost.
        let Ok(Some((agent, people))) = found.await else { return };
        let (status, queue_depth) = {
            let scheduler = self.scheduler().lock();
            let online = scheduler.online_agent(&agent.id);
            online.map_or((AgentStatus::Offline, 0), |online| (online.status, online.queue_depth))
        };
        let Agent { id: agent, name, host, .. } = agent;
        let signal =
            Signal::AgentStatus { agent, name, kind: host.kind, model: host.model, status, queue_depth };
        self.fanout().signal_people(&people, &signal);
    }
}

/// Drops the chunks if they hold nothing but the reply text, which is stored separately.
pub(super) fn drop_text_only_chunks(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let plain = |chunk: &Chunk| chunk.kind == parlor_model::ChunkKind::Text && chunk.metadata.is_none();
    if chunks.iter().all(plain) { Vec::new() } else { chunks }
}
