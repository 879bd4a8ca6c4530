//! Adapter that runs the variants of `parlor_model::Command` which have no file of their own yet.

use super::Command;
use crate::audit;
use crate::authorise::authorise;
use crate::decide::{self, DecideContext, decide};
use crate::effects::EffectsBuilder;
use crate::facts::Facts;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::{Limits, validate};
use parlor_model::{Receipt, Refusal};

impl Command for parlor_model::Command {
    type Facts = Box<Facts>;
    type Receipt = Receipt;

    fn validate(&self, limits: &Limits) -> Result<(), Refusal> {
        validate::validate(self, limits)
    }

    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Box<Facts>, PermitError> {
        let mut facts = Box::new(Facts::empty(view.now, view.head.epoch, view.head.seq));
        facts.standing = caller.auth.clone();
        let WriterView { read, routes, lookup_cache, .. } = view;
        facts.load_for_command(&caller.caller, self, read.store, routes, lookup_cache, read.limits)?;
        authorise(&caller.caller, self, &facts)?;
        Ok(facts)
    }

    fn decide(self, facts: Box<Facts>, effects: &mut EffectsBuilder<'_>) -> Result<Receipt, Refusal> {
        let context = DecideContext { ids: effects.ids, limits: effects.limits, caller: effects.caller };
        let decided = decide(&self, &facts, &context)?;
        let audited = audit::changes(&effects.caller.caller, &self, &facts, &decided);
        let decide::Effects { changes, events, routes, receipt } = decided;
        effects.changes.extend(changes);
        effects.changes.extend(audited);
        effects.events.extend(events);
        effects.routes.extend(routes);
        Ok(receipt)
    }
}
