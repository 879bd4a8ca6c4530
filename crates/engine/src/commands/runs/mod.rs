//! Commands on runs, and the creation of runs for the agents that a message or a task addresses.
//!
//! Owns: every agent that a message addresses gets a run or a reason for its refusal, in the transaction of
//! the message.

mod cancel_run;
pub mod chain;
pub mod context;
mod conversation_log;
mod finish_run;
mod merge_run;
mod post_late_reply;
mod posting_agent;
mod reply;
mod report_usage;
mod start_run;
mod start_turn;
mod start_unprompted_run;
mod stop_runs;
mod stop_session;
mod stopping;
#[cfg(test)]
pub mod test_fixtures;
mod withdraw_runs;

use crate::changes::RunChange;
use crate::commands::turns::settle_batch::settle_batch;
use crate::effects::EffectsBuilder;
use crate::ports::BudgetUsage;
use crate::read_view::WriterView;
use crate::{Fault, Limits};
use parlor_model::{
    AddressedBy, Agent, AgentId, ConversationId, Event, Lineage, LineageLimit, Message, Room, RoomId,
    RoomRole, Run, RunCause, RunContext, RunId, RunOutcome, RunPlace, RunState, Sender, Time, Usage,
};
use std::sync::Arc;
use std::time::Duration;

/// Creates a run, queued or refused with a reason, for every agent that a message addresses. `during` is the
/// lineage of the run in which the message was posted.
pub fn create_runs(
    message: &Message,
    during: Option<&Lineage>,
    parent: Option<&RunId>,
    addressed: Addressed<'_>,
    effects: &mut EffectsBuilder<'_>,
) {
    if addressed.candidates.is_empty() {
        return;
    }
    let (room, now) = (addressed.room, effects.now);
    let by_agent = match &message.sender {
        Sender::Agent(agent) => Some(agent),
        Sender::User(_) | Sender::Source(_) => None,
    };
    let conversation = ConversationId::stored(effects.new_id());
    // A message that an agent posts on its own starts a new lineage with that agent.
    let origin = match (during, by_agent) {
        (Some(lineage), _) => Some(lineage.clone()),
        (None, Some(agent)) => Some(Lineage::start(conversation.clone(), agent.clone())),
        (None, None) => None,
    };
    for candidate in addressed.candidates {
        let agent = &candidate.agent;
        if by_agent == Some(&agent.id) {
            continue;
        }
        let max_depth = effects.limits.chain_depth;
        let passed = match &origin {
            Some(lineage) => lineage.extend_to(&agent.id, max_depth).map_err(|broken| (lineage, broken)),
            None => Ok(Lineage::start(conversation.clone(), agent.id.clone())),
        };
        let (lineage, refused) = match passed {
            Ok(lineage) => (lineage, addressed.refusal_reason(candidate, by_agent, effects.limits)),
            Err((lineage, LineageLimit::TooDeep)) => {
                (lineage.clone(), Some("the chain of agents is too long"))
            }
            Err((lineage, LineageLimit::Twice)) => {
                (lineage.clone(), Some("the agent has spoken in this chain already"))
            }
        };
        let run = Run {
            id: RunId::stored(effects.new_id()),
            agent: agent.id.clone(),
            place: RunPlace::Room(room.id.clone()),
            cause: RunCause::Message(message.id.clone()),
            asked_by: by_agent.cloned(),
            addressed: candidate.addressed,
            lineage,
            parent: parent.cloned(),
            state: match refused {
                None => RunState::Queued,
                Some(reason) => RunState::Ended(RunOutcome::Refused(reason.into())),
            },
            reply: None,
            usage: Usage::default(),
            stop_requested: false,
            queued_at: now,
            started_at: None,
            ended_at: refused.map(|_| now),
        };
        put(run, effects);
    }
}

/// The agents that a message addresses, and the facts that decide whether they get a run.
pub struct Addressed<'a> {
    pub room: &'a Room,
    /// Role of the user who sends the message.
    pub sender_role: Option<RoomRole>,
    pub candidates: &'a [Candidate],
    /// Number of replies of the sending agent in the last minute.
    pub replies_last_minute: u64,
}

impl Addressed<'_> {
    /// The reason why an agent gets no run, if any.
    pub fn refusal_reason(
        &self,
        candidate: &Candidate,
        by_agent: Option<&AgentId>,
        limits: &Limits,
    ) -> Option<&'static str> {
        let may_command =
            by_agent.is_some() || self.sender_role.is_some_and(|role| role >= self.room.agent_command_role);
        let speaks_too_often = by_agent.is_some() && self.replies_last_minute >= limits.agent_messages;
        let reasons = [
            (self.room.is_frozen(), "the room is frozen"),
            (!may_command, "only some roles may address agents in this room"),
            (speaks_too_often, "the agent that asks speaks too often"),
            (candidate.asked >= limits.pair_turns, "these two agents talk to each other too often"),
            (candidate.spent.turns >= limits.room_turns, "the turns of this day are used up"),
            (candidate.spent.tokens >= limits.room_tokens, "the tokens of this day are used up"),
        ];
        reasons.into_iter().find(|(applies, _)| *applies).map(|(_, reason)| reason)
    }
}

/// An agent that a message addresses, with the usage that its limits are checked against.
#[derive(Debug, Clone)]
pub struct Candidate {
    pub agent: Agent,
    pub addressed: AddressedBy,
    pub spent: BudgetUsage,
    /// Number of runs that the sending agent triggered for this agent within `pair_window`; 0 if the sender
    /// is not an agent.
    pub asked: u64,
}

impl Candidate {
    /// Loads an agent that a user addresses, if it is hosted.
    pub fn load(
        id: &AgentId,
        addressed: AddressedBy,
        room: &Room,
        view: &mut WriterView<'_>,
    ) -> Result<Option<Self>, Fault> {
        let Some(agent) = view.agent(id)?.filter(|agent| agent.is_hosted()) else { return Ok(None) };
        let day = view.now.minus(Duration::from_secs(24 * 60 * 60));
        let spent = view.store.spent(&RunContext::Room(room.id.clone()), id, day)?;
        Ok(Some(Self { agent: Agent::clone(&agent), addressed, spent, asked: 0 }))
    }

    /// Loads an agent that another agent mentions, if it is hosted.
    pub fn load_asked_by(
        sender: &AgentId,
        id: &AgentId,
        room: &Room,
        view: &mut WriterView<'_>,
    ) -> Result<Option<Self>, Fault> {
        let Some(candidate) = Self::load(id, AddressedBy::Directly, room, view)? else { return Ok(None) };
        let since = view.now.minus(view.limits.pair_window);
        let asked = view.store.asked(&room.id, sender, id, since)?;
        Ok(Some(Self { asked, ..candidate }))
    }
}

/// Number of an agent's latest runs that are searched for its last run in a room.
pub const LATEST_RUNS_SEARCHED: usize = 50;

/// Chain of agents that a message of an agent continues although it names no run.
#[derive(Debug, Clone)]
pub enum StandingChain {
    /// The agent has an open run in the room.
    Open(Lineage),
    /// The newest run of the agent in the room, requested by another agent, was refused within `pair_window`, for
    /// example because the chain is too long. The client of the agent may answer although it has no run.
    Refused,
    None,
}

impl StandingChain {
    pub fn load(agent: &AgentId, room: &RoomId, view: &mut WriterView<'_>) -> Result<Self, Fault> {
        let since = view.now.minus(view.limits.pair_window);
        Ok(Self::of(view.store.latest_runs(agent, LATEST_RUNS_SEARCHED)?, room, since))
    }

    /// As [`Self::load`], but an active run of the agent in any place counts, because its program may post in all rooms
    /// of the agent. Of several active runs, the deepest lineage counts.
    pub fn load_of_program(agent: &AgentId, room: &RoomId, view: &mut WriterView<'_>) -> Result<Self, Fault> {
        let since = view.now.minus(view.limits.pair_window);
        let runs = view.store.latest_runs(agent, LATEST_RUNS_SEARCHED)?;
        let active = runs.iter().filter(|run| run.state == RunState::Running).map(|run| &run.lineage);
        Ok(match active.max_by_key(|lineage| lineage.depth) {
            Some(lineage) => Self::Open(lineage.clone()),
            None => Self::of(runs, room, since),
        })
    }

    /// The lineage that a message of the agent continues; `None` if it starts a new one.
    pub fn into_lineage(self, agent: &AgentId, effects: &EffectsBuilder<'_>) -> Option<Lineage> {
        match self {
            Self::Open(lineage) => Some(lineage),
            Self::Refused => {
                let start = Lineage::start(ConversationId::stored(effects.new_id()), agent.clone());
                Some(start.at_least(effects.limits.chain_depth))
            }
            Self::None => None,
        }
    }

    /// `runs` are the latest runs of the agent; a refusal before `since` does not count.
    pub fn of(runs: Vec<Run>, room: &RoomId, since: Time) -> Self {
        let newest = runs
            .into_iter()
            .filter(|run| run.place == RunPlace::Room(room.clone()))
            .max_by_key(|run| run.queued_at);
        match newest {
            Some(run) if !run.has_ended() => Self::Open(run.lineage),
            Some(run) => {
                let is_refused = matches!(run.state, RunState::Ended(RunOutcome::Refused(_)));
                let to_agent = run.asked_by.is_some() && run.queued_at >= since;
                if is_refused && to_agent { Self::Refused } else { Self::None }
            }
            None => Self::None,
        }
    }
}

/// A run without a trigger, which is running from the start.
pub fn unprompted_run(agent: &AgentId, room: &RoomId, effects: &EffectsBuilder<'_>) -> Run {
    let conversation = ConversationId::stored(effects.new_id());
    new_run(agent, room, Lineage::start(conversation, agent.clone()), effects)
}

/// As [`unprompted_run`], in an existing lineage.
pub fn new_run(agent: &AgentId, room: &RoomId, lineage: Lineage, effects: &EffectsBuilder<'_>) -> Run {
    Run {
        id: RunId::stored(effects.new_id()),
        agent: agent.clone(),
        place: RunPlace::Room(room.clone()),
        cause: RunCause::Unprompted,
        asked_by: None,
        addressed: AddressedBy::Unasked,
        lineage,
        parent: None,
        state: RunState::Running,
        reply: None,
        usage: Usage::default(),
        stop_requested: false,
        queued_at: effects.now,
        started_at: Some(effects.now),
        ended_at: None,
    }
}

/// Stores and publishes the end of a run without a reply.
pub fn put_ended(run: Run, effects: &mut EffectsBuilder<'_>) -> Arc<Run> {
    put_with_reply(run, None, effects)
}

/// Stores and publishes the end of a run. `reply` is the text of its reply, for the conversation log of its session.
fn put_with_reply(run: Run, reply: Option<&Arc<str>>, effects: &mut EffectsBuilder<'_>) -> Arc<Run> {
    let run = put(run, effects);
    conversation_log::record_end(&run, reply, effects);
    run
}

/// Stores and publishes a run. Settles the mail that it holds when it ends.
pub fn put(run: Run, effects: &mut EffectsBuilder<'_>) -> Arc<Run> {
    let run = Arc::new(run);
    // An ended run is stored again when its usage is reported. By then another run may hold the same mail.
    if run.ended_at == Some(effects.now) {
        settle_batch(&run, effects);
    }
    effects.change(RunChange::PutRun(run.clone()));
    effects.publish(Event::RunChanged(run.clone()));
    run
}
