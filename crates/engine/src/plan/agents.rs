//! Agents, their sessions, and what they listen to.

use super::{Change, Draft, Plan, rooms};
use crate::routes::RouteChange;
use parlor_model::command::AgentProfile;
use parlor_model::{
    Agent, AgentId, Command, Event, Mailbox, Path, Pattern, Receipt, Refusal, Session, SessionId,
    Subscription, Thing,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// The most patterns one mailbox listens to.
const MOST_SUBSCRIPTIONS: usize = 1000;
const MOST_SESSIONS: usize = 1000;

pub fn plan(command: &Command, draft: Draft) -> Result<Plan, Refusal> {
    match command {
        Command::CreateAgent { id, profile, subscriptions } => create(id, profile, subscriptions, draft),
        Command::ChangeAgent { profile, .. } => change(profile, draft),
        Command::RemoveAgent { .. } => remove(draft),
        Command::Subscribe { mailbox, pattern } => subscribe(mailbox, pattern, draft),
        Command::Unsubscribe { mailbox, pattern } => unsubscribe(mailbox, pattern, draft),
        _ => unreachable!("the dispatcher sends only agent commands here"),
    }
}

/// What an agent hears without asking.
fn own_address(agent: &AgentId) -> Pattern {
    Pattern::stored(Path::of_agent(agent).as_str())
}

fn create(
    id: &AgentId,
    profile: &AgentProfile,
    wanted: &[Pattern],
    mut draft: Draft,
) -> Result<Plan, Refusal> {
    // An agent that bore a person's id could be taken for that person.
    if draft.facts.agent.is_some() || draft.facts.user.is_some() {
        return Err(Refusal::AlreadyExists(Thing::Agent));
    }
    let now = draft.facts.now;
    let last = id.as_str().rsplit('/').next().unwrap_or_default();
    let mut agent = Agent {
        id: id.clone(),
        owner: draft.actor()?.id.clone(),
        name: last.into(),
        description: "".into(),
        settings: BTreeMap::new(),
        created_at: now,
    };
    apply(profile, &mut agent);
    let agent = Arc::new(agent);
    draft.change(Change::PutAgent(agent.clone()));
    let title = "Main conversation".into();
    let main = Session { agent: id.clone(), id: SessionId::main(), title, created_at: now };
    draft.change(Change::PutSession(main));
    let own = own_address(id);
    let wanted: BTreeSet<&Pattern> = wanted.iter().filter(|pattern| **pattern != own).collect();
    draft.routes.push(RouteChange::Add { pattern: own.clone(), mailbox: Mailbox::of(id.clone()) });
    let mut subscriptions = Vec::new();
    for pattern in wanted {
        subscriptions.push(add(&Mailbox::of(id.clone()), pattern, &mut draft));
    }
    draft.tell(Event::AgentChanged(agent.clone()));
    draft.done(Receipt::Agent { agent, subscriptions })
}

fn apply(profile: &AgentProfile, agent: &mut Agent) {
    if let Some(name) = &profile.name {
        agent.name = name.clone();
    }
    if let Some(description) = &profile.description {
        agent.description = description.clone();
    }
    agent.settings.extend(profile.settings.iter().cloned());
}

fn add(mailbox: &Mailbox, pattern: &Pattern, draft: &mut Draft) -> Subscription {
    let subscription = Subscription {
        agent: mailbox.agent.clone(),
        session: mailbox.session.clone(),
        pattern: pattern.clone(),
        added_at: draft.facts.now,
    };
    draft.change(Change::PutSubscription(subscription.clone()));
    draft.routes.push(RouteChange::Add { pattern: pattern.clone(), mailbox: mailbox.clone() });
    subscription
}

fn change(profile: &AgentProfile, mut draft: Draft) -> Result<Plan, Refusal> {
    let mut agent = draft.facts.agent.clone().ok_or(Refusal::NotFound(Thing::Agent))?;
    apply(profile, &mut agent);
    let agent = Arc::new(agent);
    draft.change(Change::PutAgent(agent.clone()));
    draft.tell(Event::AgentChanged(agent.clone()));
    let subscriptions = draft.facts.subscriptions.clone();
    draft.done(Receipt::Agent { agent, subscriptions })
}

fn remove(mut draft: Draft) -> Result<Plan, Refusal> {
    rooms::leave_all(&mut draft);
    for agent in &draft.facts.agents {
        draft.change(Change::RemoveAgent(agent.id.clone()));
        draft.routes.push(RouteChange::RemoveAgent(agent.id.clone()));
        draft.tell(Event::AgentRemoved(agent.id.clone()));
    }
    draft.done(Receipt::Done)
}

/// Subscribing a session that is not there yet makes it.
fn subscribe(mailbox: &Mailbox, pattern: &Pattern, mut draft: Draft) -> Result<Plan, Refusal> {
    let mut subscriptions = draft.facts.subscriptions.clone();
    if let Some(session) = &mailbox.session
        && !draft.facts.sessions.iter().any(|known| known.id == *session)
    {
        if draft.facts.sessions.len() >= MOST_SESSIONS {
            return Err(Refusal::invalid("sessionId", "the agent has too many sessions"));
        }
        let (agent, id) = (mailbox.agent.clone(), session.clone());
        let created_at = draft.facts.now;
        draft.change(Change::PutSession(Session { agent, title: id.as_str().into(), id, created_at }));
    }
    let automatic = mailbox.session.is_none() && *pattern == own_address(&mailbox.agent);
    if !automatic && !subscriptions.iter().any(|known| known.pattern == *pattern) {
        if subscriptions.len() >= MOST_SUBSCRIPTIONS {
            return Err(Refusal::invalid("pattern", "the mailbox has too many subscriptions"));
        }
        subscriptions.push(add(mailbox, pattern, &mut draft));
    }
    draft.done(Receipt::Subscriptions(subscriptions))
}

fn unsubscribe(mailbox: &Mailbox, pattern: &Pattern, mut draft: Draft) -> Result<Plan, Refusal> {
    if mailbox.session.is_none() && *pattern == own_address(&mailbox.agent) {
        return Err(Refusal::MustRemain(Thing::Subscription));
    }
    let mut subscriptions = draft.facts.subscriptions.clone();
    let known = subscriptions.len();
    subscriptions.retain(|known| known.pattern != *pattern);
    if subscriptions.len() < known {
        draft.change(Change::RemoveSubscription(mailbox.clone(), pattern.clone()));
        draft.routes.push(RouteChange::Remove { pattern: pattern.clone(), mailbox: mailbox.clone() });
    }
    draft.done(Receipt::Subscriptions(subscriptions))
}
