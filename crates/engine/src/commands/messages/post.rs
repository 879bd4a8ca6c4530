//! Posts a message to a room. The hot path: in the steady state, `permit` reads only the idempotency key.

use super::attachments::{load_attachable, require_attachable};
use super::chosen_id::ChosenId;
use super::idempotency::IdempotencyCheck;
use super::recipients::Recipients;
use crate::Limits;
use crate::commands::Command;
use crate::commands::runs::StandingChain;
use crate::commands::runs::chain::Chain;
use crate::digest::digest_of_post;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, InRoom, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::Posted;
use parlor_model::{
    Agent, ConversationId, Destination, EntityKind, Field, Lineage, Message, Operation, Post, PostAuthor,
    Refusal, Scope, Sender, Upload,
};
use std::sync::Arc;

pub struct Facts {
    sender: InRoom,
    /// The message that it replies to, if that is in the same room.
    parent: Option<Arc<Message>>,
    /// The named uploads that exist.
    uploads: Vec<Upload>,
    recipients: Recipients,
    id: ChosenId,
    /// The agent that posts the message, if the caller does not.
    author: Option<Author>,
    /// The sender's idempotency key with its first use, if any.
    idempotency: Option<IdempotencyCheck>,
}

impl Command for Post {
    type Facts = Facts;
    type Receipt = Posted;

    fn validate(&self, limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.post(self, limits)?;
        field_errors.into_result()
    }

    /// Allowed for every member of the room. An agent of the room can be the sender if the caller owns it.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let sender = view.at_room(caller, Operation::Publish, &self.room)?;
        let parent = match &self.reply_to {
            Some(id) => {
                view.store.message(id)?.filter(|parent| parent.destination.room() == Some(&self.room))
            }
            None => None,
        };
        let uploads = load_attachable(&self.attachments, view.store)?;
        let author = match &self.author {
            Some(author) => Some(Author::load(author, &sender, caller, view)?),
            None => None,
        };
        let (text, mentions, room) = (&self.text, &self.mentions, &sender.room);
        let recipients = match &author {
            Some(author) => Recipients::of_agent_message(text, mentions, &author.agent.id, room, view)?,
            None => Recipients::of_user_message(text, mentions, room, view)?,
        };
        let id = ChosenId::load(self.id.as_ref(), view.store)?;
        let (user, key) = (&sender.caller.user.id, self.client_message_id.as_deref());
        let idempotency =
            IdempotencyCheck::of_client_message(user, key, || digest_of_post(self), view.store)?;
        Ok(Facts { sender, parent, uploads, recipients, id, author, idempotency })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Posted, Refusal> {
        let Facts { sender, parent, uploads, recipients, id, author, idempotency } = facts;
        let user = &sender.caller.user;
        let (from, name) = match &author {
            Some(author) => (Sender::Agent(author.agent.id.clone()), author.agent.name.clone()),
            None => (Sender::User(user.id.clone()), sender.member.name.clone()),
        };
        if let Some(first) = id.first_receipt(&self, &from, effects)? {
            return Ok(first);
        }
        if let Some(first) = IdempotencyCheck::first_receipt(idempotency.as_ref(), effects)? {
            return Ok(first);
        }
        let attachments = require_attachable(&self.attachments, &uploads, &user.id)?;
        if self.reply_to.is_some() && parent.is_none() {
            return Err(Refusal::invalid(Field::ReplyTo, "no such message in this room"));
        }
        let lineage = author.as_ref().map(|author| author.lineage(self.author.as_deref(), effects));
        let new = effects.message(Destination::Room(self.room), from, name, self.text);
        let message = Message {
            id: self.id.unwrap_or(new.id),
            mentions: recipients.mentions.clone(),
            reply_to: self.reply_to,
            // A reply to a reply belongs to the same thread.
            thread: parent.map(|parent| parent.thread.as_ref().unwrap_or(&parent.id).clone()),
            attachments,
            client_message_id: self.client_message_id,
            origin: self.origin,
            answer: author.as_ref().map(|author| author.chain.answer(&author.agent, lineage.as_ref())),
            ..new
        };
        let idempotency = idempotency.as_ref();
        let Some(lineage) = lineage else {
            return Ok(recipients.deliver(message, &sender, idempotency, effects));
        };
        let addressed = recipients.addressed(&sender.room, None);
        Ok(recipients.deliver_to(addressed, Some(&lineage), message, idempotency, effects))
    }
}

/// An agent that posts a message outside a run.
struct Author {
    agent: Arc<Agent>,
    chain: Chain,
    standing: StandingChain,
}

impl Author {
    /// Requires that the caller owns the agent and that it is a member of the room.
    fn load(
        author: &PostAuthor,
        sender: &InRoom,
        caller: &CallerContext,
        view: &mut WriterView<'_>,
    ) -> Result<Self, PermitError> {
        caller.signed_in(Scope::Agents)?;
        let owner = &sender.caller.user.id;
        let agent = view.agent(&author.agent)?.filter(|agent| agent.owner == *owner);
        let agent = agent.ok_or(Refusal::NotFound(EntityKind::Agent))?;
        let not_a_member = Refusal::NotAMember { room: sender.room.id.clone() };
        let agent = view.agent_named_in(&sender.room.id, &agent.id)?.ok_or(not_a_member)?;
        let standing = StandingChain::load(&agent.id, &sender.room.id, view)?;
        let open = match &standing {
            StandingChain::Open(lineage) => Some(lineage),
            StandingChain::Refused | StandingChain::None => None,
        };
        let chain = Chain::load(open, &author.claimed_chain, &sender.room, view)?;
        Ok(Self { agent, chain, standing })
    }

    /// A message that an agent posts during a run continues its lineage. Otherwise it starts a new one, unless its
    /// client claims a longer one.
    fn lineage(&self, claims: Option<&PostAuthor>, effects: &EffectsBuilder<'_>) -> Lineage {
        let start = || Lineage::start(ConversationId::stored(effects.new_id()), self.agent.id.clone());
        let lineage = match &self.standing {
            StandingChain::Open(lineage) => lineage.clone(),
            StandingChain::Refused => start().at_least(effects.limits.chain_depth),
            StandingChain::None => start(),
        };
        self.chain.with_claims(lineage, claims.map_or(0, |claims| claims.claimed_depth))
    }
}
