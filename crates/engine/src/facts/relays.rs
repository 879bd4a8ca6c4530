//! Facts for messages that a caller relays for an author outside the hub.

use super::{Facts, LookupCache};
use crate::digest::digest_of_relay;
use crate::ports::Lookup;
use crate::routing_index::RoutingIndex;
use crate::{Fault, Limits};
use parlor_model::{Agent, Caller, MemberId, Relay, mention};
use std::sync::Arc;

impl Facts {
    /// Loads the author as `agent` if it is the caller's, the addressees, and the message that the author
    /// answers with its run.
    pub(super) fn about_relay(
        &mut self,
        caller: &Caller,
        relay: &Relay,
        store: &mut (impl Lookup + ?Sized),
        routing_index: &RoutingIndex,
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        self.in_room(caller, &relay.room, store, lookup_cache)?;
        if self.membership.is_none() {
            return Ok(());
        }
        self.all_members(&relay.room, store, lookup_cache)?;
        self.agent = self.own_agent_named(caller, &relay.author, store, lookup_cache)?.as_deref().cloned();
        let author = self.agent.as_ref().map(|agent| agent.id.clone());
        self.check_external_id(
            caller,
            &relay.source,
            relay.external_id.as_deref(),
            || digest_of_relay(relay),
            store,
        )?;
        self.room_recipients(&relay.room, author.as_ref(), store, routing_index, lookup_cache)?;
        let recipient = mention::resolve("", relay.recipient.as_slice(), &self.members);
        let observers = mention::resolve("", &relay.observers, &self.members).into_iter();
        self.observers = observers
            .filter(|observer| !recipient.contains(observer))
            .map(|observer| observer.member)
            .collect();
        // A recipient who is not in the room is addressed outside the hub. No agent answers in its place.
        if relay.recipient.is_none() || !recipient.is_empty() {
            let recipient = relay.recipient.as_slice();
            self.about_addressed("", recipient, author.as_ref(), store, lookup_cache, limits)?;
        }
        self.about_continued(relay, store)
    }

    /// Returns the caller's agent in the room with this name or id, if there is one.
    fn own_agent_named(
        &self,
        caller: &Caller,
        name: &str,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<Option<Arc<Agent>>, Fault> {
        for member in self.members.iter().filter(|member| mention::is_named(member, name)) {
            let MemberId::Agent(id) = &member.member else { continue };
            let agent = lookup_cache.agent(id, store)?;
            if let Some(agent) = agent.filter(|agent| Some(&agent.owner) == caller.user()) {
                return Ok(Some(agent));
            }
        }
        Ok(None)
    }

    /// Loads the message that the author answers and the run that produced it. A message that was deleted, or
    /// that is in another room, counts as missing.
    fn about_continued(&mut self, relay: &Relay, store: &mut (impl Lookup + ?Sized)) -> Result<(), Fault> {
        let Some(id) = &relay.continues else { return Ok(()) };
        self.message = store.message(id)?.filter(|message| message.destination.room() == Some(&relay.room));
        let output = self.message.as_ref().and_then(|message| message.run_output.clone());
        if let Some(output) = output {
            self.run = store.run(&output.run)?;
        }
        Ok(())
    }
}
