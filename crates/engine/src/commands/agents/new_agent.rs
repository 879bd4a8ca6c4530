//! Creates agents, each with its main session and its subscriptions.

use super::existing_agent::publish_agent;
use crate::Fault;
use crate::changes::{AgentChange, MailChange};
use crate::commands::mail::subscriptions::{add_subscription, own_address};
use crate::effects::EffectsBuilder;
use crate::permission::PermitError;
use crate::read_view::{ReadView, WriterView};
use crate::routing_index::RouteChange;
use parlor_model::command::AgentWithSubscriptions;
use parlor_model::{
    Agent, AgentHost, AgentId, EntityKind, Field, Mailbox, Pattern, Refusal, Session, SessionId, Time,
    UserId, Visibility,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of agents of one user. All users share one routing index, and all agents of a user are
/// removed in one transaction.
const MAX_AGENTS: usize = 1000;

/// Facts about a new agent of the caller.
pub struct NewAgent {
    pub owner: UserId,
    /// Whether a user has the id of the agent.
    pub is_id_of_user: bool,
    /// Number of agents of the owner.
    pub agent_count: usize,
    /// Number of patterns with `**` before the last segment that the owner's agents have in total.
    pub globstar_patterns: usize,
}

impl NewAgent {
    pub fn load(id: &AgentId, owner: &UserId, view: &mut WriterView<'_>) -> Result<Self, Fault> {
        let is_id_of_user = match UserId::parse(id.as_str()) {
            Ok(id) => view.user(&id)?.is_some(),
            Err(_) => false,
        };
        Ok(Self {
            owner: owner.clone(),
            is_id_of_user,
            agent_count: view.store.agents_of(owner)?.len(),
            globstar_patterns: view.routes.globstar_patterns_of(owner),
        })
    }

    /// The agent, without a host.
    pub fn agent(&self, id: AgentId, name: &str, now: Time) -> Result<Agent, Refusal> {
        // An agent with a user's id could be mistaken for that user.
        if self.is_id_of_user {
            return Err(Refusal::AlreadyExists(EntityKind::Agent));
        }
        check_agent_count(self.agent_count)?;
        Ok(new_agent(id, self.owner.clone(), name, now))
    }
}

/// Requires that a user who has this number of agents may have another one.
pub fn check_agent_count(count: usize) -> Result<(), Refusal> {
    if count < MAX_AGENTS {
        return Ok(());
    }
    Err(Refusal::invalid(Field::Id, "exceeds the limit of 1000 agents per user"))
}

/// A private agent without a host.
pub fn new_agent(id: AgentId, owner: UserId, name: &str, now: Time) -> Agent {
    Agent {
        id,
        owner,
        name: name.into(),
        description: "".into(),
        settings: BTreeMap::new(),
        host: AgentHost::default(),
        visibility: Visibility::Private,
        created_at: now,
    }
}

/// Requires that all agents above and below the id of a new agent belong to its owner.
pub fn require_own_family(id: &AgentId, owner: &UserId, view: &mut ReadView<'_>) -> Result<(), PermitError> {
    let mut own = view.store.agents_below(id)?.iter().all(|agent| agent.owner == *owner);
    for ancestor in id.ancestors() {
        own &= view.agent(&ancestor)?.is_none_or(|agent| agent.owner == *owner);
    }
    if own { Ok(()) } else { Err(Refusal::Forbidden.into()) }
}

/// Stores and publishes a new agent with its main session, its automatic subscription and the requested ones.
pub fn put_new_agent(
    agent: Agent,
    requested: &[Pattern],
    globstar_patterns: usize,
    effects: &mut EffectsBuilder<'_>,
) -> Result<AgentWithSubscriptions, Refusal> {
    let agent = store_new_agent(agent, effects);
    let (own, mailbox) = (own_address(&agent.id), Mailbox::of(agent.id.clone()));
    let requested: BTreeSet<&Pattern> = requested.iter().filter(|pattern| **pattern != own).collect();
    let mut subscriptions = Vec::new();
    for pattern in requested {
        subscriptions.push(add_subscription(&mailbox, pattern, &agent.owner, globstar_patterns, effects)?);
    }
    publish_agent(&agent, None, &[], effects);
    Ok(AgentWithSubscriptions { agent, subscriptions })
}

/// Stores a new agent with its main session and its automatic subscription, without publishing it.
pub fn store_new_agent(agent: Agent, effects: &mut EffectsBuilder<'_>) -> Arc<Agent> {
    let agent = Arc::new(agent);
    effects.change(AgentChange::PutAgent(agent.clone()));
    let main = Session::new(agent.id.clone(), SessionId::main(), "Main conversation", effects.now);
    effects.change(MailChange::PutSession(main));
    effects.routes.push(RouteChange::Add {
        pattern: own_address(&agent.id),
        mailbox: Mailbox::of(agent.id.clone()),
        owner: agent.owner.clone(),
    });
    agent
}
