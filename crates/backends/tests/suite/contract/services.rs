//! Services: models that the hub itself runs as agents.

use super::{Ports, each};
use crate::fixtures::{agent, agent_id, user_id};
use parlor_engine::changes::{AccountChange, AgentChange, Change, ModelChange};
use parlor_model::{Agent, ModelAccess, ModelApi, SealedKey, Service, Time};
use std::sync::Arc;

pub fn service(id: &str) -> Service {
    Service {
        agent: agent_id(id),
        active: true,
        model: ModelAccess {
            api: ModelApi::Anthropic,
            base_url: "https://model.example/".into(),
            model: "small".into(),
            key: Some(SealedKey([1, 2, 3].into())),
        },
        fallback: Some("smaller".into()),
        instructions: Some("Be kind.".into()),
        most_tokens: Some(u32::MAX),
        updated_at: Time(7),
    }
}

fn put(ports: &mut Ports, id: &str, owner: &str, created: i64) -> Agent {
    let agent = Agent { created_at: Time(created), ..agent(id, owner) };
    let changes = [
        Change::Agent(AgentChange::PutAgent(Arc::new(agent.clone()))),
        Change::Model(ModelChange::PutService(Arc::new(service(id)))),
    ];
    ports.change(changes.into());
    agent
}

#[test]
fn services_are_listed_with_their_agent_oldest_first() {
    each(|ports| {
        let (late, early) = (put(ports, "a", "ann", 2), put(ports, "b", "bob", 1));
        ports.change(vec![Change::Agent(AgentChange::PutAgent(Arc::new(agent("c", "ann"))))]);
        assert_eq!(ports.read(|s| s.services()), [(early, service("b")), (late.clone(), service("a"))]);
        let bare = Service {
            active: false,
            model: ModelAccess { api: ModelApi::OpenAi, key: None, ..service("a").model },
            fallback: None,
            instructions: None,
            most_tokens: None,
            ..service("a")
        };
        ports.change(vec![Change::Model(ModelChange::PutService(Arc::new(bare.clone())))]);
        assert_eq!(ports.read(|s| s.service(&late.id)), Some(bare));
        assert_eq!(ports.read(|s| s.service(&agent_id("c"))), None);
    });
}

#[test]
fn a_service_is_deleted_with_its_agent_and_with_the_owner_of_the_agent() {
    each(|ports| {
        for (id, owner) in [("a", "ann"), ("b", "bob"), ("c", "bob")] {
            put(ports, id, owner, 1);
        }
        ports.change(vec![
            Change::Agent(AgentChange::RemoveAgent(agent_id("c"))),
            Change::Account(AccountChange::RemoveUser(user_id("ann"))),
        ]);
        let left = ports.read(|s| s.services());
        assert_eq!(left.iter().map(|(agent, _)| agent.id.as_str()).collect::<Vec<_>>(), ["b"]);
        for removed in ["a", "c"] {
            assert_eq!(ports.read(|s| s.service(&agent_id(removed))), None);
        }
    });
}
