//! Creates an agent from its folder on the hub's machine, or replaces its configuration.

use super::change_session::check_session_changes;
use super::existing_agent::{ExistingAgent, is_hosted_by_hub};
use super::new_agent::{NewAgent, put_new_agent, require_own_family};
use super::profile::check_profile;
use super::registration::{host_of, validate_registration};
use crate::Limits;
use crate::changes::MailChange;
use crate::commands::Command;
use crate::commands::mail::sessions::new_session;
use crate::commands::mail::subscriptions::{add_subscription, own_address};
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, room_named_by};
use crate::read_view::WriterView;
use crate::routing_index::RouteChange;
use crate::validate::FieldErrors;
use parlor_model::command::{AgentProfile, ConfigureAgent, SessionChanges, SessionConfig};
use parlor_model::{
    Agent, AgentHost, AgentId, EntityKind, Field, Mailbox, MemberId, Pattern, Refusal, RoomId, Session,
    SessionId, Subscription, UserId,
};
use std::collections::BTreeSet;
use std::sync::Arc;

pub struct Facts {
    target: Target,
    sessions: Vec<Session>,
    /// Subscriptions of the mailboxes that the command names.
    subscriptions: Vec<Subscription>,
    /// Number of patterns with `**` before the last segment that the owner's agents have in total.
    globstar_patterns: usize,
}

enum Target {
    Existing(ExistingAgent),
    New(NewAgent),
}

impl Command for ConfigureAgent {
    type Facts = Facts;
    type Receipt = Arc<Agent>;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        validate_registration(&self.registration)?;
        let mut field_errors = FieldErrors::default();
        let description = Some(self.description.clone());
        let settings = self.settings.clone();
        check_profile(&AgentProfile { description, settings, ..AgentProfile::default() }, &mut field_errors);
        let patterns = self.sessions.iter().map(|session| session.subscriptions.len());
        let few = patterns.chain([self.subscriptions.len()]).all(|count| count <= 100);
        field_errors.unless(few, Field::Subscriptions, "at most 100");
        for session in &self.sessions {
            let changes = SessionChanges { title: session.title.clone(), ..SessionChanges::default() };
            check_session_changes(&changes, &mut field_errors);
            let size: usize = session.settings.iter().map(|(name, value)| name.len() + value.0.len()).sum();
            let fits = size <= Session::MAX_SETTINGS_BYTES;
            field_errors.unless(fits, Field::Settings, "is larger than 64 KB");
        }
        field_errors.into_result()
    }

    /// Allowed for the operator. An existing agent must belong to the owner and have no other host. A room can be set,
    /// or subscribed to, only while the agent is a member of it.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        caller.operator()?;
        view.user(&self.owner)?.ok_or(Refusal::NotFound(EntityKind::User))?;
        let id = &self.registration.id;
        let target = match view.agent(id)? {
            Some(agent) if agent.owner == self.owner && (is_hosted_by_hub(&agent) || !agent.is_hosted()) => {
                Target::Existing(ExistingAgent::load(agent, Some(&self.registration.name), view)?)
            }
            Some(_) => return Err(Refusal::BelongsToAnother(EntityKind::Agent).into()),
            None if !self.creates => return Err(Refusal::NotFound(EntityKind::Agent).into()),
            None => {
                require_own_family(id, &self.owner, view)?;
                Target::New(NewAgent::load(id, &self.owner, view)?)
            }
        };
        let sessions = view.store.sessions(id)?;
        let mut subscriptions = view.store.subscriptions_of(&Mailbox::of(id.clone()))?;
        for session in &self.sessions {
            let mailbox = Mailbox { agent: id.clone(), session: Some(session.id.clone()) };
            subscriptions.extend(view.store.subscriptions_of(&mailbox)?);
        }
        for room in new_rooms(self, &sessions, &subscriptions) {
            if view.store.member(&room, &MemberId::Agent(id.clone()))?.is_none() {
                return Err(Refusal::NotAMember { room }.into());
            }
        }
        let globstar_patterns = view.routes.globstar_patterns_of(&self.owner);
        Ok(Facts { target, sessions, subscriptions, globstar_patterns })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Arc<Agent>, Refusal> {
        let Facts { target, mut sessions, subscriptions, globstar_patterns } = facts;
        let (id, owner) = (self.registration.id.clone(), self.owner.clone());
        let agent = match target {
            Target::Existing(existing) => {
                let new = configured(&existing.agent, &self, effects);
                match new == *existing.agent {
                    true => existing.agent.clone(),
                    false => existing.replace(new, effects),
                }
            }
            Target::New(facts) => {
                let new = facts.agent(id.clone(), &self.registration.name, effects.now)?;
                let new = configured(&new, &self, effects);
                let main = Session::new(id.clone(), SessionId::main(), "Main conversation", effects.now);
                sessions.push(main);
                put_new_agent(new, &[], globstar_patterns, effects)?.agent
            }
        };
        let own = Mailbox::of(id.clone());
        replace_subscriptions(&own, &self.subscriptions, &subscriptions, &owner, globstar_patterns, effects)?;
        for config in self.sessions {
            let mailbox = Mailbox { agent: id.clone(), session: Some(config.id.clone()) };
            let wanted = config.subscriptions.clone();
            put_session(&id, config, &mut sessions, effects)?;
            replace_subscriptions(&mailbox, &wanted, &subscriptions, &owner, globstar_patterns, effects)?;
        }
        Ok(agent)
    }
}

/// The rooms that the command adds to sessions or subscriptions.
fn new_rooms(command: &ConfigureAgent, sessions: &[Session], subscriptions: &[Subscription]) -> Vec<RoomId> {
    let mut rooms = Vec::new();
    let added = |pattern: &Pattern, session: Option<&SessionId>| {
        let known = subscriptions
            .iter()
            .any(|subscription| subscription.pattern == *pattern && subscription.session.as_ref() == session);
        room_named_by(pattern).filter(|_| !known)
    };
    rooms.extend(command.subscriptions.iter().filter_map(|pattern| added(pattern, None)));
    for config in &command.sessions {
        let stored = sessions.iter().find(|session| session.id == config.id);
        let unchanged = stored.and_then(|session| session.room.as_ref()) == config.room.as_ref();
        rooms.extend(config.room.clone().filter(|_| !unchanged));
        let patterns = config.subscriptions.iter();
        rooms.extend(patterns.filter_map(|pattern| added(pattern, Some(&config.id))));
    }
    rooms
}

/// The agent with the configuration of the command. What its gateway has registered since then stays.
fn configured(before: &Agent, command: &ConfigureAgent, effects: &EffectsBuilder<'_>) -> Agent {
    let new = host_of(&command.registration, effects.now);
    let host = match before.host.gateway == new.gateway {
        true => AgentHost { kind: new.kind, working_directory: new.working_directory, ..before.host.clone() },
        false => new,
    };
    Agent {
        name: command.registration.name.clone(),
        description: command.description.clone(),
        settings: command.settings.iter().cloned().collect(),
        host,
        ..before.clone()
    }
}

fn put_session(
    agent: &AgentId,
    config: SessionConfig,
    sessions: &mut Vec<Session>,
    effects: &mut EffectsBuilder<'_>,
) -> Result<(), Refusal> {
    let stored = sessions.iter().position(|session| session.id == config.id);
    let before = match stored {
        Some(index) => sessions[index].clone(),
        None => {
            let new = new_session(agent, &config.id, sessions.len(), effects.now)?;
            let created_at = config.created_at.map_or(new.created_at, |at| at.min(effects.now));
            Session { created_at, ..new }
        }
    };
    let last_used_at = config.last_used_at.map(|at| at.min(effects.now));
    let session = Session {
        title: config.title.unwrap_or_else(|| before.title.clone()),
        is_default: config.is_default,
        auto_run: config.auto_run,
        room: config.room,
        settings: config.settings.into_iter().collect(),
        last_used_at: before.last_used_at.max(last_used_at),
        ..before.clone()
    };
    if stored.is_none() || session != before {
        effects.change(MailChange::PutSession(session.clone()));
    }
    match stored {
        Some(index) => sessions[index] = session,
        None => sessions.push(session),
    }
    Ok(())
}

/// Makes a mailbox have exactly these subscriptions, besides the automatic one.
fn replace_subscriptions(
    mailbox: &Mailbox,
    wanted: &[Pattern],
    stored: &[Subscription],
    owner: &UserId,
    globstar_patterns: usize,
    effects: &mut EffectsBuilder<'_>,
) -> Result<(), Refusal> {
    let is_automatic =
        |pattern: &Pattern| mailbox.session.is_none() && *pattern == own_address(&mailbox.agent);
    let wanted: BTreeSet<&Pattern> = wanted.iter().filter(|pattern| !is_automatic(pattern)).collect();
    let stored: BTreeSet<&Pattern> = stored
        .iter()
        .filter(|subscription| {
            subscription.session == mailbox.session && !is_automatic(&subscription.pattern)
        })
        .map(|subscription| &subscription.pattern)
        .collect();
    for pattern in stored.difference(&wanted) {
        let pattern = (*pattern).clone();
        effects.change(MailChange::RemoveSubscription(mailbox.clone(), pattern.clone()));
        effects.routes.push(RouteChange::Remove { pattern, mailbox: mailbox.clone() });
    }
    for pattern in wanted.difference(&stored) {
        add_subscription(mailbox, pattern, owner, globstar_patterns, effects)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::HUB;
    use crate::changes::{AgentChange, Change};
    use crate::commands::test_fixtures::{agent, decide, pattern, registration, subscription};
    use crate::effects::Effects;
    use parlor_model::command::AgentRegistration;
    use parlor_model::{GatewayId, Payload, Time};

    fn configure(id: &str) -> ConfigureAgent {
        ConfigureAgent {
            owner: UserId::stored("ann"),
            creates: true,
            registration: AgentRegistration {
                gateway: GatewayId::stored(HUB),
                id: AgentId::stored(id),
                name: "Coder".into(),
                ..registration()
            },
            description: "Writes code".into(),
            settings: vec![("model".into(), Payload("1".into()))],
            subscriptions: vec![pattern("slack/**")],
            sessions: Vec::new(),
        }
    }

    fn session(id: &str) -> SessionConfig {
        SessionConfig {
            id: SessionId::stored(id),
            title: None,
            is_default: false,
            auto_run: None,
            room: None,
            subscriptions: vec![pattern("email/*")],
            settings: Vec::new(),
            created_at: Some(Time(3)),
            last_used_at: None,
        }
    }

    fn of_existing(existing: &Agent, subscribed: &[&str]) -> Facts {
        Facts {
            target: Target::Existing(ExistingAgent {
                names: Default::default(),
                agent: existing.clone().into(),
                rooms: Vec::new(),
            }),
            sessions: vec![Session::new(existing.id.clone(), SessionId::main(), "Main", Time(1))],
            subscriptions: subscribed.iter().map(|text| subscription("coder", text)).collect(),
            globstar_patterns: 0,
        }
    }

    fn run(command: ConfigureAgent, facts: Facts) -> (Arc<Agent>, Effects) {
        decide(command, facts).unwrap()
    }

    #[test]
    fn settings_and_subscriptions_that_the_folder_does_not_name_are_removed() {
        let mut old = agent("coder");
        old.settings = [("old".into(), Payload("1".into()))].into();
        let (changed, effects) = run(configure("coder"), of_existing(&old, &["slack/**", "gone/*"]));
        assert_eq!(changed.settings, [("model".into(), Payload("1".into()))].into());
        assert_eq!(changed.host.gateway, Some(GatewayId::stored(HUB)));
        let removed = effects.changes.iter().any(|change| {
            matches!(change, Change::Mail(MailChange::RemoveSubscription(_, gone)) if gone.as_str() == "gone/*")
        });
        assert!(removed && effects.route_changes.len() == 1, "{:?}", effects.changes);
        let (_, repeated) = run(configure("coder"), of_existing(&changed, &["slack/**"]));
        assert!(repeated.changes.is_empty() && repeated.events.is_empty(), "nothing changes twice");
    }

    #[test]
    fn what_the_gateway_has_registered_stays() {
        let (mut registered, _) = run(configure("coder"), of_existing(&agent("coder"), &["slack/**"]));
        Arc::make_mut(&mut registered).host.slash_commands = Some(Payload("[]".into()));
        let command = ConfigureAgent { description: "New".into(), ..configure("coder") };
        let (changed, _) = run(command, of_existing(&registered, &["slack/**"]));
        assert_eq!(changed.host, registered.host);
    }

    #[test]
    fn a_new_agent_has_its_main_session_and_the_named_ones() {
        let owner = UserId::stored("ann");
        let new = NewAgent { owner, is_id_of_user: false, agent_count: 0, globstar_patterns: 0 };
        let facts = Facts {
            target: Target::New(new),
            sessions: Vec::new(),
            subscriptions: Vec::new(),
            globstar_patterns: 0,
        };
        let main = SessionConfig { title: Some("Main".into()), subscriptions: Vec::new(), ..session("main") };
        let command = ConfigureAgent { sessions: vec![main, session("side")], ..configure("coder") };
        let (made, effects) = run(command, facts);
        assert_eq!(&*made.description, "Writes code");
        let sessions = effects.changes.iter().filter_map(|change| match change {
            Change::Mail(MailChange::PutSession(session)) => Some((&*session.title, session.created_at)),
            _ => None,
        });
        let sessions: Vec<_> = sessions.collect();
        assert_eq!(sessions.last(), Some(&("side", Time(3))));
        assert!(sessions.iter().any(|(title, _)| *title == "Main"), "{sessions:?}");
        assert!(matches!(&effects.changes[0], Change::Agent(AgentChange::PutAgent(_))));
    }
}
