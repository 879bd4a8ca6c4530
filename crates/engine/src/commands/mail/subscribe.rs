//! Subscribes a mailbox to the paths that a pattern matches.

use super::sessions::new_session;
use super::subscriptions::{add_subscription, own_address};
use crate::changes::MailChange;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, OwnAgent, PermitError, room_named_by};
use crate::read_view::WriterView;
use parlor_model::command::Subscribe;
use parlor_model::{Field, MemberId, Refusal, Scope, Session, Subscription};

/// Maximum number of subscriptions of one mailbox.
const MAX_SUBSCRIPTIONS: usize = 1000;

pub struct Facts {
    own: OwnAgent,
    /// Subscriptions of the mailbox.
    subscriptions: Vec<Subscription>,
    /// Sessions of the agent.
    sessions: Vec<Session>,
    /// Number of patterns with `**` before the last segment that the caller's agents have in total.
    globstar_patterns: usize,
}

impl Command for Subscribe {
    type Facts = Facts;
    type Receipt = Vec<Subscription>;

    /// Allowed for the owner of the agent. A pattern that names a room requires that the agent is a member;
    /// patterns with wildcards are checked for each message instead.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let own = view.own_agent(caller, &self.mailbox.agent, Scope::Agents)?;
        if let Some(room) = room_named_by(&self.pattern) {
            let member = MemberId::Agent(self.mailbox.agent.clone());
            if view.store.member(&room, &member)?.is_none() {
                return Err(Refusal::NotAMember { room }.into());
            }
        }
        let subscriptions = view.store.subscriptions_of(&self.mailbox)?;
        let sessions = view.store.sessions(&self.mailbox.agent)?;
        let globstar_patterns = view.routes.globstar_patterns_of(&own.caller.user.id);
        Ok(Facts { own, subscriptions, sessions, globstar_patterns })
    }

    /// A session that does not exist yet is created.
    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Vec<Subscription>, Refusal> {
        let (Self { mailbox, pattern }, mut subscriptions) = (self, facts.subscriptions);
        if let Some(session) = &mailbox.session
            && !facts.sessions.iter().any(|known| known.id == *session)
        {
            let new = new_session(&mailbox.agent, session, facts.sessions.len(), effects.now)?;
            effects.change(MailChange::PutSession(new));
        }
        let automatic = mailbox.session.is_none() && pattern == own_address(&mailbox.agent);
        if !automatic && !subscriptions.iter().any(|known| known.pattern == pattern) {
            if subscriptions.len() >= MAX_SUBSCRIPTIONS {
                return Err(Refusal::invalid(Field::Pattern, "the mailbox has too many subscriptions"));
            }
            let owner = &facts.own.caller.user.id;
            let added = add_subscription(&mailbox, &pattern, owner, facts.globstar_patterns, effects)?;
            subscriptions.push(added);
        }
        Ok(subscriptions)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::mail::sessions::MAX_SESSIONS;
    use crate::commands::mail::subscriptions::MAX_GLOBSTAR_PATTERNS;
    use crate::commands::test_fixtures::{NOW, agent, mailbox, pattern, subscription};
    use crate::commands::test_fixtures::{auth, decide};
    use crate::effects::Effects;
    use crate::routing_index::RouteChange;
    use parlor_model::{AgentId, SessionId, Time};

    fn session(id: &str) -> Session {
        Session::new(AgentId::stored("coder"), SessionId::stored(id), id, Time(1))
    }

    /// Facts of an agent with its main session and these subscriptions.
    fn listening(of: &str, patterns: &[&str]) -> Facts {
        Facts {
            own: OwnAgent { caller: auth("ann"), agent: agent("coder").into() },
            subscriptions: patterns.iter().map(|text| subscription(of, text)).collect(),
            sessions: vec![session("main")],
            globstar_patterns: 0,
        }
    }

    fn subscribe(of: &str, text: &str, facts: Facts) -> Result<(Vec<Subscription>, Effects), Refusal> {
        decide(Subscribe { mailbox: mailbox(of), pattern: pattern(text) }, facts)
    }

    /// The patterns after the command, and the number of changes.
    #[track_caller]
    fn check(of: &str, text: &str, known: &[&str], expected: (&[&str], usize)) -> Effects {
        let (all, effects) = subscribe(of, text, listening(of, known)).unwrap();
        let patterns: Vec<&str> = all.iter().map(|subscription| subscription.pattern.as_str()).collect();
        assert_eq!((&patterns[..], effects.changes.len()), expected);
        effects
    }

    #[test]
    fn the_automatic_subscription_exists_already_but_not_for_a_session() {
        check("coder", "agent/coder", &[], (&[], 0));
        check("coder:main", "agent/coder", &[], (&["agent/coder"], 1));
    }

    #[test]
    fn a_pattern_is_added_once() {
        let repeated = check("coder", "slack/**", &["slack/**"], (&["slack/**"], 0));
        assert_eq!(repeated.route_changes.len(), 0);
        let added = check("coder", "email/*", &["slack/**"], (&["slack/**", "email/*"], 1));
        let [RouteChange::Add { mailbox: of, .. }] = &added.route_changes[..] else { panic!("one route") };
        assert_eq!(*of, mailbox("coder"));
    }

    #[test]
    fn subscribing_a_new_session_creates_it() {
        let effects = check("coder:side", "slack/**", &[], (&["slack/**"], 2));
        let [Change::Mail(MailChange::PutSession(made)), Change::Mail(MailChange::PutSubscription(added))] =
            &effects.changes[..]
        else {
            panic!("a session, then its subscription: {:?}", effects.changes)
        };
        assert_eq!(*made, Session { created_at: NOW, ..session("side") });
        assert_eq!(added.session.as_ref(), Some(&made.id));
        let effects = check("coder:main", "slack/**", &[], (&["slack/**"], 1));
        assert!(
            matches!(&effects.changes[..], [Change::Mail(MailChange::PutSubscription(_))]),
            "the main session exists"
        );
    }

    #[test]
    fn sessions_and_subscriptions_are_limited() {
        let sessions = || (0..MAX_SESSIONS).map(|n| session(&format!("s{n}"))).collect();
        let many_sessions = || Facts { sessions: sessions(), ..listening("coder:new", &[]) };
        let refused = subscribe("coder:new", "x", many_sessions()).map(|(all, _)| all);
        assert_eq!(refused, Err(Refusal::invalid(Field::Session, "the agent has too many sessions")));
        assert!(subscribe("coder:s7", "x", many_sessions()).is_ok());
        let full = || {
            let patterns = (0..MAX_SUBSCRIPTIONS).map(|n| subscription("coder", &format!("p{n}")));
            Facts { subscriptions: patterns.collect(), ..many_sessions() }
        };
        let refused = subscribe("coder", "x", full()).map(|(all, _)| all);
        assert_eq!(refused, Err(Refusal::invalid(Field::Pattern, "the mailbox has too many subscriptions")));
        assert!(subscribe("coder", "p7", full()).is_ok());
    }

    #[test]
    fn patterns_with_an_inner_globstar_are_limited_per_user() {
        let full = || Facts { globstar_patterns: MAX_GLOBSTAR_PATTERNS, ..listening("coder", &["**/known"]) };
        let rule = "exceeds the limit of 1000 patterns per user with ** before the last segment";
        let refused = subscribe("coder", "**/x", full()).map(|(all, _)| all);
        assert_eq!(refused, Err(Refusal::invalid(Field::Pattern, rule)));
        for pattern in ["slack/**", "*/x", "**/known"] {
            assert!(subscribe("coder", pattern, full()).is_ok(), "{pattern}");
        }
    }
}
