//! `Batch`: the commands of one commit, decided one after the other inside one open transaction.
//!
//! Owns: each command reads what the commands before it have changed, and all of them are committed together
//! or not at all.

use super::Command;
use super::mail::reach::RouteLookups;
use crate::agent_changes::{self, AgentChanges};
use crate::cache::Cache;
use crate::changes::{Change, ModelChange, RoomChange};
use crate::effects::{Effects, EffectsBuilder};
use crate::permission::PermitError;
use crate::ports::{Clock, Head, IdGenerator, Transaction};
use crate::read_view::{ReadView, WriterView};
use crate::routing_index::RoutingIndex;
use crate::{Fault, Limits};
use parlor_model::{AgentId, Caller, LoggedEvent, Position, Refusal};

pub struct Batch<'a> {
    pub(crate) transaction: Box<dyn Transaction + 'a>,
    pub(crate) cache: &'a mut Cache,
    pub(crate) routes: &'a mut RoutingIndex,
    pub(crate) clock: &'a dyn Clock,
    pub(crate) ids: &'a dyn IdGenerator,
    pub(crate) limits: &'a Limits,
    pub(crate) head: Head,
    pub(crate) route_lookups: RouteLookups,
    pub(crate) committed: Committed,
}

/// Result of a committed batch.
#[derive(Default)]
pub(crate) struct Committed {
    pub events: Vec<LoggedEvent>,
    /// Whether blobs may have become unreferenced.
    pub released: bool,
    /// Whether a service was created or changed.
    pub services: bool,
    /// Whether automatic turns or heartbeats may have been added, changed or removed.
    pub turn_settings: bool,
    /// Agents that got pending mail without an event about it.
    pub mail_of: Vec<AgentId>,
    /// Changes of agents and mail; `None` if no reader follows them.
    pub agents: Option<AgentChanges>,
    /// Whether a room was removed: the store may then restart its search index from the beginning.
    pub room_removed: bool,
}

impl Batch<'_> {
    /// Decides a command and applies its effects to the transaction. A fault makes the whole batch invalid.
    pub fn decide<C: Command>(
        &mut self,
        caller: &Caller,
        command: C,
    ) -> Result<Result<C::Receipt, Refusal>, Fault> {
        let now = self.head.at.next_after(self.clock.now());
        let head = Position { epoch: self.head.epoch, seq: self.head.seq };
        let mut view = WriterView {
            read: ReadView::new(now, head, self.limits, self.transaction.lookup(), self.cache),
            routes: self.routes,
            route_lookups: &mut self.route_lookups,
        };
        let caller = view.caller_context(caller)?;
        let facts = match PermitError::split(command.permit(&caller, &mut view))? {
            Ok(facts) => facts,
            Err(refusal) => return Ok(Err(refusal)),
        };
        let mut effects = EffectsBuilder::new(now, head, &caller, self.ids, self.limits);
        match command.decide(facts, &mut effects) {
            Ok(receipt) => {
                let effects = effects.finish();
                self.apply(effects)?;
                Ok(Ok(receipt))
            }
            Err(refusal) => Ok(Err(refusal)),
        }
    }

    fn apply(&mut self, effects: Effects) -> Result<(), Fault> {
        self.transaction.apply(&effects)?;
        if !effects.changes.iter().all(Change::is_about_a_message) {
            self.route_lookups = RouteLookups::default();
        }
        if let Some(agents) = &mut self.committed.agents {
            agent_changes::record(&effects.changes, agents);
        }
        for change in &effects.changes {
            self.cache.apply(change);
            self.committed.released |= change.may_release_files();
            self.committed.services |= matches!(change, Change::Model(ModelChange::PutService(_)));
            self.committed.turn_settings |= change.may_change_turns();
            self.committed.room_removed |= matches!(change, Change::Room(RoomChange::RemoveRoom(_)));
        }
        self.committed.mail_of.extend(effects.mail_of);
        effects.route_changes.iter().for_each(|change| self.routes.apply(change));
        if let Some(last) = effects.events.last() {
            self.head.seq = last.seq;
            self.head.at = last.at;
        }
        self.committed.events.extend(effects.events);
        Ok(())
    }

    pub(crate) fn commit(mut self) -> Result<(Head, Committed), Fault> {
        if self.limits.verify_cache
            && let Some(stale) = self.cache.verify(self.transaction.lookup())?
        {
            panic!("an entry of the writer's cache differs from the store: {stale}");
        }
        self.transaction.commit()?;
        Ok((self.head, self.committed))
    }
}
