//! Random commands for services (models that the hub runs as agents).

use super::asks::sealed_key;
use super::dice::Dice;
use super::world::World;
use parlor_model::command::{ChangeService, CreateService, ModelChanges, RemoveService, ServiceChanges};
use parlor_model::{AgentId, ModelAccess, ModelApi};

const APIS: [ModelApi; 2] = [ModelApi::OpenAi, ModelApi::Anthropic];

pub fn create(dice: &mut Dice) -> CreateService {
    CreateService {
        name: dice.one_of(&["Sage", " Oracle ", ""]).into(),
        description: dice.one_of(&["", "knows"]).into(),
        active: dice.once_in(2),
        model: ModelAccess {
            api: dice.one_of(&APIS),
            base_url: "https://a.example/".into(),
            model: "small".into(),
            key: dice.maybe(sealed_key),
        },
        fallback: dice.maybe(|_| "smaller".into()),
        instructions: dice.maybe(|_| "Be kind.".into()),
        most_tokens: dice.maybe(|dice| dice.one_of(&[1, 4096])),
    }
}

pub fn change(dice: &mut Dice, world: &World) -> ChangeService {
    let changes = ServiceChanges {
        name: dice.maybe(|_| "Seer".into()),
        description: dice.maybe(|_| "sees".into()),
        active: dice.maybe(|dice| dice.once_in(2)),
        model: ModelChanges {
            api: dice.maybe(|dice| dice.one_of(&APIS)),
            base_url: dice.maybe(|_| "https://b.example/".into()),
            model: dice.maybe(|_| "large".into()),
            key: dice.maybe(|dice| dice.maybe(sealed_key)).into(),
        },
        fallback: dice.maybe(|dice| dice.maybe(|_| "tiny".into())).into(),
        instructions: dice.maybe(|dice| dice.maybe(|_| "Be brief.".into())).into(),
        most_tokens: dice.maybe(|dice| dice.maybe(|dice| dice.one_of(&[2, 8192]))).into(),
    };
    ChangeService { agent: service(dice, world), changes }
}

pub fn remove(dice: &mut Dice, world: &World) -> RemoveService {
    RemoveService { agent: service(dice, world) }
}

/// A random service, or sometimes an agent that is not a service.
fn service(dice: &mut Dice, world: &World) -> AgentId {
    let never = AgentId::stored("never");
    if dice.once_in(8) { dice.known(&world.agents, never) } else { dice.known(&world.services, never) }
}
