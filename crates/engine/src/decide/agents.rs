//! Decides commands on the subscriptions of agents and their sessions.

use super::{Change, Effects, EffectsBuilder};
use crate::commands::mail::subscriptions::{add_subscription, own_address};
use crate::routing_index::RouteChange;
use parlor_model::{Command, EntityKind, Mailbox, Pattern, Receipt, Refusal, Session};

/// Maximum number of subscriptions of one mailbox.
const MAX_SUBSCRIPTIONS: usize = 1000;
const MAX_SESSIONS: usize = 1000;

pub fn decide(command: &Command, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::Subscribe { mailbox, pattern } => subscribe(mailbox, pattern, effects_builder),
        Command::Unsubscribe { mailbox, pattern } => unsubscribe(mailbox, pattern, effects_builder),
        _ => unreachable!("the dispatcher sends only subscription commands here"),
    }
}

/// Adds a subscription. A session that does not exist yet is created.
fn subscribe(
    mailbox: &Mailbox,
    pattern: &Pattern,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    let mut subscriptions = effects_builder.facts.subscriptions.clone();
    if let Some(session) = &mailbox.session
        && !effects_builder.facts.sessions.iter().any(|known| known.id == *session)
    {
        if effects_builder.facts.sessions.len() >= MAX_SESSIONS {
            return Err(Refusal::invalid("sessionId", "the agent has too many sessions"));
        }
        let (agent, id) = (mailbox.agent.clone(), session.clone());
        let created_at = effects_builder.facts.now;
        effects_builder.change(Change::PutSession(Session {
            agent,
            title: id.as_str().into(),
            id,
            created_at,
        }));
    }
    let automatic = mailbox.session.is_none() && *pattern == own_address(&mailbox.agent);
    if !automatic && !subscriptions.iter().any(|known| known.pattern == *pattern) {
        if subscriptions.len() >= MAX_SUBSCRIPTIONS {
            return Err(Refusal::invalid("pattern", "the mailbox has too many subscriptions"));
        }
        let (owner, globstars) = (&effects_builder.actor()?.id, effects_builder.facts.globstar_patterns);
        subscriptions.push(add_subscription(mailbox, pattern, owner, globstars, &mut effects_builder)?);
    }
    effects_builder.done(Receipt::Subscriptions(subscriptions))
}

fn unsubscribe(
    mailbox: &Mailbox,
    pattern: &Pattern,
    mut effects_builder: EffectsBuilder,
) -> Result<Effects, Refusal> {
    if mailbox.session.is_none() && *pattern == own_address(&mailbox.agent) {
        return Err(Refusal::LastOneRequired(EntityKind::Subscription));
    }
    let mut subscriptions = effects_builder.facts.subscriptions.clone();
    let known = subscriptions.len();
    subscriptions.retain(|known| known.pattern != *pattern);
    if subscriptions.len() < known {
        effects_builder.change(Change::RemoveSubscription(mailbox.clone(), pattern.clone()));
        effects_builder
            .routes
            .push(RouteChange::Remove { pattern: pattern.clone(), mailbox: mailbox.clone() });
    }
    effects_builder.done(Receipt::Subscriptions(subscriptions))
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{NOW, agent, decide_with, facts, mailbox, pattern, subscription};
    use super::*;
    use crate::commands::mail::subscriptions::MAX_GLOBSTAR_PATTERNS;
    use crate::facts::Facts;
    use parlor_model::{AgentId, SessionId, Time};

    fn subscribe(of: &str, text: &str) -> Command {
        Command::Subscribe { mailbox: mailbox(of), pattern: pattern(text) }
    }

    fn unsubscribe(of: &str, text: &str) -> Command {
        Command::Unsubscribe { mailbox: mailbox(of), pattern: pattern(text) }
    }

    fn session(id: &str) -> Session {
        let (agent, id) = (AgentId::stored("coder"), SessionId::stored(id));
        Session { agent, title: id.as_str().into(), id, created_at: Time(1) }
    }

    /// Facts of an agent with its main session and these subscriptions.
    fn listening(of: &str, patterns: &[&str]) -> Facts {
        let mut facts = facts();
        facts.agent = Some(agent("coder"));
        facts.sessions = vec![session("main")];
        facts.subscriptions = patterns.iter().map(|text| subscription(of, text)).collect();
        facts
    }

    /// The patterns after the command, and the number of changes.
    fn patterns(plan: &Effects) -> (Vec<&str>, usize) {
        let Receipt::Subscriptions(all) = &plan.receipt else { panic!("not subscriptions") };
        (all.iter().map(|subscription| subscription.pattern.as_str()).collect(), plan.changes.len())
    }

    #[test]
    fn the_automatic_subscription_stays() {
        let facts = listening("coder", &["agent/coder", "slack/**"]);
        let refused = decide_with(&unsubscribe("coder", "agent/coder"), &facts).map(|plan| plan.receipt);
        assert_eq!(refused, Err(Refusal::LastOneRequired(EntityKind::Subscription)));
        let plan = decide_with(&subscribe("coder", "agent/coder"), &listening("coder", &[])).unwrap();
        assert_eq!(patterns(&plan), (vec![], 0), "the automatic subscription exists already");
    }

    #[test]
    fn the_automatic_subscription_of_an_agent_is_optional_for_its_session() {
        let plan =
            decide_with(&subscribe("coder:main", "agent/coder"), &listening("coder:main", &[])).unwrap();
        assert_eq!(patterns(&plan), (vec!["agent/coder"], 1));
        let facts = listening("coder:main", &["agent/coder"]);
        let plan = decide_with(&unsubscribe("coder:main", "agent/coder"), &facts).unwrap();
        assert_eq!(patterns(&plan), (vec![], 1));
    }

    #[test]
    fn a_pattern_is_added_once_and_removed_once() {
        let facts = listening("coder", &["slack/**"]);
        let plan = decide_with(&subscribe("coder", "slack/**"), &facts).unwrap();
        assert_eq!((patterns(&plan), plan.routes.len()), ((vec!["slack/**"], 0), 0));
        let plan = decide_with(&subscribe("coder", "email/*"), &facts).unwrap();
        assert_eq!(patterns(&plan), (vec!["slack/**", "email/*"], 1));
        assert!(
            matches!(&plan.routes[..], [RouteChange::Add { mailbox: of, .. }] if *of == mailbox("coder"))
        );
        let plan = decide_with(&unsubscribe("coder", "email/*"), &facts).unwrap();
        assert_eq!((patterns(&plan), plan.routes.len()), ((vec!["slack/**"], 0), 0));
        let plan = decide_with(&unsubscribe("coder", "slack/**"), &facts).unwrap();
        assert_eq!(patterns(&plan), (vec![], 1));
        assert!(matches!(&plan.routes[..], [RouteChange::Remove { .. }]));
    }

    #[test]
    fn subscribing_a_new_session_creates_it() {
        let plan = decide_with(&subscribe("coder:side", "slack/**"), &listening("coder:side", &[])).unwrap();
        let [Change::PutSession(made), Change::PutSubscription(added)] = &plan.changes[..] else {
            panic!("a session, then its subscription: {:?}", plan.changes)
        };
        assert_eq!(*made, Session { created_at: NOW, ..session("side") });
        assert_eq!(added.session.as_ref(), Some(&made.id));
        let plan = decide_with(&subscribe("coder:main", "slack/**"), &listening("coder:main", &[])).unwrap();
        assert!(matches!(&plan.changes[..], [Change::PutSubscription(_)]), "the main session exists");
    }

    #[test]
    fn sessions_and_subscriptions_are_limited() {
        let mut facts = listening("coder:new", &[]);
        facts.sessions = (0..MAX_SESSIONS).map(|n| session(&format!("s{n}"))).collect();
        let refused = decide_with(&subscribe("coder:new", "x"), &facts).map(|plan| plan.receipt);
        assert_eq!(refused, Err(Refusal::invalid("sessionId", "the agent has too many sessions")));
        assert!(decide_with(&subscribe("coder:s7", "x"), &facts).is_ok());
        facts.subscriptions =
            (0..MAX_SUBSCRIPTIONS).map(|n| subscription("coder", &format!("p{n}"))).collect();
        let refused = decide_with(&subscribe("coder", "x"), &facts).map(|plan| plan.receipt);
        assert_eq!(refused, Err(Refusal::invalid("pattern", "the mailbox has too many subscriptions")));
        assert!(decide_with(&subscribe("coder", "p7"), &facts).is_ok());
    }

    #[test]
    fn patterns_with_an_inner_globstar_are_limited_per_user() {
        let full = Facts { globstar_patterns: MAX_GLOBSTAR_PATTERNS, ..listening("coder", &["**/known"]) };
        let rule = "exceeds the limit of 1000 patterns per user with ** before the last segment";
        let refused = decide_with(&subscribe("coder", "**/x"), &full).map(|plan| plan.receipt);
        assert_eq!(refused, Err(Refusal::invalid("pattern", rule)));
        for pattern in ["slack/**", "*/x", "**/known"] {
            assert!(decide_with(&subscribe("coder", pattern), &full).is_ok(), "{pattern}");
        }
    }
}
