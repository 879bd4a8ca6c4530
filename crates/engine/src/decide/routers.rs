//! Models that pick which agents answer.

use super::{Change, Effects, EffectsBuilder};
use parlor_model::command::{NewRouter, RouterChanges};
use parlor_model::{Command, EntityKind, Receipt, Refusal, Router, RouterId};
use std::sync::Arc;

/// Of one person.
const MOST: usize = 50;

pub fn decide(command: &Command, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    match command {
        Command::CreateRouter(new) => create(new, draft),
        Command::ChangeRouter { changes, .. } => change(changes, draft),
        Command::RemoveRouter { router } => {
            draft.change(Change::RemoveRouter(router.clone()));
            draft.done(Receipt::Done)
        }
        _ => unreachable!("the dispatcher sends only routers here"),
    }
}

fn create(new: &NewRouter, draft: EffectsBuilder) -> Result<Effects, Refusal> {
    if draft.facts.routers >= MOST {
        return Err(Refusal::invalid("name", "so many routers one person cannot have"));
    }
    let now = draft.facts.now;
    let router = Router {
        id: RouterId::stored(draft.mint.ids.next()),
        name: new.name.trim().into(),
        shared: new.shared,
        model: new.model.clone(),
        created_by: draft.actor()?.id.clone(),
        created_at: now,
        updated_at: now,
    };
    put(router, draft)
}

fn change(changes: &RouterChanges, draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let mut router = draft.facts.router.clone().ok_or(Refusal::NotFound(EntityKind::Router))?;
    if let Some(name) = &changes.name {
        router.name = name.trim().into();
    }
    router.shared = changes.shared.unwrap_or(router.shared);
    router.model.change(&changes.model);
    router.updated_at = draft.facts.now;
    put(router, draft)
}

fn put(router: Router, mut draft: EffectsBuilder) -> Result<Effects, Refusal> {
    let router = Arc::new(router);
    draft.change(Change::PutRouter(router.clone()));
    draft.done(Receipt::Router(router))
}
