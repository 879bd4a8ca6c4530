//! Creates an agent of the caller.

use super::new_agent::{NewAgent, put_new_agent, require_own_family};
use super::profile::{apply_profile, check_profile};
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError, room_named_by};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{AgentWithSubscriptions, CreateAgent};
use parlor_model::{EntityKind, Field, Refusal, Scope};

pub struct Facts {
    new: NewAgent,
    /// Whether an agent with this id exists.
    exists: bool,
}

impl Command for CreateAgent {
    type Facts = Facts;
    type Receipt = AgentWithSubscriptions;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        check_profile(&self.profile, &mut field_errors);
        field_errors.unless(self.subscriptions.len() <= 100, Field::Subscriptions, "at most 100");
        field_errors.into_result()
    }

    /// Allowed for every user. The ids above and below an agent's id are reserved for its owner. A new agent is
    /// not in a room yet, so it cannot subscribe to one.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let owner = &caller.signed_in(Scope::Agents)?.user.id;
        require_own_family(&self.id, owner, view)?;
        if let Some(room) = self.subscriptions.iter().find_map(room_named_by) {
            return Err(Refusal::NotAMember { room }.into());
        }
        let exists = view.agent(&self.id)?.is_some();
        Ok(Facts { new: NewAgent::load(&self.id, owner, view)?, exists })
    }

    fn decide(
        self,
        facts: Facts,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<AgentWithSubscriptions, Refusal> {
        if facts.exists {
            return Err(Refusal::AlreadyExists(EntityKind::Agent));
        }
        let name = self.id.as_str().rsplit('/').next().unwrap_or_default();
        let mut agent = facts.new.agent(self.id.clone(), name, effects.now)?;
        apply_profile(self.profile, &mut agent);
        put_new_agent(agent, &self.subscriptions, facts.new.globstar_patterns, effects)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::{AgentChange, Change, MailChange};
    use crate::commands::mail::subscriptions::MAX_GLOBSTAR_PATTERNS;
    use crate::commands::test_fixtures::decide;
    use crate::commands::test_fixtures::pattern;
    use crate::routing_index::RouteChange;
    use parlor_model::command::AgentProfile;
    use parlor_model::{AgentId, SessionId, UserId};

    fn facts() -> Facts {
        let owner = UserId::stored("ann");
        let new = NewAgent { owner, is_id_of_user: false, agent_count: 0, globstar_patterns: 0 };
        Facts { new, exists: false }
    }

    fn create(id: &str, patterns: &[&str]) -> CreateAgent {
        let subscriptions = patterns.iter().map(|text| pattern(text)).collect();
        CreateAgent { id: AgentId::stored(id), profile: AgentProfile::default(), subscriptions }
    }

    #[test]
    fn patterns_with_an_inner_globstar_are_limited_per_user() {
        let create = |patterns: &[&str]| {
            let mut facts = facts();
            facts.new.globstar_patterns = MAX_GLOBSTAR_PATTERNS - 2;
            decide(create("new", patterns), facts).map(drop)
        };
        assert_eq!(create(&["**/x", "**/y", "z/**"]), Ok(()));
        let rule = "exceeds the limit of 1000 patterns per user with ** before the last segment";
        assert_eq!(create(&["**/x", "**/y", "**/z"]), Err(Refusal::invalid(Field::Pattern, rule)));
    }

    #[test]
    fn a_new_agent_has_its_main_session_and_is_subscribed_to_its_own_address() {
        let command = create("team/coder", &["slack/**", "agent/team/coder", "slack/**"]);
        let (_, effects) = decide(command, facts()).unwrap();
        let [
            Change::Agent(AgentChange::PutAgent(made)),
            Change::Mail(MailChange::PutSession(main)),
            Change::Mail(MailChange::PutSubscription(one)),
        ] = &effects.changes[..]
        else {
            panic!("the agent, its session, one pattern: {:?}", effects.changes)
        };
        assert_eq!((&*made.name, made.owner.as_str()), ("coder", "ann"));
        assert_eq!((&main.id, one.pattern.as_str()), (&SessionId::main(), "slack/**"));
        let subscribed = effects.route_changes.iter().map(|change| match change {
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
        let taken = Facts { exists: true, ..facts() };
        let mut of_user = facts();
        of_user.new.is_id_of_user = true;
        for facts in [taken, of_user] {
            let refused = decide(create("coder", &[]), facts).map(drop);
            assert_eq!(refused, Err(Refusal::AlreadyExists(EntityKind::Agent)));
        }
    }
}
