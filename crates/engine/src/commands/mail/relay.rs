//! Posts a message in a room on behalf of an author outside the hub.
//!
//! Owns: the sender of a relayed message, and the chain of agents that it continues.

use crate::commands::Command;
use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::commands::messages::recipients::Recipients;
use crate::commands::runs::chain::Chain;
use crate::digest::digest_of_relay;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use crate::validate::{FieldErrors, fits};
use crate::{Fault, Limits};
use parlor_model::command::Posted;
use parlor_model::{
    Agent, AgentId, ConversationId, Destination, Field, Lineage, MemberId, Message, MessageKind, Refusal,
    Relay, Relayed, RoomRole, Run, Scope, Sender, mention,
};
use std::sync::Arc;

/// Suffix of the sender's name if the author is not an agent of the account. Clients that show only this name
/// show the mark too.
const UNVERIFIED: &str = "(unverified)";

/// Maximum length of an author's name in the name of the sender.
const MAX_LABEL_CHARS: usize = 64;

pub struct Facts {
    account: InRoom,
    /// The author, if it is an agent of the caller in the room.
    author: Option<Arc<Agent>>,
    recipients: Recipients,
    answered: Option<Answered>,
    /// Chain of agents of the answered message.
    chain: Chain,
    /// The idempotency key of the message in its source with its first use, if any.
    idempotency: Option<IdempotencyCheck>,
}

/// The message in the room that the author answers.
struct Answered {
    message: Arc<Message>,
    /// The run that produced the message.
    run: Option<Run>,
}

impl Answered {
    /// The stored lineage of the message; `None` if it was posted without a run.
    fn lineage(&self) -> Option<&Lineage> {
        match &self.message.relayed {
            Some(relayed) => relayed.lineage.as_ref(),
            None => self.run.as_ref().map(|run| &run.lineage),
        }
    }
}

impl Command for Relay {
    type Facts = Facts;
    type Receipt = Posted;

    fn validate(&self, limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        fits(&self.text, limits.message_characters)?;
        field_errors.unless(!self.text.trim().is_empty(), Field::Text, "must not be empty");
        field_errors.line(Field::Author, &self.author, 600);
        if let Some(recipient) = &self.recipient {
            field_errors.line(Field::Recipient, recipient, 600);
        }
        field_errors.unless(self.observers.len() <= 50, Field::Observers, "at most 50");
        for observer in &self.observers {
            field_errors.line(Field::Observers, observer, 600);
        }
        field_errors.origin(&self.source, self.external_id.as_deref());
        field_errors.into_result()
    }

    /// Allowed for members of the room. A message that is posted as an agent requires the scope for agents too.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let account = view.in_room(caller, &self.room, RoomRole::Member, Scope::Write)?;
        let author = author_agent(self, &account, view)?;
        if author.is_some() {
            caller.signed_in(Scope::Agents)?;
        }
        let recipients = recipients(self, &account, author.as_deref(), view)?;
        let answered = answered(self, view)?;
        let continued = answered.as_ref().and_then(Answered::lineage);
        let chain = Chain::load(continued, &[], &account.room, view)?;
        let (user, source, id) = (&account.caller.user.id, &*self.source, self.external_id.as_deref());
        let digest = || digest_of_relay(self);
        let idempotency = IdempotencyCheck::of_external_message(user, source, id, digest, view.store)?;
        Ok(Facts { account, author, recipients, answered, chain, idempotency })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Posted, Refusal> {
        let Facts { account, author, recipients, answered, chain, idempotency } = facts;
        if let Some(first) = IdempotencyCheck::first_receipt(idempotency.as_ref(), effects)? {
            return Ok(first);
        }
        let (sender, sender_name, kind) = match &author {
            Some(agent) => (Sender::Agent(agent.id.clone()), agent.name.clone(), MessageKind::AgentResponse),
            None => {
                // A longer name could push the mark out of sight.
                let label: String = self.author.chars().take(MAX_LABEL_CHARS).collect();
                let name = format!("{label} {UNVERIFIED}").into();
                (Sender::User(account.caller.user.id.clone()), name, MessageKind::Text)
            }
        };
        let lineage = lineage(author.as_ref().map(|agent| &agent.id), answered.as_ref(), effects);
        let message = Message {
            kind,
            mentions: recipients.mentions.clone(),
            source: self.source,
            external_id: self.external_id,
            answer: author.as_ref().map(|agent| chain.answer(agent, lineage.as_ref())),
            relayed: Some(Box::new(Relayed {
                author: self.author,
                verified: author.is_some(),
                recipient: self.recipient,
                observers: self.observers,
                lineage: lineage.clone(),
            })),
            ..effects.message(Destination::Room(self.room), sender, sender_name, self.text)
        };
        let addressed = recipients.addressed(&account.room, Some(account.member.role));
        let (during, idempotency) = (lineage.as_ref(), idempotency.as_ref());
        Ok(recipients.deliver_to(addressed, during, message, idempotency, effects))
    }
}

/// The caller's agent in the room that the author's name or id names, if there is one, with its name in the room.
fn author_agent(
    relay: &Relay,
    account: &InRoom,
    view: &mut WriterView<'_>,
) -> Result<Option<Arc<Agent>>, Fault> {
    let members = view.mentionable(&account.room)?;
    for named in members.iter().filter(|member| mention::is_named(*member, &relay.author)) {
        let MemberId::Agent(id) = &named.member else { continue };
        let agent = view.agent(id)?;
        if agent.is_some_and(|agent| agent.owner == account.caller.user.id) {
            return view.agent_named_in(&account.room.id, id);
        }
    }
    Ok(None)
}

fn recipients(
    relay: &Relay,
    account: &InRoom,
    author: Option<&Agent>,
    view: &mut WriterView<'_>,
) -> Result<Recipients, Fault> {
    let (room, author) = (&account.room, author.map(|agent| &agent.id));
    let members = view.mentionable(room)?;
    let addressed = relay.recipient.as_slice();
    let mentions = mention::resolve("", addressed, &members);
    let observers = mention::resolve("", &relay.observers, &members).into_iter();
    let observers = observers.filter(|observer| !mentions.contains(observer));
    let observers = observers.map(|observer| observer.member).collect();
    let recipients = match author {
        // A recipient who is not in the room is addressed outside the hub. No agent answers in its place.
        _ if !addressed.is_empty() && mentions.is_empty() => Recipients::of_quiet_message(room, view)?,
        Some(author) => Recipients::of_agent_message("", addressed, author, room, view)?,
        None => Recipients::of_user_message("", addressed, room, view)?,
    };
    Ok(Recipients { observers, ..recipients })
}

/// Loads the message that the author answers and the run that produced it. A message that was deleted, or
/// that is in another room, counts as missing.
fn answered(relay: &Relay, view: &mut WriterView<'_>) -> Result<Option<Answered>, Fault> {
    let Some(id) = &relay.continues else { return Ok(None) };
    let message = view.store.message(id)?;
    let Some(message) = message.filter(|message| message.destination.room() == Some(&relay.room)) else {
        return Ok(None);
    };
    let run = match &message.run_output {
        Some(output) => view.store.run(&output.run)?,
        None => None,
    };
    Ok(Some(Answered { message, run }))
}

/// The chain of agents up to the author: the chain of the answered message, continued by the author.
fn lineage(
    author: Option<&AgentId>,
    answered: Option<&Answered>,
    effects: &EffectsBuilder<'_>,
) -> Option<Lineage> {
    let start = |agent: &AgentId| Lineage::start(ConversationId::stored(effects.new_id()), agent.clone());
    let answered = answered.and_then(|Answered { message, run }| {
        let relayed = message.relayed.as_ref().map(|relayed| relayed.lineage.clone());
        relayed.unwrap_or_else(|| match (run, &message.sender) {
            (Some(run), _) => Some(run.lineage.clone()),
            // The agent posted on its own, without a run.
            (None, Sender::Agent(agent)) => Some(start(agent)),
            (None, Sender::User(_) | Sender::Source(_)) => None,
        })
    });
    match answered {
        Some(answered) => Some(answered.continue_outside(author, effects.limits.chain_depth)),
        None => author.map(start),
    }
}
