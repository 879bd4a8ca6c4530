//! Decides commands on agents, their sessions and their subscriptions.

use super::{Change, Effects, EffectsBuilder, gateways, rooms};
use crate::commands::mail::subscriptions::{add_subscription, own_address};
use crate::routing_index::RouteChange;
use parlor_model::command::AgentProfile;
use parlor_model::{
    Agent, AgentHost, AgentId, Command, EntityKind, Event, EventAudience, Mailbox, Pattern, Receipt, Refusal,
    Session, SessionId, Subscription, Visibility,
};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Maximum number of agents of one user. All users share one routing index, and all agents of a user are
/// removed in one transaction.
const MAX_AGENTS: usize = 1000;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateAgent { id, profile, subscriptions } => {
            create(id, profile, subscriptions, effects_builder)
        }
        Command::ChangeAgent { profile, .. } => change(profile, effects_builder),
        Command::RemoveAgent { .. } => {
            let mut effects_builder = effects_builder;
            gateways::note_removals(&mut effects_builder);
            remove(effects_builder)
        }
        _ => unreachable!("the dispatcher sends only agent commands here"),
    }
}

fn create(
    id: &AgentId,
    profile: &AgentProfile,
    requested: &[Pattern],
    effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    if effects_builder.facts.agent.is_some() {
        return Err(Refusal::AlreadyExists(EntityKind::Agent));
    }
    let last = id.as_str().rsplit('/').next().unwrap_or_default();
    let mut agent = new(id, last, &effects_builder)?;
    apply(profile, &mut agent);
    create_agent(agent, requested, effects_builder)
}

/// A new agent of the caller, without a host.
pub fn new(id: &AgentId, name: &str, effects_builder: &EffectsBuilder) -> Result<Agent, Refusal> {
    // An agent with a user's id could be mistaken for that user.
    if effects_builder.facts.user.is_some() {
        return Err(Refusal::AlreadyExists(EntityKind::Agent));
    }
    if effects_builder.facts.agents.len() >= MAX_AGENTS {
        return Err(Refusal::invalid("id", "exceeds the limit of 1000 agents per user"));
    }
    Ok(Agent {
        id: id.clone(),
        owner: effects_builder.actor()?.id.clone(),
        name: name.into(),
        description: "".into(),
        settings: BTreeMap::new(),
        host: AgentHost::default(),
        visibility: Visibility::Private,
        created_at: effects_builder.facts.now,
    })
}

/// Creates an agent with its main session and its subscriptions.
pub fn create_agent(
    agent: Agent,
    requested: &[Pattern],
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let (agent, subscriptions) = apply_profile(agent, requested, &mut effects_builder)?;
    effects_builder.done(Receipt::Agent { agent, subscriptions })
}

pub fn apply_profile(
    agent: Agent,
    requested: &[Pattern],
    effects_builder: &mut EffectsBuilder,
) -> Result<(Arc<Agent>, Vec<Subscription>), Refusal> {
    let (id, now) = (&agent.id.clone(), effects_builder.facts.now);
    let agent = Arc::new(agent);
    effects_builder.change(Change::PutAgent(agent.clone()));
    let title = "Main conversation".into();
    let main = Session { agent: id.clone(), id: SessionId::main(), title, created_at: now };
    effects_builder.change(Change::PutSession(main));
    let own = own_address(id);
    let requested: BTreeSet<&Pattern> = requested.iter().filter(|pattern| **pattern != own).collect();
    let mailbox = Mailbox::of(id.clone());
    effects_builder.routes.push(RouteChange::Add {
        pattern: own,
        mailbox: mailbox.clone(),
        owner: agent.owner.clone(),
    });
    let mut subscriptions = Vec::new();
    for pattern in requested {
        let (owner, globstars) = (&effects_builder.actor()?.id, effects_builder.facts.globstar_patterns);
        subscriptions.push(add_subscription(&mailbox, pattern, owner, globstars, effects_builder)?);
    }
    publish_agent(&agent, effects_builder);
    Ok((agent, subscriptions))
}

/// Publishes a changed agent to all users who can see it or could see it before. If only the host's
/// connection time has changed, only the owner is notified: other users get that from presence.
pub fn publish_agent(agent: &Arc<Agent>, effects_builder: &mut EffectsBuilder) {
    let before = effects_builder.facts.agent.as_ref();
    let visible_part = |agent: &Agent| {
        let mut visible = agent.seen_by_others();
        (visible.host.seen_at, visible.visibility) = (None, agent.visibility.clone());
        visible
    };
    let audience = match before {
        Some(before) if visible_part(before) == visible_part(agent) => {
            EventAudience::user_and_rooms(&agent.owner, [])
        }
        Some(before) => {
            EventAudience::of(before, effects_builder.facts.rooms.clone()).and(EventAudience::of(agent, []))
        }
        None => EventAudience::of(agent, []),
    };
    effects_builder.publish(Event::AgentChanged { agent: agent.clone(), audience: audience.into() });
}

/// Publishes the removal of an agent. Its rooms are notified by the removal of the member.
pub fn publish_removal(agent: &Agent, effects_builder: &mut EffectsBuilder) {
    let audience = EventAudience::of(agent, []).into();
    effects_builder.publish(Event::AgentRemoved { agent: agent.id.clone(), audience });
}

fn apply(profile: &AgentProfile, agent: &mut Agent) {
    if let Some(name) = &profile.name {
        agent.name = name.clone();
    }
    if let Some(description) = &profile.description {
        agent.description = description.clone();
    }
    agent.settings.extend(profile.settings.iter().cloned());
    if let Some(visibility) = &profile.visibility {
        agent.visibility = visibility.clone();
    }
    if let Some(kind) = &profile.kind {
        agent.host.kind = kind.clone();
    }
}

fn change(profile: &AgentProfile, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let mut agent = effects_builder.facts.agent.clone().ok_or(Refusal::NotFound(EntityKind::Agent))?;
    apply(profile, &mut agent);
    replace(agent, effects_builder)
}

/// Stores and publishes the new state of an existing agent.
pub fn replace(agent: Agent, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let agent = Arc::new(agent);
    effects_builder.change(Change::PutAgent(agent.clone()));
    publish_agent(&agent, &mut effects_builder);
    let subscriptions = effects_builder.facts.subscriptions.clone();
    effects_builder.done(Receipt::Agent { agent, subscriptions })
}

/// Removes all agents in the facts.
pub fn remove(mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    rooms::leave_all(&mut effects_builder);
    for agent in &effects_builder.facts.agents {
        effects_builder.change(Change::RemoveAgent(agent.id.clone()));
        effects_builder.routes.push(RouteChange::RemoveAgent(agent.id.clone()));
        publish_removal(agent, &mut effects_builder);
    }
    effects_builder.done(Receipt::Done)
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{agent, decide_with, facts, pattern, user};
    use super::*;
    use crate::commands::mail::subscriptions::MAX_GLOBSTAR_PATTERNS;
    use crate::facts::Facts;
    use parlor_model::{Payload, RoomId, UserId};

    #[test]
    fn patterns_with_an_inner_globstar_are_limited_per_user() {
        let rule = "exceeds the limit of 1000 patterns per user with ** before the last segment";
        let create = |patterns: &[&str]| {
            let subscriptions = patterns.iter().map(|text| pattern(text)).collect();
            let (id, profile) = (AgentId::stored("new"), AgentProfile::default());
            let facts = Facts { globstar_patterns: MAX_GLOBSTAR_PATTERNS - 2, ..facts() };
            decide_with(&Command::CreateAgent { id, profile, subscriptions }, &facts).map(|_| ())
        };
        assert_eq!(create(&["**/x", "**/y", "z/**"]), Ok(()));
        assert_eq!(create(&["**/x", "**/y", "**/z"]), Err(Refusal::invalid("pattern", rule)));
    }

    #[test]
    fn a_new_agent_has_its_main_session_and_is_subscribed_to_its_own_address() {
        let subscriptions = ["slack/**", "agent/team/coder", "slack/**"].map(pattern).into();
        let (id, profile) = (AgentId::stored("team/coder"), AgentProfile::default());
        let plan = decide_with(&Command::CreateAgent { id, profile, subscriptions }, &facts()).unwrap();
        let [Change::PutAgent(made), Change::PutSession(main), Change::PutSubscription(one)] =
            &plan.changes[..]
        else {
            panic!("the agent, its session, one pattern: {:?}", plan.changes)
        };
        assert_eq!((&*made.name, made.owner.as_str()), ("coder", "ann"));
        assert_eq!((&main.id, one.pattern.as_str()), (&SessionId::main(), "slack/**"));
        let subscribed = plan.routes.iter().map(|change| match change {
            RouteChange::Add { pattern, mailbox, owner }
                if owner.as_str() == "ann" && mailbox.session.is_none() =>
            {
                pattern.as_str()
            }
            other => panic!("not a route to the agent: {other:?}"),
        });
        assert_eq!(subscribed.collect::<Vec<_>>(), ["agent/team/coder", "slack/**"]);
    }

    #[test]
    fn no_agent_has_the_id_of_another_agent_or_of_a_user() {
        let create = Command::CreateAgent {
            id: AgentId::stored("coder"),
            profile: AgentProfile::default(),
            subscriptions: Vec::new(),
        };
        let taken = Facts { agent: Some(agent("coder")), ..facts() };
        let persons = Facts { user: Some(user("coder")), ..facts() };
        for facts in [taken, persons] {
            let refused = decide_with(&create, &facts).map(|plan| plan.receipt);
            assert_eq!(refused, Err(Refusal::AlreadyExists(EntityKind::Agent)));
        }
    }

    #[test]
    fn fields_that_a_change_does_not_name_stay() {
        let setting = |key: &str, value: &str| (key.into(), Payload(value.into()));
        let mut old = agent("coder");
        old.settings = [setting("model", "1"), setting("heartbeat", "2")].into();
        let facts = Facts { agent: Some(old.clone()), ..facts() };
        let profile = AgentProfile { settings: vec![setting("model", "3")], ..Default::default() };
        let plan = decide_with(&Command::ChangeAgent { id: old.id.clone(), profile }, &facts).unwrap();
        let Receipt::Agent { agent, .. } = plan.receipt else { panic!("not an agent") };
        let settings = [setting("model", "3"), setting("heartbeat", "2")].into();
        assert_eq!(*agent, Agent { settings, ..old });
    }

    #[test]
    fn a_change_is_published_to_all_who_see_the_agent_or_could_before() {
        let people = |names: &[&str]| names.iter().map(|name| UserId::stored(*name)).collect::<Vec<_>>();
        let old = Agent { visibility: Visibility::List(people(&["bob"])), ..agent("coder") };
        let facts = Facts { agent: Some(old.clone()), rooms: vec![RoomId::stored("lobby")], ..facts() };
        let audience_of = |profile: AgentProfile| {
            let plan = decide_with(&Command::ChangeAgent { id: old.id.clone(), profile }, &facts).unwrap();
            plan.events[0].event.audience().unwrap().clone()
        };
        let rooms = vec![RoomId::stored("lobby")];
        let renamed = AgentProfile { name: Some("Other".into()), ..Default::default() };
        assert_eq!(
            audience_of(renamed),
            EventAudience { everyone: false, people: people(&["ann", "bob"]), rooms: rooms.clone() }
        );
        let shared = AgentProfile { visibility: Some(Visibility::All), ..Default::default() };
        assert_eq!(
            audience_of(shared),
            EventAudience { everyone: true, people: people(&["ann", "bob"]), rooms }
        );
        let own = EventAudience::user_and_rooms(&UserId::stored("ann"), []);
        assert_eq!(audience_of(AgentProfile::default()), own, "nothing visible to others has changed");
    }

    #[test]
    fn an_agent_is_removed_with_all_below_it() {
        let removed = ["coder/a", "coder/a/b", "coder"].map(agent);
        let facts = Facts { agent: Some(removed[2].clone()), agents: removed.to_vec(), ..facts() };
        let plan = decide_with(&Command::RemoveAgent { id: removed[2].id.clone() }, &facts).unwrap();
        assert_eq!((plan.changes.len(), plan.routes.len(), plan.events.len()), (3, 3, 3));
        for (index, agent) in removed.iter().enumerate() {
            assert!(matches!(&plan.changes[index], Change::RemoveAgent(id) if *id == agent.id));
            assert!(matches!(&plan.routes[index], RouteChange::RemoveAgent(id) if *id == agent.id));
            let audience = EventAudience::of(agent, []).into();
            assert_eq!(plan.events[index].event, Event::AgentRemoved { agent: agent.id.clone(), audience });
        }
    }
}
