//! The runs that the output of an agent belongs to.

use super::{ActiveRun, GatewayConnectionId, Scheduler};
use parlor_model::{AgentId, ConversationId, MessageId, RoomId, RunContext, RunId, RunPlace, UserId};

/// The run to which a chunk or a completed reply of an agent belongs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReplyBinding {
    /// This active run; `true` if the run had no reply before.
    Run(RunId, bool),
    /// A run that is ending or was stopped: the output is dropped.
    Ended,
    /// The gateway named a run that is not an active run of this agent in this context.
    UnknownRun,
    /// The agent has no active run in the context that could own this reply.
    Unbound,
}

/// How the hub uses the output of a reply.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ReplySlot {
    /// An active run streams this reply.
    Bound,
    /// An active run of the agent in the context has no reply yet.
    Free,
    /// A run of the agent in the context is queued or is being started.
    Queued,
    /// The reply, or the last run in the context, was stopped or is ending: the output is dropped.
    Ended,
    /// The agent has no run in the context.
    Vacant,
    /// The hub refused the agent's last run in the context, which a message of another agent had requested. The output
    /// would answer that message.
    Refused,
}

impl Scheduler {
    /// Returns the use of a reply's output without binding it.
    pub fn reply_slot(&self, agent: &AgentId, context: &RunContext, reply: &MessageId) -> ReplySlot {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let here = runs.filter_map(|run| self.running.get(run)).filter(|live| live.place.is_in(context));
        if let Some(live) = here.clone().find(|live| live.reply.as_ref() == Some(reply)) {
            return if live.ending.is_none() { ReplySlot::Bound } else { ReplySlot::Ended };
        }
        if here.clone().any(|live| live.reply.is_none() && live.ending.is_none()) {
            return ReplySlot::Free;
        }
        if self
            .queued
            .get(agent)
            .is_some_and(|queue| queue.iter().any(|waiting| waiting.place.is_in(context)))
        {
            return ReplySlot::Queued;
        }
        match self.stopped.contains_key(&(agent.clone(), context.clone())) {
            true => ReplySlot::Ended,
            false => ReplySlot::Vacant,
        }
    }

    /// Owner of a gateway connection.
    pub fn owner_of(&self, connection: GatewayConnectionId) -> Option<UserId> {
        self.links.get(&connection).map(|link| link.owner.clone())
    }

    /// Finds the run that a chunk of a reply belongs to: the run that already streams this reply, or else the
    /// agent's active run in the room without a reply. The run is then bound to the reply id.
    pub fn bind(&mut self, agent: &AgentId, context: &RunContext, reply: &MessageId) -> ReplyBinding {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let here: Vec<&RunId> =
            runs.filter(|run| self.running.get(*run).is_some_and(|live| live.place.is_in(context))).collect();
        let find = |matches: &dyn Fn(&ActiveRun) -> bool| {
            here.iter().find(|run| self.running.get(**run).is_some_and(matches)).map(|run| (*run).clone())
        };
        let (run, first) = match find(&|live| live.reply.as_ref() == Some(reply)) {
            Some(run) => (run, false),
            None if self.stopped.contains_key(&(agent.clone(), context.clone())) => {
                return ReplyBinding::Ended;
            }
            None => match find(&|live| live.reply.is_none() && live.ending.is_none()) {
                Some(run) => (run, true),
                None => return ReplyBinding::Unbound,
            },
        };
        let Some(live) = self.running.get_mut(&run) else { return ReplyBinding::Unbound };
        if live.ending.is_some() {
            return ReplyBinding::Ended;
        }
        (live.reply, live.lost_since) = (Some(reply.clone()), None);
        ReplyBinding::Run(run, first)
    }

    /// Whether the agent has an active run in this context that is not ending.
    pub fn is_replying(&self, agent: &AgentId, context: &RunContext) -> bool {
        let mut runs = self.runs_of.get(agent).into_iter().flatten().filter_map(|run| self.running.get(run));
        runs.any(|live| live.place.is_in(context) && live.ending.is_none())
    }

    /// Removes the reply of a run, after the reply id turned out to belong to another message.
    pub fn unbind(&mut self, run: &RunId) {
        if let Some(live) = self.running.get_mut(run) {
            live.reply = None;
        }
    }

    /// Name of the agent of an active run in the room, if the run has a reply.
    pub fn agent_name(&self, run: &RunId) -> Option<Box<str>> {
        self.running.get(run)?.agent_name.clone()
    }

    /// Sets the name of the agent of an active run in the room.
    pub fn set_agent_name(&mut self, run: &RunId, name: &str) {
        if let Some(live) = self.running.get_mut(run) {
            live.agent_name = Some(name.into());
        }
    }

    /// Binds a run to a reply id.
    pub fn bind_reply(&mut self, run: &RunId, reply: &MessageId) {
        if let Some(live) = self.running.get_mut(run) {
            live.reply = Some(reply.clone());
        }
    }

    /// Whether the agent has an active run in this conversation.
    pub fn is_in(&self, agent: &AgentId, conversation: &ConversationId) -> bool {
        let mut runs = self.runs_of.get(agent).into_iter().flatten().filter_map(|run| self.running.get(run));
        runs.any(|live| live.conversation == *conversation)
    }

    /// Finds the active run that is bound to a reply and unbinds it, because the reply belongs to an earlier
    /// run.
    pub fn run_bound_to(&mut self, agent: &AgentId, reply: &MessageId) -> Option<RunId> {
        let mut runs = self.runs_of.get(agent).into_iter().flatten();
        let is_bound = |run: &&RunId| {
            let live = self.running.get(*run).filter(|live| live.ending.is_none());
            live.is_some_and(|live| live.reply.as_ref() == Some(reply))
        };
        let run = runs.find(is_bound).cloned()?;
        self.unbind(&run);
        Some(run)
    }

    /// Returns the active run in the context that a reply with a new id would be bound to.
    pub fn run_without_reply(&self, agent: &AgentId, context: &RunContext) -> Option<RunId> {
        let mut runs = self.runs_of.get(agent).into_iter().flatten();
        let without_reply = |run: &&RunId| {
            let live = self.running.get(*run).filter(|live| live.place.is_in(context));
            live.is_some_and(|live| live.reply.is_none() && live.ending.is_none())
        };
        runs.find(without_reply).cloned()
    }

    /// Room of an active run, if it has one.
    pub fn room_of(&self, run: &RunId) -> Option<RoomId> {
        self.running.get(run).and_then(|live| live.place.room().cloned())
    }

    /// Whether a run has started a reply.
    pub fn has_spoken(&self, run: &RunId) -> bool {
        self.running.get(run).is_some_and(|live| live.reply.is_some())
    }

    /// Returns the replies that are being streamed in a room, with their runs.
    pub fn replies_in(&self, room: &RoomId) -> Vec<(RunId, MessageId)> {
        let here = self.running.iter().filter(|(_, live)| live.place.room() == Some(room));
        here.filter_map(|(run, live)| Some((run.clone(), live.reply.clone()?))).collect()
    }

    /// Returns the active runs of an agent, in one context or in all.
    pub fn runs(&self, agent: &AgentId, context: Option<&RunContext>) -> Vec<(RunId, RunPlace)> {
        let runs = self.runs_of.get(agent).into_iter().flatten();
        let live = runs.filter_map(|run| self.running.get(run).map(|live| (run, live)));
        live.filter(|(_, live)| context.is_none_or(|context| live.place.is_in(context)))
            .map(|(run, live)| (run.clone(), live.place.clone()))
            .collect()
    }

    /// Filters terminal output of an agent's newest active run and returns it with the room to publish it in;
    /// `None` if no active run with a room owns it.
    pub fn terminal(
        &mut self,
        agent: &AgentId,
        context: Option<&RunContext>,
        data: &str,
    ) -> Option<(RoomId, String)> {
        let (run, _) = self.runs(agent, context).pop()?;
        let live = self.running.get_mut(&run).filter(|live| live.ending.is_none())?;
        Some((live.place.room()?.clone(), live.terminal.pass(data)))
    }
}
