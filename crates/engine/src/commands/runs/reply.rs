//! Posts the reply of an agent as a message, and ends its run.

use super::chain::Chain;
use super::posting_agent::PostingAgent;
use super::{create_runs, put_ended, put_with_reply};
use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::commands::messages::recipients::{Recipients, put_message};
use crate::effects::EffectsBuilder;
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use crate::{Fault, Limits};
use parlor_model::{
    AgentReply, Chunk, Destination, EntityKind, Field, Lineage, Message, MessageId, MessageKind, Refusal,
    Run, RunOutcome, RunOutput, Sender,
};
use std::sync::Arc;

/// Stateless check of a reply's size.
pub fn validate(said: &AgentReply, limits: &Limits) -> Result<(), Refusal> {
    let (limit, got) = (limits.reply_bytes, said.text.len());
    if got > limit {
        return Err(Refusal::TooLarge { limit, got });
    }
    let got = said.chunks.iter().map(Chunk::length).sum();
    if got > 2 * limit {
        return Err(Refusal::TooLarge { limit: 2 * limit, got });
    }
    let mut field_errors = FieldErrors::default();
    field_errors.unless(said.chunks.len() <= limits.reply_chunks, Field::Chunks, "too many");
    field_errors.publication(said.origin.as_deref());
    field_errors.into_result()
}

/// Facts of a reply that is posted.
pub struct ReplyFacts {
    pub sender: PostingAgent,
    pub recipients: Recipients,
    pub chain: Chain,
}

impl ReplyFacts {
    /// `lineage` is that of the run that the reply ends; `None` for a new run of the agent alone.
    pub fn load(
        said: &AgentReply,
        lineage: Option<&Lineage>,
        sender: PostingAgent,
        view: &mut WriterView<'_>,
    ) -> Result<Self, Fault> {
        let PostingAgent { agent, room } = &sender;
        let recipients =
            Recipients::of_agent_message(&said.text, said.target.as_slice(), &agent.id, room, view)?;
        let chain = Chain::load(lineage, &said.claimed_chain, room, view)?;
        Ok(Self { sender, recipients, chain })
    }
}

/// A reply, the facts about it, and its idempotency key, if it has one.
pub type Reply<'a> = (AgentReply, &'a ReplyFacts, Option<&'a IdempotencyCheck>);

/// Posts the reply, ends the run, and creates runs for the agents that the reply mentions.
pub fn end_run(
    run: &Run,
    outcome: RunOutcome,
    reply: Option<Reply<'_>>,
    effects: &mut EffectsBuilder<'_>,
) -> Result<Arc<Run>, Refusal> {
    let illegal = |_| Refusal::AlreadyExists(EntityKind::Run);
    let Some((said, facts, idempotency)) = reply else {
        return Ok(put_ended(run.ended(outcome, None, effects.now).map_err(illegal)?, effects));
    };
    let lineage = facts.chain.with_claims(run.lineage.clone(), said.claimed_depth);
    let message = Arc::new(message(run, &outcome, &lineage, said, facts, effects));
    let ended = run.ended(outcome, Some(message.id.clone()), effects.now).map_err(illegal)?;
    let deliveries = facts.recipients.deliveries(&message);
    put_message(message.clone(), deliveries, idempotency, effects);
    let ended = put_with_reply(ended, Some(&message.text), effects);
    let addressed = facts.recipients.addressed(&facts.sender.room, None);
    create_runs(&message, Some(&lineage), Some(&ended.id), addressed, effects);
    Ok(ended)
}

/// Ends the run with a message that is already posted or, without a message, with a reply that only the conversation
/// log of its session contains.
pub fn end_run_with(
    run: &Run,
    outcome: RunOutcome,
    reply: Option<MessageId>,
    text: Option<&Arc<str>>,
    effects: &mut EffectsBuilder<'_>,
) -> Result<Arc<Run>, Refusal> {
    let illegal = |_| Refusal::AlreadyExists(EntityKind::Run);
    Ok(put_with_reply(run.ended(outcome, reply, effects.now).map_err(illegal)?, text, effects))
}

fn message(
    run: &Run,
    outcome: &RunOutcome,
    lineage: &Lineage,
    said: AgentReply,
    facts: &ReplyFacts,
    effects: &EffectsBuilder<'_>,
) -> Message {
    let agent = &facts.sender.agent;
    let run_output = RunOutput {
        run: run.id.clone(),
        outcome: match outcome {
            // The reason of a failure is stored with the run only.
            RunOutcome::Failed(_) => RunOutcome::Failed(Box::default()),
            outcome => outcome.clone(),
        },
        chunks: said.chunks,
    };
    let destination = Destination::Room(facts.sender.room.id.clone());
    let sender = Sender::Agent(agent.id.clone());
    let new = effects.message(destination, sender, agent.name.clone(), said.text);
    Message {
        id: said.message.unwrap_or(new.id),
        kind: MessageKind::AgentResponse,
        mentions: facts.recipients.mentions.clone(),
        run_output: Some(Arc::new(run_output)),
        origin: said.origin,
        answer: Some(facts.chain.answer(agent, Some(lineage))),
        ..new
    }
}
