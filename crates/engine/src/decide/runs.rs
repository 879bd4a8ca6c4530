//! Decides runs of agents: which agents a message triggers, which are refused and why, and how runs start and
//! end.
//!
//! Owns: every agent that a message addresses gets a run or a reason for its refusal, in the transaction of
//! the message.

use super::{Effects, EffectsBuilder, approvals, messages};
use crate::commands::runs::{self, Addressed, Candidate};
use crate::facts::Facts;
use parlor_model::{
    AddressedBy, Agent, AgentId, AgentReply, Command, ConversationId, Destination, EntityKind, Lineage,
    MemberId, Message, MessageId, MessageKind, Receipt, Refusal, Room, RoomId, Run, RunFinish, RunId,
    RunOutcome, RunOutput, RunState, RunTrigger, Sender, StartedRun, Task, Usage, mention,
};
use std::sync::Arc;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::StartRun { .. } => start(effects_builder),
        Command::MergeRun { .. } => merge(effects_builder),
        Command::StartUnpromptedRun { agent, room } => {
            let mut effects_builder = effects_builder;
            let run = unprompted_run(agent, room, &effects_builder)
                .map_err(|_| Refusal::NotFound(EntityKind::Room))?;
            let run = put(run, &mut effects_builder);
            effects_builder.done(Receipt::Run(run))
        }
        Command::FinishRun(finished) => finish(finished, effects_builder),
        Command::PostLateReply { agent, room, said, .. } => {
            post_late_reply(agent, room, said, effects_builder)
        }
        Command::ReportUsage { usage, .. } => report(*usage, effects_builder),
        _ => unreachable!("the dispatcher sends only run commands here"),
    }
}

/// Creates a run, queued or refused with a reason, for every agent that a message addresses. `during` is the
/// lineage of the run in which the message was posted.
pub fn create_runs(
    message: &Message,
    during: Option<&Lineage>,
    parent: Option<&RunId>,
    effects_builder: &mut EffectsBuilder,
) {
    let facts = effects_builder.facts;
    let Some(room) = &facts.room else { return };
    runs::create_runs(message, during, parent, addressed(room, facts), effects_builder);
}

fn addressed<'a>(room: &'a Room, facts: &'a Facts) -> Addressed<'a> {
    Addressed {
        room,
        sender_role: facts.membership.as_ref().map(|own| own.role),
        candidates: &facts.addressed,
        replies_last_minute: facts.replies_last_minute,
    }
}

/// Creates the run for a task that is assigned to an agent, queued or refused with a reason.
pub fn assign(task: &Task, effects_builder: &mut EffectsBuilder) {
    let (Some(room), Some(agent)) =
        (effects_builder.facts.room.clone(), task.assignee.as_ref().and_then(MemberId::agent))
    else {
        return;
    };
    let by_agent = task.created_by.agent().filter(|by| *by != agent).cloned();
    for candidate in effects_builder.facts.addressed.iter().filter(|candidate| candidate.agent.id == *agent) {
        let conversation = ConversationId::stored(effects_builder.decide_context.ids.next());
        let begun = match &by_agent {
            Some(by) => {
                let asker = Lineage::start(conversation.clone(), by.clone());
                asker.extend_to(agent, effects_builder.decide_context.limits.chain_depth).ok()
            }
            None => Some(Lineage::start(conversation.clone(), agent.clone())),
        };
        let refused = match begun {
            Some(_) => refusal_reason(&room, candidate, by_agent.as_ref(), effects_builder),
            None => Some("the chain of agents is too long"),
        };
        let lineage = begun.unwrap_or_else(|| Lineage::start(conversation, agent.clone()));
        let run = Run {
            addressed: AddressedBy::Directly,
            task: Some(task.id.clone()),
            asked_by: by_agent.clone(),
            state: refused
                .map_or(RunState::Queued, |reason| RunState::Ended(RunOutcome::Refused(reason.into()))),
            started_at: None,
            ended_at: refused.map(|_| effects_builder.facts.now),
            ..running(agent, &room.id, lineage, effects_builder)
        };
        put(run, effects_builder);
    }
}

/// The reason why an agent gets no run, if any.
pub fn refusal_reason(
    room: &Room,
    candidate: &Candidate,
    by_agent: Option<&AgentId>,
    effects_builder: &EffectsBuilder,
) -> Option<&'static str> {
    addressed(room, effects_builder.facts).refusal_reason(candidate, by_agent, effects_builder.limits)
}

pub fn put(run: Run, effects_builder: &mut EffectsBuilder) -> Arc<Run> {
    runs::put(run, effects_builder)
}

fn require_run(effects_builder: &EffectsBuilder) -> Result<Run, Refusal> {
    effects_builder.facts.run.clone().ok_or(Refusal::NotFound(EntityKind::Run))
}

/// Starts a queued run, or refuses it because its conditions have changed since it was queued.
fn start(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let (run, now) = (require_run(&effects_builder)?, effects_builder.facts.now);
    let open = effects_builder.facts.room.clone().filter(|_| effects_builder.facts.target.is_some());
    let arrival = effects_builder
        .facts
        .user
        .as_ref()
        .map(|user| RunTrigger::Arrival { name: user.display_name.clone() });
    let task = effects_builder.facts.task.clone().map(|task| RunTrigger::Task(Arc::new(task)));
    let trigger = effects_builder.facts.message.clone().map(RunTrigger::Message).or(task).or(arrival);
    let begun = match (open, trigger) {
        (Some(room), _) if room.is_frozen() => Err("the room is frozen"),
        (Some(room), Some(prompt)) => Ok((room, prompt)),
        (Some(_), None) => Err("the message or task that started the run no longer exists"),
        (None, _) => Err("the agent is no longer in the room"),
    };
    let (room, prompt) = match begun {
        Ok(begun) => begun,
        Err(reason) => {
            let ended = run.ended(RunOutcome::Refused(reason.into()), None, now);
            let run = put(ended.map_err(|_| Refusal::AlreadyExists(EntityKind::Run))?, &mut effects_builder);
            return effects_builder.done(Receipt::Run(run));
        }
    };
    let run =
        put(run.started(now).map_err(|_| Refusal::AlreadyExists(EntityKind::Run))?, &mut effects_builder);
    let members = effects_builder.facts.members.clone();
    effects_builder.done(Receipt::Started(Box::new(StartedRun { run, prompt, room, members })))
}

/// Merges a queued run into a running one. The merged run is published as ended.
fn merge(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let into = effects_builder.facts.running.clone().ok_or(Refusal::NotFound(EntityKind::Run))?;
    let joined = require_run(&effects_builder)?.joined(&into, effects_builder.facts.now);
    let run = put(joined.map_err(|_| Refusal::AlreadyExists(EntityKind::Run))?, &mut effects_builder);
    effects_builder.done(Receipt::Run(run))
}

/// A run without a trigger, which is running from the start.
fn unprompted_run(agent: &AgentId, room: &RoomId, effects_builder: &EffectsBuilder) -> Result<Run, ()> {
    if effects_builder.facts.room.as_ref().is_none_or(|room| room.is_frozen()) {
        return Err(());
    }
    let lineage =
        Lineage::start(ConversationId::stored(effects_builder.decide_context.ids.next()), agent.clone());
    Ok(running(agent, room, lineage, effects_builder))
}

fn running(agent: &AgentId, room: &RoomId, lineage: Lineage, effects_builder: &EffectsBuilder) -> Run {
    Run {
        id: RunId::stored(effects_builder.decide_context.ids.next()),
        agent: agent.clone(),
        room: room.clone(),
        trigger: None,
        task: None,
        asked_by: None,
        arrival: None,
        addressed: AddressedBy::Unasked,
        lineage,
        parent: None,
        state: RunState::Running,
        reply: None,
        usage: Usage::default(),
        queued_at: effects_builder.facts.now,
        started_at: Some(effects_builder.facts.now),
        ended_at: None,
    }
}

fn finish(finished: &RunFinish, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let run = require_run(&effects_builder)?;
    // A reply of an agent that has left the room is dropped; the run ends all the same.
    let is_accepted = effects_builder.facts.target.is_some() && run.state == RunState::Running;
    let said = finished.said.as_ref().filter(|said| is_accepted && !said.is_empty());
    // A reply that was already streamed when the room was frozen is posted, but as cancelled, so that no
    // further agent answers it.
    let frozen = effects_builder.facts.room.as_ref().is_some_and(|room| room.is_frozen());
    let outcome = match &finished.outcome {
        RunOutcome::Complete if frozen => &RunOutcome::Cancelled,
        outcome => outcome,
    };
    let run = end(run, outcome, said, &mut effects_builder)?;
    effects_builder.done(Receipt::Run(run))
}

/// Posts the reply, ends the run, and creates runs for the agents that the reply mentions.
fn end(
    run: Run,
    outcome: &RunOutcome,
    said: Option<&AgentReply>,
    effects_builder: &mut EffectsBuilder,
) -> Result<Arc<Run>, Refusal> {
    let now = effects_builder.facts.now;
    // Must come first: each published event takes the next `Seq`, and the message is created with the one
    // after these.
    approvals::withdraw(effects_builder);
    let message = match said {
        Some(said) => Some(message(&run, outcome, said, effects_builder)?),
        None => None,
    };
    let reply = message.as_ref().map(|message| message.id.clone());
    let ended =
        run.ended(outcome.clone(), reply, now).map_err(|_| Refusal::AlreadyExists(EntityKind::Run))?;
    let posted = message.map(|message| messages::post(message, effects_builder));
    let claimed_depth = said.map_or(0, |said| said.claimed_depth);
    let (lineage, parent) = (ended.lineage.clone().at_least(claimed_depth), ended.id.clone());
    let ended = put(ended, effects_builder);
    if let Some(message) = posted.and_then(|posted| posted.message) {
        create_runs(&message, Some(&lineage), Some(&parent), effects_builder);
    }
    Ok(ended)
}

fn message(
    run: &Run,
    outcome: &RunOutcome,
    said: &AgentReply,
    effects_builder: &EffectsBuilder,
) -> Result<Message, Refusal> {
    let agent: &Agent = effects_builder.facts.agent.as_ref().ok_or(Refusal::NotFound(EntityKind::Agent))?;
    // Refuse an id that a message of another sender or room already has. The agent may send its own message
    // in this room again.
    if let Some(id) = said.message.as_ref().filter(|_| effects_builder.facts.id_taken) {
        return Err(Refusal::Conflict { first: id.clone() });
    }
    let id =
        said.message.clone().unwrap_or_else(|| MessageId::stored(effects_builder.decide_context.ids.next()));
    Ok(Message {
        id,
        seq: effects_builder.next_seq(),
        at: effects_builder.facts.now,
        destination: Destination::Room(run.room.clone()),
        sender: Sender::Agent(agent.id.clone()),
        sender_name: agent.name.clone(),
        kind: MessageKind::AgentResponse,
        text: said.text.clone(),
        mentions: mention::resolve(&said.text, said.target.as_slice(), &effects_builder.facts.members),
        reply_to: None,
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments: Vec::new(),
        client_message_id: None,
        command: None,
        payload: None,
        source: "internal".into(),
        external_id: None,
        edited_at: None,
        run_output: Some(Arc::new(RunOutput {
            run: run.id.clone(),
            outcome: match outcome {
                // The reason of a failure is stored with the run only.
                RunOutcome::Failed(_) => RunOutcome::Failed(Box::default()),
                outcome => outcome.clone(),
            },
            chunks: said.chunks.clone(),
        })),
        relayed: None,
    })
}

/// Posts the complete reply of a run that was given up as interrupted, as a new message. Ignored if the reply
/// has already been posted.
fn post_late_reply(
    agent: &AgentId,
    room: &RoomId,
    said: &AgentReply,
    effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    if let Some(repeated) = messages::first_receipt(&effects_builder)? {
        return effects_builder.done(Receipt::Posted(repeated));
    }
    let before = effects_builder.facts.message.as_ref();
    let own = |message: &Message| {
        message.sender == Sender::Agent(agent.clone()) && message.destination.room() == Some(room)
    };
    // A message id that is already taken belongs to another message.
    if let Some(taken) = before.filter(|message| !own(message)) {
        return Err(Refusal::Conflict { first: taken.id.clone() });
    }
    let was_interrupted = before.is_some_and(|message| {
        message.run_output.as_ref().is_some_and(|output| output.outcome == RunOutcome::Interrupted)
            && message.text != said.text
    });
    // The run had no reply yet when it was given up.
    let had_no_reply = effects_builder.facts.run.as_ref().is_some_and(|run| {
        let own = run.agent == *agent && run.room == *room && before.is_none();
        own && run.state == RunState::Ended(RunOutcome::Interrupted) && run.reply.is_none()
    });
    if !(was_interrupted || had_no_reply) || said.is_empty() {
        return effects_builder.done(Receipt::Done);
    }
    let Ok(run) = unprompted_run(agent, room, &effects_builder) else {
        return effects_builder.done(Receipt::Done);
    };
    let facts = crate::facts::Facts { message: None, ..effects_builder.facts.clone() };
    let mut effects_builder = EffectsBuilder::new(&facts, effects_builder.decide_context);
    let said = AgentReply { message: None, ..said.clone() };
    end(run, &RunOutcome::Complete, Some(&said), &mut effects_builder)?;
    effects_builder.done(Receipt::Done)
}

fn report(usage: Usage, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let run = Run { usage, ..require_run(&effects_builder)? };
    if run.has_ended() && effects_builder.facts.run.as_ref().is_some_and(|before| before.usage == usage) {
        return effects_builder.done(Receipt::Done);
    }
    let run = put(run, &mut effects_builder);
    effects_builder.done(Receipt::Run(run))
}
