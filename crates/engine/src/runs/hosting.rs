//! What gateways tell of their agents, and what people want of them.

use super::host::{Host, HostCommand, RoomPeer};
use super::injection::INJECT_CAPABILITY;
use super::reply_buffer::{ReplyBuffer, ReplyLimits};
use super::scheduler::{GatewayConnection, GatewayConnectionId, PendingEnd, ReplyBinding, Scheduler};
use crate::Hub;
use crate::fanout::ChunkRejected;
use parking_lot::{Mutex, MutexGuard};
use parlor_model::command::NewTask;
use parlor_model::run_event::PlanState;
use parlor_model::{
    Agent, AgentId, AgentReply, AgentStatus, Approval, Caller, Chunk, Command, ConversationId, EntityKind,
    Event, GatewayId, LoggedEvent, MemberId, Message, MessageId, Payload, Query, Receipt, Refusal, Room,
    RoomId, Run, RunEvent, RunId, RunOutcome, RunState, Signal, TaskId, TaskStatus, UsageReport, UserId,
    mention,
};
use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Instant;
use tokio::sync::Notify;

/// Gateways that one person may have connected.
const MOST_GATEWAYS: usize = 20;

/// The turns of all agents: what is known of them, and the bell that wakes whoever tends them.
#[derive(Default)]
pub struct SchedulerHandle {
    scheduler: Mutex<Scheduler>,
    pub(super) wake_driver: Notify,
    /// Rung where agents may have become idle, or are to be prompted.
    pub(crate) idle: Notify,
}

impl SchedulerHandle {
    pub(crate) fn desk(&self) -> MutexGuard<'_, Scheduler> {
        self.scheduler.lock()
    }

    pub fn wake(&self) {
        self.wake_driver.notify_one();
    }

    /// Takes in what was committed, in order.
    pub fn learn(&self, batch: &[LoggedEvent]) {
        let mut scheduler = self.desk();
        let now = Instant::now();
        for logged_event in batch {
            scheduler.apply_event(&logged_event.event, now);
        }
        drop(scheduler);
        self.tell_answers();
        self.wake_driver.notify_one();
        if batch.iter().any(|logged_event| matches!(logged_event.event, Event::RoomChanged(_))) {
            self.idle.notify_one();
        }
    }

    /// Takes in a turn that was open when the hub began, and what set it off.
    pub fn restore(&self, run: Run, trigger: Option<Arc<Message>>) {
        let (mut scheduler, now) = (self.desk(), Instant::now());
        if let Some(message) = trigger {
            scheduler.apply_event(&Event::MessagePosted { message, deliveries: Arc::new([]) }, now);
        }
        scheduler.apply_event(&Event::RunChanged(Arc::new(run)), now);
    }

    /// Hands out what was decided, at once: an agent waits for it.
    pub(super) fn tell_answers(&self) {
        let answers = self.desk().take_answers();
        for (host, approval) in answers {
            super::approvals::tell(&*host, &approval);
        }
    }

    /// A question that was open when the hub began: its gateway is told when it comes, and where the store did not
    /// take that, it is asked again.
    pub fn close_question(&self, question: Option<Approval>) {
        let Some(question) = question.map(Arc::new) else { return };
        let (mut scheduler, now) = (self.desk(), Instant::now());
        match question.decision {
            Some(_) => scheduler.apply_event(&Event::ApprovalDecided(question), now),
            None => scheduler.close_question(&question, now),
        }
    }
}

/// What a gateway says when an agent has finished.
pub struct RunCompletion {
    /// As the gateway has it; what was heard counts if this is only its beginning.
    pub text: Option<Arc<str>>,
    pub chunks: Vec<Chunk>,
    pub target: Option<Box<str>>,
    pub claimed_depth: u32,
    /// To which conversation its side says that it belongs.
    pub conversation: Option<ConversationId>,
    pub outcome: RunOutcome,
}

impl RunCompletion {
    fn ending(self) -> PendingEnd {
        let Self { text, chunks, target, claimed_depth, outcome, .. } = self;
        PendingEnd { text, chunks, target, claimed_depth, ..PendingEnd::plain(outcome) }
    }
}

/// Which agent says something, where, and what its side calls the reply.
#[derive(Clone, Copy)]
pub struct ReplyRef<'a> {
    pub link: GatewayConnectionId,
    pub agent: &'a AgentId,
    pub room: &'a RoomId,
    pub reply: &'a MessageId,
    /// In which turn, where its host knows it by name.
    pub run: Option<&'a RunId>,
}

impl Hub {
    /// A gateway of a person is there.
    pub fn gateway_connected(
        &self,
        owner: &UserId,
        gateway: GatewayId,
        by_room: bool,
        host: Arc<dyn Host>,
    ) -> Result<GatewayConnectionId, Refusal> {
        let mut scheduler = self.turns().desk();
        let known = scheduler.gateways_of(owner);
        if known.len() >= MOST_GATEWAYS && !known.contains(&gateway) {
            return Err(Refusal::TooManyConnections);
        }
        Ok(scheduler.connect_gateway(GatewayConnection { gateway, owner: owner.clone(), by_room, host }))
    }

    /// An agent that this gateway hosts: for who hosts agents in the hub itself.
    pub async fn hosted_agent(&self, id: &AgentId, gateway: &GatewayId) -> Result<Option<Agent>, Refusal> {
        let (id, gateway) = (id.clone(), gateway.clone());
        let found = self.read_snapshot(move |_, store| store.agent(&id)).await?;
        Ok(found.filter(|agent| agent.host.gateway.as_ref() == Some(&gateway)))
    }

    /// A gateway is gone, and its agents with it, unless they came back by another way.
    pub async fn gateway_disconnected(&self, link: GatewayConnectionId) {
        let agents = self.turns().desk().disconnect_gateway(link, Instant::now());
        self.turns().wake_driver.notify_one();
        for agent in agents {
            self.publish_agent_status(&agent).await;
        }
    }

    pub fn is_connected(&self, gateway: &GatewayId) -> bool {
        self.turns().desk().is_linked(gateway)
    }

    /// An agent is there, through this link; the hub has it as registered.
    pub async fn agent_online(&self, link: GatewayConnectionId, agent: &Agent) -> Result<(), Refusal> {
        let taken_over = {
            let mut scheduler = self.turns().desk();
            let before = scheduler.agent_online(&agent.id, link, &agent.name, Instant::now());
            let able = agent.host.capabilities.iter().any(|ability| &**ability == INJECT_CAPABILITY);
            scheduler.set_injectable(&agent.id, able);
            before.and_then(|before| scheduler.host(before))
        };
        self.turns().tell_answers();
        if let Some(host) = taken_over {
            tracing::warn!(agent = %agent.id, "another gateway hosts this agent now");
            host.send(&HostCommand::Remove { agent: &agent.id });
        }
        let id = agent.id.clone();
        let rooms =
            self.read_snapshot(move |_, store| store.memberships(&MemberId::Agent(id.clone()))).await?;
        for membership in rooms {
            self.send_room_context(&membership.room, Some(&agent.id)).await?;
        }
        self.send_pending_rewinds(link, &agent.id);
        self.redispatch_runs(&agent.id).await;
        self.publish_agent_status(&agent.id).await;
        self.turns().wake_driver.notify_one();
        self.turns().idle.notify_one();
        Ok(())
    }

    /// The agent that this link presented is no more.
    pub fn dismiss(&self, link: GatewayConnectionId, agent: &AgentId) {
        let host = self.turns().desk().host(link);
        if let Some(host) = host {
            host.send(&HostCommand::Remove { agent });
        }
    }

    pub async fn agent_offline(&self, link: GatewayConnectionId, agent: &AgentId) {
        if self.turns().desk().agent_offline(agent, link, Instant::now()) {
            self.publish_agent_status(agent).await;
        }
        self.turns().wake_driver.notify_one();
    }

    /// How an agent is doing.
    pub fn agent_status(&self, agent: &AgentId) -> AgentStatus {
        self.turns().desk().online_agent(agent).map_or(AgentStatus::Offline, |seat| seat.status)
    }

    /// Whether a turn has said anything so far.
    pub fn has_spoken(&self, run: &RunId) -> bool {
        self.turns().desk().has_spoken(run)
    }

    pub async fn report_status(
        &self,
        link: GatewayConnectionId,
        agent: &AgentId,
        status: AgentStatus,
        queue_depth: u32,
    ) {
        let news = {
            let mut scheduler = self.turns().desk();
            if scheduler.agent_on_connection(agent, link).is_none() {
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
        self.turns().wake_driver.notify_one();
        if news {
            self.publish_agent_status(agent).await;
        }
    }

    /// A piece of a reply, on its way to everyone in the room.
    pub async fn publish_chunk(&self, voice: ReplyRef<'_>, chunk: &Chunk) -> Result<(), Refusal> {
        let Some((run, name)) = self.bound(voice, false).await? else { return Ok(()) };
        let limits = self.limits();
        let bounds = ReplyLimits { chunks: limits.reply_chunks, bytes: limits.reply_bytes };
        match self.switchboard().publish_chunk(&run, voice.reply, &name, chunk, bounds) {
            // One that began a moment ago is told of a moment later; its end is told by whoever ends it.
            Ok(()) | Err(ChunkRejected::Over) => Ok(()),
            Err(ChunkRejected::TooLong) => {
                Err(Refusal::TooLarge { limit: bounds.bytes, got: bounds.bytes + 1 })
            }
        }
    }

    /// The turn that a reply or a piece of it belongs to, which is opened if there is none; `None` if it is over.
    async fn bound(&self, voice: ReplyRef<'_>, whole: bool) -> Result<Option<(RunId, Box<str>)>, Refusal> {
        let ReplyRef { agent, room, reply, .. } = voice;
        let (bound, name) = self.bind(voice)?;
        match bound {
            ReplyBinding::Run(run, false) => return Ok(Some((run, name))),
            ReplyBinding::Over | ReplyBinding::Gone => return Ok(None),
            ReplyBinding::Run(run, true) => {
                // An id that belongs to another message is not its reply's.
                if self.said_before(reply).await? {
                    self.turns().desk().unbind(&run);
                    return Err(Refusal::Conflict { first: reply.clone() });
                }
                return Ok(Some((run, name)));
            }
            ReplyBinding::Unknown => {}
        }
        if self.said_before(reply).await? {
            return Err(Refusal::Conflict { first: reply.clone() });
        }
        // Replies that are begun and never ended would pile up.
        if !whole && self.turns().desk().is_speaking(agent, room) {
            return Err(Refusal::AlreadyExists(EntityKind::Run));
        }
        self.open_turn(agent, room).await?;
        Ok(match self.bind(voice)? {
            (ReplyBinding::Run(run, _), name) => Some((run, name)),
            (ReplyBinding::Over | ReplyBinding::Gone | ReplyBinding::Unknown, _) => None,
        })
    }

    fn bind(&self, voice: ReplyRef<'_>) -> Result<(ReplyBinding, Box<str>), Refusal> {
        let mut scheduler = self.turns().desk();
        let seat = scheduler
            .agent_on_connection(voice.agent, voice.link)
            .ok_or(Refusal::NotFound(EntityKind::Agent))?;
        let name = seat.name.clone();
        let ReplyRef { agent, room, reply, .. } = voice;
        let bound = match voice.run {
            Some(run) => scheduler.bind_named(agent, room, reply, run),
            None => scheduler.bind(agent, room, reply),
        };
        Ok((bound, name))
    }

    /// Waits until the turn is known here too.
    pub(super) async fn open_turn(&self, agent: &AgentId, room: &RoomId) -> Result<RunId, Refusal> {
        let open = Command::StartUnpromptedRun { agent: agent.clone(), room: room.clone() };
        let Receipt::Run(run) = self.execute(&Caller::OPERATOR, open).await? else {
            return Err(Refusal::Unavailable);
        };
        self.wait_until_caught_up().await;
        Ok(run.id.clone())
    }

    /// Waits until everything that is committed by now is known here too. Taking it from the receipt would be
    /// quicker, and wrong where its end has been told already.
    pub(super) async fn wait_until_caught_up(&self) {
        self.wait_until_published(self.committed()).await;
    }

    async fn said_before(&self, id: &MessageId) -> Result<bool, Refusal> {
        let id = id.clone();
        self.read_snapshot(move |_, store| Ok(store.message(&id)?.is_some())).await
    }

    /// An agent has finished a reply.
    pub async fn complete_reply(&self, voice: ReplyRef<'_>, finished: RunCompletion) -> Result<(), Refusal> {
        // Who names its turn is not mistaken for another.
        if voice.run.is_none()
            && let Some(over) = self.ended_before(voice, finished.conversation.as_ref()).await?
        {
            return self.finished_late(voice, finished, &over).await;
        }
        let run = match self.bound(voice, true).await {
            Ok(Some((run, _))) => run,
            Ok(None) => {
                self.turns().desk().stopped(voice.agent, Some(voice.room));
                self.turns().wake_driver.notify_one();
                return self.complete_ended_run(voice, finished).await;
            }
            Err(Refusal::Conflict { .. }) => {
                let said = self.post_late_reply(voice, finished, None).await;
                if matches!(said, Err(Refusal::Conflict { .. })) {
                    self.fail_speechless(voice);
                }
                return said;
            }
            Err(refusal) => return Err(refusal),
        };
        self.turns().desk().end(&run, finished.ending());
        self.turns().wake_driver.notify_one();
        Ok(())
    }

    /// The turn that ends now, if it is one that was stopped or given up before it said anything. A host that is not
    /// ours does not name the turn, but the conversation, and an agent has one turn in each.
    async fn ended_before(
        &self,
        voice: ReplyRef<'_>,
        conversation: Option<&ConversationId>,
    ) -> Result<Option<Run>, Refusal> {
        let Some(conversation) = conversation.cloned() else { return Ok(None) };
        if self.turns().desk().is_in(voice.agent, &conversation) {
            return Ok(None);
        }
        let (agent, reply) = (voice.agent.clone(), voice.reply.clone());
        let ended = self.read_snapshot(move |_, store| match store.message(&reply)? {
            Some(_) => Ok(None),
            None => store.ended_turn(&agent, &conversation),
        });
        Ok(ended.await?.filter(|run| {
            let given_up =
                [RunOutcome::Cancelled, RunOutcome::Interrupted].map(RunState::Ended).contains(&run.state);
            given_up && run.room == *voice.room && run.reply.is_none()
        }))
    }

    /// What comes of a turn that was over before it began to speak is not the answer of the next. Pieces of it that were
    /// taken for that, since they do not say where they belong, are given back.
    async fn finished_late(
        &self,
        voice: ReplyRef<'_>,
        finished: RunCompletion,
        over: &Run,
    ) -> Result<(), Refusal> {
        let ReplyRef { link, agent, room, reply, .. } = voice;
        let taken_for = {
            let mut scheduler = self.turns().desk();
            scheduler.agent_on_connection(agent, link).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.stopped(agent, Some(room));
            scheduler.run_bound_to(agent, reply)
        };
        self.turns().wake_driver.notify_one();
        let heard = taken_for.and_then(|run| self.switchboard().restart_reply(&run));
        let mut ending = finished.ending();
        match (heard, &over.state) {
            (None, RunState::Ended(RunOutcome::Cancelled)) => return Ok(()),
            // Who has seen it begin sees it end there.
            (Some((text, chunks)), RunState::Ended(RunOutcome::Cancelled)) => {
                ending = PendingEnd { text: Some(text), chunks, ..PendingEnd::plain(RunOutcome::Cancelled) };
            }
            (Some((_, chunks)), _) if ending.chunks.is_empty() => ending.chunks = chunks,
            (Some(_) | None, _) => {}
        }
        let run = self.open_turn(agent, room).await?;
        let mut scheduler = self.turns().desk();
        scheduler.bind_reply(&run, reply);
        scheduler.end(&run, ending);
        drop(scheduler);
        self.turns().wake_driver.notify_one();
        Ok(())
    }

    /// The turn whose reply came under an id that is another message's will get no other.
    fn fail_speechless(&self, voice: ReplyRef<'_>) {
        let mut scheduler = self.turns().desk();
        let here = scheduler.agent_on_connection(voice.agent, voice.link).is_some();
        if let Some(run) = scheduler.run_without_reply(voice.agent, voice.room).filter(|_| here) {
            let reason = "its reply came under the id of another message";
            scheduler.end(&run, PendingEnd::plain(RunOutcome::Failed(reason.into())));
        }
        drop(scheduler);
        self.turns().wake_driver.notify_one();
    }

    /// What comes when its turn was given up: the store knows whether it was said already.
    pub(super) async fn post_late_reply(
        &self,
        voice: ReplyRef<'_>,
        finished: RunCompletion,
        run: Option<RunId>,
    ) -> Result<(), Refusal> {
        let reply_buffer = self.buffer_of(&finished.chunks);
        let (text, chunks) = reply_buffer.finish(finished.text.as_deref());
        let said = AgentReply {
            message: Some(voice.reply.clone()),
            text,
            chunks: drop_text_only_chunks(chunks),
            target: finished.target,
            claimed_depth: finished.claimed_depth,
        };
        let (agent, room) = (voice.agent.clone(), voice.room.clone());
        self.execute(&Caller::OPERATOR, Command::PostLateReply { agent, room, said, run }).await.map(drop)
    }

    /// Chunks as they are kept: what flows together is one.
    pub(super) fn buffer_of(&self, chunks: &[Chunk]) -> ReplyBuffer {
        let bounds = ReplyLimits { chunks: self.limits().reply_chunks, bytes: self.limits().reply_bytes };
        let mut reply_buffer = ReplyBuffer::default();
        for chunk in chunks {
            if reply_buffer.push(chunk, bounds).is_err() {
                break;
            }
        }
        reply_buffer
    }

    /// The plan of a turn as it stands now. Where there is no turn, nobody is told.
    pub async fn update_plan(
        &self,
        link: GatewayConnectionId,
        agent: &AgentId,
        room: Option<&RoomId>,
        plan: Payload,
        state: PlanState,
    ) -> Result<(), Refusal> {
        let run = {
            let mut scheduler = self.turns().desk();
            scheduler.agent_on_connection(agent, link).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.mark_alive(agent, room);
            let Some((run, _)) = scheduler.runs(agent, room).pop() else { return Ok(()) };
            run
        };
        match self.execute(&Caller::OPERATOR, Command::UpdatePlan { run, plan, state }).await {
            // It is over just now.
            Err(Refusal::NotFound(EntityKind::Run)) => Ok(()),
            told => told.map(drop),
        }
    }

    /// Where an agent speaks that does not say where.
    pub fn room_of(&self, agent: &AgentId) -> Option<RoomId> {
        self.turns().desk().runs(agent, None).pop().map(|(_, room)| room)
    }

    /// What happens in a turn besides its words. Where there is no turn, nobody is told.
    pub async fn run_event(
        &self,
        caller: &Caller,
        link: GatewayConnectionId,
        agent: &AgentId,
        room: Option<&RoomId>,
        event: RunEvent,
    ) -> Result<(), Refusal> {
        let (run, room) = {
            let mut scheduler = self.turns().desk();
            scheduler.agent_on_connection(agent, link).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.mark_alive(agent, room);
            let Some(found) = scheduler.runs(agent, room).pop() else { return Ok(()) };
            found
        };
        if let RunEvent::Usage(UsageReport { spent: Some(usage), .. }) = &event {
            let report = Command::ReportUsage { run: run.clone(), usage: *usage };
            self.execute(&Caller::OPERATOR, report).await?;
        }
        if let RunEvent::Task { title, description, assignee } = &event {
            let assignee = self.member_named(&room, assignee.as_deref()).await?;
            let (title, description) = (title.clone(), description.clone());
            let by = Some(agent.clone());
            let new = NewTask { room: room.clone(), by, title, description, due_at: None, assignee };
            self.execute(caller, Command::CreateTask(new)).await?;
        }
        self.switchboard().run_event(&run, &room, event);
        Ok(())
    }

    async fn member_named(&self, room: &RoomId, name: Option<&str>) -> Result<Option<MemberId>, Refusal> {
        let Some(name) = name.map(Box::<str>::from) else { return Ok(None) };
        let room = room.clone();
        let members = self.read_snapshot(move |_, store| store.members(&room, usize::MAX, 0)).await?;
        let found = mention::resolve("", &[name], &members);
        Ok(found.into_iter().next().map(|mention| mention.member))
    }

    /// How far a task of an agent is that is there through this link.
    pub async fn report_task(
        &self,
        caller: &Caller,
        link: GatewayConnectionId,
        task: TaskId,
        status: TaskStatus,
        result: Option<Box<str>>,
    ) -> Result<(), Refusal> {
        let id = task.clone();
        let found = self.read_snapshot(move |_, store| store.task(&id)).await?;
        let agent = found.and_then(|task| task.assignee?.agent().cloned());
        let here = |agent: &AgentId| self.turns().desk().agent_on_connection(agent, link).is_some();
        // Somebody else's task and no task at all are told alike.
        let agent = agent.filter(here).ok_or(Refusal::NotFound(EntityKind::Task))?;
        self.execute(caller, Command::ReportTask { task, agent, status, result }).await.map(drop)
    }

    /// What an agent's terminal shows, to everyone in the room of its turn.
    pub fn terminal(&self, link: GatewayConnectionId, agent: &AgentId, room: Option<&RoomId>, data: &str) {
        let (room, data, agent_name) = {
            let mut scheduler = self.turns().desk();
            let Some(name) = scheduler.agent_on_connection(agent, link).map(|seat| seat.name.clone()) else {
                return;
            };
            let Some((room, data)) = scheduler.terminal(agent, room, data) else { return };
            (room, data, name)
        };
        if !data.is_empty() {
            let signal =
                Signal::Terminal { room: room.clone(), agent: agent.clone(), agent_name, data: data.into() };
            self.switchboard().signal_room(&room, &signal, None);
        }
    }

    /// Somebody wants an agent to stop what it does in a room.
    pub async fn stop(&self, caller: &Caller, room: &RoomId, agent: &AgentId) -> Result<(), Refusal> {
        self.may(caller, Query::MayStop { room: room.clone() }).await?;
        let stops = {
            let mut scheduler = self.turns().desk();
            scheduler.cancel_runs(room, Some(agent), Instant::now());
            self.orders_to_stop(&mut scheduler)
        };
        for (host, agent, room) in stops {
            host.send(&HostCommand::Stop { agent: &agent, room: &room });
        }
        self.turns().wake_driver.notify_one();
        Ok(())
    }

    pub(super) fn orders_to_stop(&self, scheduler: &mut Scheduler) -> Vec<(Arc<dyn Host>, AgentId, RoomId)> {
        let stops = scheduler.take_stops().into_iter();
        stops.filter_map(|(link, agent, room)| Some((scheduler.host(link)?, agent, room))).collect()
    }

    /// Tells the agents in a room, or one of them, where they are.
    pub(super) async fn send_room_context(
        &self,
        room: &RoomId,
        only: Option<&AgentId>,
    ) -> Result<(), Refusal> {
        let Some((room, beside)) = self.beside(room).await? else { return Ok(()) };
        for agent in beside.iter().filter_map(|one| one.member.member.agent()) {
            let host = {
                let scheduler = self.turns().desk();
                scheduler.online_agent(agent).and_then(|seat| scheduler.host(seat.link))
            };
            if let Some(host) = host.filter(|_| only.is_none_or(|only| only == agent)) {
                host.send(&HostCommand::Context { agent, room: &room, members: &beside });
            }
        }
        Ok(())
    }

    /// A room and who is in it.
    async fn beside(&self, room: &RoomId) -> Result<Option<(Room, Vec<RoomPeer>)>, Refusal> {
        let room = room.clone();
        self.read_snapshot(move |hub, store| {
            let Some(found) = store.room(&room)? else { return Ok(None) };
            let mut beside = Vec::new();
            for member in store.members(&room, crate::facts::MEMBERS_IN_CONTEXT, 0)? {
                let agent = match member.member.agent() {
                    Some(id) => store.agent(id)?.map(|agent| (agent, hub.agent_status(id))),
                    None => None,
                };
                beside.push(RoomPeer { member, agent });
            }
            Ok(Some((found, beside)))
        })
        .await
    }

    /// Tells how an agent is doing to its owner and to everyone in a room with it.
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
        // Only a signal is lost if it cannot be told.
        let Ok(Some((agent, people))) = found.await else { return };
        let (status, queue_depth) = {
            let scheduler = self.turns().desk();
            let seat = scheduler.online_agent(&agent.id);
            seat.map_or((AgentStatus::Offline, 0), |seat| (seat.status, seat.queue_depth))
        };
        let Agent { id: agent, name, host, .. } = agent;
        let signal =
            Signal::AgentStatus { agent, name, kind: host.kind, model: host.model, status, queue_depth };
        self.switchboard().signal_people(&people, &signal);
    }
}

/// Chunks that say no more than the text need not be kept beside it.
pub(super) fn drop_text_only_chunks(chunks: Vec<Chunk>) -> Vec<Chunk> {
    let plain = |chunk: &Chunk| chunk.kind == parlor_model::ChunkKind::Text && chunk.metadata.is_none();
    if chunks.iter().all(plain) { Vec::new() } else { chunks }
}
