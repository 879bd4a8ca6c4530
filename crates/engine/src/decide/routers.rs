//! Decides commands on routers: models that choose which agents answer.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::command::{NewRouter, RouterChanges};
use parlor_model::{Command, EntityKind, Receipt, Refusal, Router, RouterId};
use std::sync::Arc;

/// Maximum number of routers of one user.
const MAX_ROUTERS: usize = 50;

pub fn decide(command: &Command, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateRouter(new) => create(new, effects_builder),
        Command::ChangeRouter { changes, .. } => change(changes, effects_builder),
        Command::RemoveRouter { router } => {
            effects_builder.change(Change::RemoveRouter(router.clone()));
            effects_builder.done(Receipt::Done)
        }
        _ => unreachable!("the dispatcher sends only router commands here"),
    }
}

fn create(new: &NewRouter, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    if effects_builder.facts.routers >= MAX_ROUTERS {
        return Err(Refusal::invalid("name", "exceeds the limit of 50 routers per user"));
    }
    let now = effects_builder.facts.now;
    let router = Router {
        id: RouterId::stored(effects_builder.decide_context.ids.next()),
        name: new.name.trim().into(),
        shared: new.shared,
        model: new.model.clone(),
        created_by: effects_builder.actor()?.id.clone(),
        created_at: now,
        updated_at: now,
    };
    put(router, effects_builder)
}

fn change(changes: &RouterChanges, effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let mut router = effects_builder.facts.router.clone().ok_or(Refusal::NotFound(EntityKind::Router))?;
    if let Some(name) = &changes.name {
        router.name = name.trim().into();
    }
    router.shared = changes.shared.unwrap_or(router.shared);
    router.model.change(&changes.model);
    router.updated_at = effects_builder.facts.now;
    put(router, effects_builder)
}

fn put(router: Router, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    let router = Arc::new(router);
    effects_builder.change(Change::PutRouter(router.clone()));
    effects_builder.done(Receipt::Router(router))
}
