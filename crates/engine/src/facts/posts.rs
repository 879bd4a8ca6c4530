//! Facts for messages that are posted to a room or routed to a path.

use super::{Facts, LookupCache};
use crate::authorise::may_receive_from_source;
use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::digest::{digest, digest_of_route, hex};
use crate::ports::{IdempotencyKey, IdempotencyKind, Lookup};
use crate::routing_index::RoutingIndex;
use crate::{Fault, Limits};
use parlor_model::{Agent, AgentId, Caller, MemberId, Path, RoomId, Route};
use std::sync::Arc;

impl Facts {
    /// Checks the idempotency key of a message from outside: the id that it has in its source, if any.
    pub(super) fn check_external_id(
        &mut self,
        caller: &Caller,
        source: &str,
        id: Option<&str>,
        digest_of_body: impl FnOnce() -> [u8; 16],
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        let (Some(id), Some(user)) = (id, caller.user()) else { return Ok(()) };
        let body = digest_of_body();
        // Messages of one external thread may share an id, so only the same message with the same id is a
        // retry.
        let key = hex(&digest(&[source, id, &hex(&body)])).into();
        // Callers choose the source name, so the key belongs to the caller: it cannot block another caller's
        // messages.
        let key = IdempotencyKey { kind: IdempotencyKind::External, owner: user.as_str().into(), key };
        self.check_idempotency(key, body, store)
    }

    pub(super) fn about_route(
        &mut self,
        caller: &Caller,
        route: &Route,
        store: &mut (impl Lookup + ?Sized),
        routing_index: &RoutingIndex,
        lookup_cache: &mut LookupCache,
        limits: &Limits,
    ) -> Result<(), Fault> {
        if let Ok(from) = AgentId::parse(&route.from) {
            self.agent = lookup_cache.agent(&from, store)?.as_deref().cloned();
        }
        if self.agent.is_none() {
            self.user = lookup_cache.user_named_like_source(&route.from, store)?;
        }
        self.check_external_id(
            caller,
            &route.source,
            route.external_id.as_deref(),
            || digest_of_route(route),
            store,
        )?;
        if let Some(room) = route.path.strip_domain("room").and_then(|room| RoomId::parse(room).ok()) {
            self.in_room(caller, &room, store, lookup_cache)?;
            if let Some(agent) = &self.agent {
                self.target = store.member(&room, &MemberId::Agent(agent.id.clone()))?;
            }
            if self.room.is_some() && self.target.is_some() {
                if route.text.as_deref().is_some_and(|text| text.contains('@')) {
                    self.all_members(&room, store, lookup_cache)?;
                }
                let sender = self.agent.as_ref().map(|agent| agent.id.clone());
                self.room_recipients(&room, sender.as_ref(), store, routing_index, lookup_cache)?;
                let text = route.text.as_deref().unwrap_or_default();
                self.about_addressed(text, &[], sender.as_ref(), store, lookup_cache, limits)?;
            }
            return Ok(());
        }
        let sender = self.agent.clone();
        let broadcast = sender.is_some() && route.path.has_wildcard();
        let addressed = match route.path.strip_domain("agent").filter(|_| !broadcast) {
            Some(id) => Some(self.addressed(id, sender.as_ref(), store, lookup_cache)?),
            None => None,
        };
        let found = if broadcast {
            routing_index.matching_broadcast(&route.path)
        } else {
            routing_index.matching(&route.path)
        };
        for recipient in found {
            let Some(agent) = lookup_cache.agent(&recipient.mailbox.agent, store)? else { continue };
            let is_recipient = match &addressed {
                // A message to an agent is delivered to it and to the subscribed agents of the same owner.
                Some(addressed) => addressed.as_ref().is_some_and(|addressed| addressed.owner == agent.owner),
                None => match &sender {
                    Some(sender) => lookup_cache.may_reach(sender, &agent, store)?,
                    None => {
                        let owner = lookup_cache.owner(&agent, store)?;
                        owner.is_some_and(|owner| may_receive_from_source(&owner, caller.user(), &route.path))
                    }
                },
            };
            if is_recipient {
                self.recipients.push(recipient);
            }
        }
        Ok(())
    }

    /// Returns the agent that the path `agent/{id}` addresses, if the sender may reach it.
    pub(super) fn addressed(
        &self,
        id: &str,
        sender: Option<&Agent>,
        store: &mut (impl Lookup + ?Sized),
        lookup_cache: &mut LookupCache,
    ) -> Result<Option<Arc<Agent>>, Fault> {
        let Ok(id) = AgentId::parse(id) else { return Ok(None) };
        let Some(agent) = lookup_cache.agent(&id, store)? else { return Ok(None) };
        let reaches = match sender {
            Some(sender) => lookup_cache.may_reach(sender, &agent, store)?,
            // A source may send to any agent whose id it knows.
            None => true,
        };
        Ok(reaches.then_some(agent))
    }

    /// Adds the agents that are members of the room and subscribe to its path. Starts from the members:
    /// agents of any user may subscribe to all rooms, and must not add cost to messages in rooms they are not
    /// in.
    pub(super) fn room_recipients(
        &mut self,
        room: &RoomId,
        sender: Option<&AgentId>,
        store: &mut (impl Lookup + ?Sized),
        routing_index: &RoutingIndex,
        lookup_cache: &mut LookupCache,
    ) -> Result<(), Fault> {
        if routing_index.is_empty() {
            return Ok(());
        }
        let agents = lookup_cache.agents_in(room, store)?;
        let path = Path::of_room(room);
        for agent in agents.iter().filter(|agent| sender != Some(*agent)) {
            self.recipients.extend(routing_index.of_agent(agent, &path));
        }
        Ok(())
    }

    pub(super) fn check_idempotency(
        &mut self,
        key: IdempotencyKey,
        digest: [u8; 16],
        store: &mut (impl Lookup + ?Sized),
    ) -> Result<(), Fault> {
        self.once = Some(IdempotencyCheck::load(key, digest, store)?);
        Ok(())
    }
}
