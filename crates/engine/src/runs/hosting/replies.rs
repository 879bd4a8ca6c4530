//! Streamed replies: binds the chunks of an agent to a run and publishes them.

use super::super::scheduler::{GatewayConnectionId, ReplyBinding, ReplySlot};
use super::Hosting;
use crate::commands::runs::{LATEST_RUNS_SEARCHED, StandingChain};
use crate::feed::{Begun, ChunkRejected, ReplyLimits};
use parlor_model::{AgentId, Chunk, EntityKind, MemberId, MessageId, Refusal, RoomId, RunContext, RunId};

/// Identifies a reply: gateway connection, agent, context, and the reply id that the gateway chose.
#[derive(Clone, Copy)]
pub struct ReplyRef<'a> {
    pub connection: GatewayConnectionId,
    pub agent: &'a AgentId,
    pub context: &'a RunContext,
    pub reply: &'a MessageId,
    /// Run of the reply, if the gateway names it.
    pub run: Option<&'a RunId>,
}

impl Hosting {
    /// Returns how the hub would use the output of a reply, as of the newest committed event.
    pub async fn reply_slot(&self, reply_ref: ReplyRef<'_>) -> Result<ReplySlot, Refusal> {
        self.wait_until_caught_up().await?;
        let ReplyRef { connection, agent, context, reply, .. } = reply_ref;
        let slot = {
            let scheduler = self.hub.scheduler().lock();
            scheduler.agent_on_connection(agent, connection).ok_or(Refusal::NotFound(EntityKind::Agent))?;
            scheduler.reply_slot(agent, context, reply)
        };
        let Some(room) = context.room().filter(|_| slot == ReplySlot::Vacant) else { return Ok(slot) };
        let (of, since) = (agent.clone(), self.hub.now().minus(self.hub.limits().pair_window));
        let runs =
            self.hub.read_snapshot(move |_, store| store.latest_runs(&of, LATEST_RUNS_SEARCHED)).await?;
        Ok(match StandingChain::of(runs, room, since) {
            StandingChain::Refused => ReplySlot::Refused,
            StandingChain::Open(_) | StandingChain::None => ReplySlot::Vacant,
        })
    }

    /// Binds a reply to the active run of the agent. Starts an unprompted run if the agent has none. Returns the run;
    /// `None` if it has ended.
    pub async fn bind_reply(&self, reply_ref: ReplyRef<'_>) -> Result<Option<RunId>, Refusal> {
        Ok(self.bind_or_open_run(reply_ref, false).await?.map(|(run, _)| run))
    }

    /// Binds a reply as [`Self::bind_reply`] does, and publishes its start. `origin` is the connection of the agent, if
    /// it also subscribes to the room.
    pub async fn begin_reply(
        &self,
        reply_ref: ReplyRef<'_>,
        origin: Option<&str>,
    ) -> Result<Option<RunId>, Refusal> {
        let Some((run, name)) = self.bind_or_open_run(reply_ref, false).await? else { return Ok(None) };
        self.announce(&run, reply_ref, name, origin);
        Ok(Some(run))
    }

    fn announce(&self, run: &RunId, reply_ref: ReplyRef<'_>, agent_name: Box<str>, origin: Option<&str>) {
        let owner = self.hub.scheduler().lock().owner_of(reply_ref.connection);
        let room = self.hub.scheduler().lock().room_of(run);
        if let (Some(owner), Some(room)) = (owner, room) {
            let (message, connection) = (reply_ref.reply.clone(), origin.map(Into::into));
            self.hub.fanout().begin_reply(run, Begun { room, message, agent_name, owner, connection });
        }
    }

    /// Confirms that the agent has stopped in a context: later output belongs to a new reply.
    pub fn confirm_stop(&self, connection: GatewayConnectionId, agent: &AgentId, context: &RunContext) {
        let mut scheduler = self.hub.scheduler().lock();
        if scheduler.agent_on_connection(agent, connection).is_some() {
            scheduler.stopped(agent, Some(context));
        }
        drop(scheduler);
        self.hub.scheduler().wake_driver.notify_one();
    }

    /// Publishes a chunk of a reply to the subscribers of the room.
    pub async fn publish_chunk(&self, reply_ref: ReplyRef<'_>, chunk: &Chunk) -> Result<(), Refusal> {
        let Some((run, name)) = self.bind_or_open_run(reply_ref, false).await? else { return Ok(()) };
        self.announce(&run, reply_ref, name.clone(), None);
        let hub_limits = self.hub.limits();
        let limits = ReplyLimits { chunks: hub_limits.reply_chunks, bytes: hub_limits.reply_bytes };
        match self.hub.fanout().publish_chunk(&run, reply_ref.reply, &name, chunk, limits) {
            // The fan-out does not know the run: it has not applied the start yet, or the run has ended. The
            // chunk is dropped.
            Ok(()) | Err(ChunkRejected::Over) => Ok(()),
            Err(ChunkRejected::TooLong) => {
                Err(Refusal::TooLarge { limit: limits.bytes, got: limits.bytes + 1 })
            }
        }
    }

    /// Returns the run that a reply or a chunk belongs to, with the name of the agent. Starts an unprompted
    /// run if the agent has none, except in a session; `None` if the run has ended. `is_complete` is false for a chunk.
    pub(super) async fn bind_or_open_run(
        &self,
        reply_ref: ReplyRef<'_>,
        is_complete: bool,
    ) -> Result<Option<(RunId, Box<str>)>, Refusal> {
        let ReplyRef { agent, context, reply, .. } = reply_ref;
        let (bound, name) = self.bind(reply_ref)?;
        match bound {
            ReplyBinding::Run(run, false) => return Ok(Some((run, name))),
            ReplyBinding::Ended | ReplyBinding::UnknownRun => return Ok(None),
            ReplyBinding::Run(run, true) => {
                // The id belongs to another message, so it cannot be the id of this run's reply.
                if self.message_exists(reply).await? {
                    self.hub.scheduler().lock().unbind(&run);
                    return Err(Refusal::Conflict { first: reply.clone() });
                }
                let in_room = match context.room() {
                    Some(room) => self.name_in_room(agent, room).await?,
                    None => None,
                };
                let name = in_room.unwrap_or(name);
                self.hub.scheduler().lock().set_agent_name(&run, &name);
                return Ok(Some((run, name)));
            }
            ReplyBinding::Unbound => {}
        }
        if self.message_exists(reply).await? {
            return Err(Refusal::Conflict { first: reply.clone() });
        }
        // Replies that are started and never completed would accumulate.
        if !is_complete && self.hub.scheduler().lock().is_replying(agent, context) {
            return Err(Refusal::AlreadyExists(EntityKind::Run));
        }
        if context.session().is_some() {
            return Ok(None);
        }
        self.open_run(agent, context).await?;
        Ok(match self.bind(reply_ref)? {
            (ReplyBinding::Run(run, _), name) => {
                let in_room = match context.room() {
                    Some(room) => self.name_in_room(agent, room).await?,
                    None => None,
                };
                let name = in_room.unwrap_or(name);
                self.hub.scheduler().lock().set_agent_name(&run, &name);
                Some((run, name))
            }
            (ReplyBinding::Ended | ReplyBinding::UnknownRun | ReplyBinding::Unbound, _) => None,
        })
    }

    fn bind(&self, reply_ref: ReplyRef<'_>) -> Result<(ReplyBinding, Box<str>), Refusal> {
        let mut scheduler = self.hub.scheduler().lock();
        let online = scheduler
            .agent_on_connection(reply_ref.agent, reply_ref.connection)
            .ok_or(Refusal::NotFound(EntityKind::Agent))?;
        let name = online.name.clone();
        let ReplyRef { agent, context, reply, .. } = reply_ref;
        let bound = match reply_ref.run {
            Some(run) => scheduler.bind_named(agent, context, reply, run),
            None => scheduler.bind(agent, context, reply),
        };
        let in_room = match &bound {
            ReplyBinding::Run(run, _) => scheduler.agent_name(run),
            ReplyBinding::Ended | ReplyBinding::UnknownRun | ReplyBinding::Unbound => None,
        };
        Ok((bound, in_room.unwrap_or(name)))
    }

    /// Name of an agent in a room; `None` if it is not a member.
    async fn name_in_room(&self, agent: &AgentId, room: &RoomId) -> Result<Option<Box<str>>, Refusal> {
        let (room, member) = (room.clone(), MemberId::Agent(agent.clone()));
        let found = self.hub.read_snapshot(move |_, store| store.member(&room, &member)).await?;
        Ok(found.map(|member| member.name))
    }

    async fn message_exists(&self, id: &MessageId) -> Result<bool, Refusal> {
        let id = id.clone();
        self.hub.read_snapshot(move |_, store| Ok(store.message(&id)?.is_some())).await
    }
}
