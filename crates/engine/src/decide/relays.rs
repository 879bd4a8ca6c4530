//! Decides messages that a caller relays for an author outside the hub.
//!
//! Owns: the sender of a relayed message, and the chain of agents that it continues.

use super::{Effects, EffectsBuilder, messages, runs};
use parlor_model::{
    ConversationId, Destination, Lineage, Message, MessageId, MessageKind, Receipt, Refusal, Relay, Relayed,
    Sender, mention,
};

/// Suffix of the sender's name if the author is not an agent of the account. Clients that show only this name
/// show the mark too.
const UNVERIFIED: &str = "(unverified)";

/// Maximum length of an author's name in the name of the sender.
const MAX_LABEL_CHARS: usize = 64;

pub fn decide(relay: &Relay, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    if let Some(repeated) = messages::first_receipt(&effects_builder)? {
        return effects_builder.done(Receipt::Posted(repeated));
    }
    let (sender, sender_name, kind) = match &effects_builder.facts.agent {
        Some(agent) => (Sender::Agent(agent.id.clone()), agent.name.clone(), MessageKind::AgentResponse),
        None => {
            let account = effects_builder.actor()?.id.clone();
            // A longer name could push the mark out of sight.
            let label: String = relay.author.chars().take(MAX_LABEL_CHARS).collect();
            (Sender::User(account), format!("{label} {UNVERIFIED}").into(), MessageKind::Text)
        }
    };
    let lineage = lineage(&effects_builder);
    let message = Message {
        id: MessageId::stored(effects_builder.decide_context.ids.next()),
        seq: effects_builder.next_seq(),
        at: effects_builder.facts.now,
        destination: Destination::Room(relay.room.clone()),
        sender,
        sender_name,
        kind,
        text: relay.text.clone(),
        mentions: mention::resolve("", relay.recipient.as_slice(), &effects_builder.facts.members),
        reply_to: None,
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments: Vec::new(),
        client_message_id: None,
        command: None,
        payload: None,
        source: relay.source.clone(),
        external_id: relay.external_id.clone(),
        edited_at: None,
        run_output: None,
        relayed: Some(Box::new(Relayed {
            author: relay.author.clone(),
            verified: effects_builder.facts.agent.is_some(),
            recipient: relay.recipient.clone(),
            observers: relay.observers.clone(),
            lineage: lineage.clone(),
        })),
    };
    let posted = messages::post(message, &mut effects_builder);
    if let Some(message) = &posted.message {
        runs::create_runs(message, lineage.as_ref(), None, &mut effects_builder);
    }
    effects_builder.done(Receipt::Posted(posted))
}

/// The chain of agents up to the author: the chain of the answered message, continued by the author.
fn lineage(effects_builder: &EffectsBuilder) -> Option<Lineage> {
    let facts = effects_builder.facts;
    let author = facts.agent.as_ref().map(|agent| &agent.id);
    let start = |agent: &parlor_model::AgentId| {
        Lineage::start(ConversationId::stored(effects_builder.decide_context.ids.next()), agent.clone())
    };
    let answered = facts.message.as_ref().and_then(|message| {
        let relayed = message.relayed.as_ref().map(|relayed| relayed.lineage.clone());
        relayed.unwrap_or_else(|| match (&facts.run, &message.sender) {
            (Some(run), _) => Some(run.lineage.clone()),
            // The agent posted on its own, without a run.
            (None, Sender::Agent(agent)) => Some(start(agent)),
            (None, Sender::User(_) | Sender::Source(_)) => None,
        })
    });
    match answered {
        Some(answered) => {
            Some(answered.continue_outside(author, effects_builder.decide_context.limits.chain_depth))
        }
        None => author.map(start),
    }
}
