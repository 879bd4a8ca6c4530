//! Changes the profile of an agent.

use super::existing_agent::ExistingAgent;
use super::profile::{apply_profile, check_profile};
use crate::Limits;
use crate::commands::Command;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::validate::FieldErrors;
use parlor_model::command::{AgentWithSubscriptions, ChangeAgent};
use parlor_model::{Agent, Mailbox, Refusal, Scope, Subscription};

pub struct Facts {
    own: ExistingAgent,
    subscriptions: Vec<Subscription>,
}

impl Command for ChangeAgent {
    type Facts = Facts;
    type Receipt = AgentWithSubscriptions;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        check_profile(&self.profile, &mut field_errors);
        field_errors.into_result()
    }

    /// Allowed for the owner of the agent.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let own = view.own_agent(caller, &self.id, Scope::Agents)?;
        let subscriptions = view.store.subscriptions_of(&Mailbox::of(self.id.clone()))?;
        Ok(Facts { own: ExistingAgent::load(own.agent, self.profile.name.as_deref(), view)?, subscriptions })
    }

    fn decide(
        self,
        facts: Facts,
        effects: &mut EffectsBuilder<'_>,
    ) -> Result<AgentWithSubscriptions, Refusal> {
        let Facts { own, subscriptions } = facts;
        let mut agent = Agent::clone(&own.agent);
        apply_profile(self.profile, &mut agent);
        Ok(AgentWithSubscriptions { agent: own.replace(agent, effects), subscriptions })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::commands::test_fixtures::agent;
    use crate::commands::test_fixtures::decide;
    use parlor_model::command::AgentProfile;
    use parlor_model::{EventAudience, Payload, RoomId, UserId, Visibility};

    /// An agent that is a member of the room `lobby`.
    fn in_lobby(agent: &Agent) -> Facts {
        let rooms = vec![RoomId::stored("lobby")];
        Facts {
            own: ExistingAgent { agent: agent.clone().into(), rooms, names: Default::default() },
            subscriptions: Vec::new(),
        }
    }

    #[test]
    fn fields_that_a_change_does_not_name_stay() {
        let setting = |key: &str, value: &str| (key.into(), Payload(value.into()));
        let mut old = agent("coder");
        old.settings = [setting("model", "1"), setting("heartbeat", "2")].into();
        let profile = AgentProfile { settings: vec![setting("model", "3")], ..Default::default() };
        let (changed, _) = decide(ChangeAgent { id: old.id.clone(), profile }, in_lobby(&old)).unwrap();
        let settings = [setting("model", "3"), setting("heartbeat", "2")].into();
        assert_eq!(*changed.agent, Agent { settings, ..old });
    }

    #[test]
    fn a_change_is_published_to_all_who_see_the_agent_or_could_before() {
        let people = |names: &[&str]| names.iter().map(|name| UserId::stored(*name)).collect::<Vec<_>>();
        let old = Agent { visibility: Visibility::List(people(&["bob"])), ..agent("coder") };
        let audience_of = |profile: AgentProfile| {
            let (_, effects) = decide(ChangeAgent { id: old.id.clone(), profile }, in_lobby(&old)).unwrap();
            effects.events[0].event.audience().unwrap().clone()
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
}
