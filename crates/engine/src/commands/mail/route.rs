//! Sends a message along a path to the subscribed mailboxes, or to a room.
//!
//! Owns: who receives a routed message, and its dead letters. A hot path: in the steady state, `permit` reads
//! the routing index and the cache, and from the store only the idempotency key.

use super::reach::may_receive_from_source;
use crate::changes::MailChange;
use crate::commands::Command;
use crate::commands::messages::idempotency::IdempotencyCheck;
use crate::commands::messages::recipients::{Recipients, deliveries, put_message};
use crate::commands::runs::StandingChain;
use crate::commands::runs::chain::Chain;
use crate::digest::digest_of_route;
use crate::effects::EffectsBuilder;
use crate::permission::{CallerContext, PermitError};
use crate::read_view::WriterView;
use crate::routing_index::Recipient;
use crate::validate::FieldErrors;
use crate::{Fault, Limits};
use parlor_model::command::Posted;
use parlor_model::{
    Agent, AgentId, Destination, EntityKind, Field, Mailbox, Message, MessageKind, Path, Refusal, Room,
    RoomId, Route, Scope, Sender, UserId,
};
use std::sync::Arc;

/// Reason of a dead letter that no mailbox received.
pub const NO_SUBSCRIBERS: &str = "no_subscribers";

pub struct Facts {
    /// The caller's agent that sends the message, in a room with its name there; `None` for an external source.
    sender: Option<Arc<Agent>>,
    target: Target,
    /// The idempotency key of the message in its source with its first use, if any.
    idempotency: Option<IdempotencyCheck>,
}

/// Where a routed message goes.
enum Target {
    /// An existing room, which the sending agent is a member of.
    Room(Arc<Room>, Recipients, SenderChain),
    /// Subscribed mailboxes that the sender may reach.
    Path(Vec<Recipient>),
}

/// The chain of agents that a message of an agent in a room continues.
struct SenderChain {
    chain: Chain,
    standing: StandingChain,
}

impl Command for Route {
    type Facts = Facts;
    type Receipt = Posted;

    fn validate(&self, _limits: &Limits) -> Result<(), Refusal> {
        let mut field_errors = FieldErrors::default();
        field_errors.line(Field::From, &self.from, 600);
        field_errors.line(Field::Command, &self.command, 100);
        field_errors.origin(&self.source, self.external_id.as_deref());
        field_errors.into_result()
    }

    /// `from` must be an agent that the caller owns, or whose program the caller is. If the path names a room, the agent
    /// must be a member of it, and the room must not be frozen.
    /// Site admins and keys with the `sources` scope may also send as a source, but not to a room.
    fn permit(&self, caller: &CallerContext, view: &mut WriterView<'_>) -> Result<Facts, PermitError> {
        let account = caller.auth.clone().ok_or(Refusal::NotSignedIn)?;
        let mut sender = match AgentId::parse(&self.from) {
            Ok(id) => view.routed_agent(&id)?,
            Err(_) => None,
        };
        match &sender {
            Some(agent) => {
                view.as_agent(caller, &Mailbox::of(agent.id.clone()))?;
            }
            // A username is never a valid source name, so that a source cannot impersonate a user.
            None if !account.has(Scope::Sources) || view.is_name_of_user(&self.from)? => {
                return Err(Refusal::NotFound(EntityKind::Agent).into());
            }
            None => {}
        }
        let target = match self.path.strip_domain("room").and_then(|room| RoomId::parse(room).ok()) {
            Some(id) => match view.routed_room(&id)? {
                Some(room) => {
                    let (named, recipients, chain) = in_room(self, sender.as_deref(), &room, view)?;
                    sender = Some(named);
                    Target::Room(room, recipients, chain)
                }
                None => Target::Path(Vec::new()),
            },
            None => Target::Path(reachable_mailboxes(&self.path, sender.as_deref(), &account.user.id, view)?),
        };
        let (source, id) = (&*self.source, self.external_id.as_deref());
        let idempotency = IdempotencyCheck::of_external_message(
            &account.user.id,
            source,
            id,
            || digest_of_route(self),
            view.store,
        )?;
        Ok(Facts { sender, target, idempotency })
    }

    fn decide(self, facts: Facts, effects: &mut EffectsBuilder<'_>) -> Result<Posted, Refusal> {
        let Facts { sender, target, idempotency } = facts;
        if let Some(first) = IdempotencyCheck::first_receipt(idempotency.as_ref(), effects)? {
            return Ok(first);
        }
        // A wildcard in a path from an agent is a broadcast, which is allowed only to agents. From a source it
        // is plain text.
        let to_agents = self.path.segments().next() == Some("agent");
        if sender.is_some() && self.path.has_wildcard() && !to_agents {
            return Err(Refusal::invalid(Field::Path, "may contain wildcards only below agent/"));
        }
        let (mut answer, mut lineage) = (None, None);
        if let Some(agent) = &sender {
            let chain = match &target {
                Target::Room(_, _, SenderChain { chain, .. }) => chain.clone(),
                Target::Path(_) => Chain::default(),
            };
            if let Target::Room(_, _, SenderChain { standing, .. }) = &target {
                lineage = standing.clone().into_lineage(&agent.id, effects);
            }
            answer = Some(chain.answer(agent, lineage.as_ref()));
        }
        let (sender, sender_name) = match sender {
            Some(agent) => (Sender::Agent(agent.id.clone()), agent.name.clone()),
            None => (Sender::Source(self.from.clone()), self.from),
        };
        let (destination, kind, text): (_, _, Arc<str>) = match &target {
            Target::Room(room, ..) => {
                let needs_text = || Refusal::invalid(Field::RoutedText, "is required in a room");
                let text = self.text.ok_or_else(needs_text)?;
                (Destination::Room(room.id.clone()), MessageKind::AgentResponse, text)
            }
            // Messages on a path show only the payload, so the text is not stored a second time.
            Target::Path(_) => (Destination::Path(self.path), MessageKind::Text, Arc::default()),
        };
        let message = Message {
            kind,
            command: Some(self.command),
            payload: Some(self.payload),
            source: self.source,
            external_id: self.external_id,
            ..effects.message(destination, sender, sender_name, text)
        };
        let idempotency = idempotency.as_ref();
        match target {
            Target::Room(room, recipients, _) => {
                let message = Message { mentions: recipients.mentions.clone(), answer, ..message };
                let addressed = recipients.addressed(&room, None);
                Ok(recipients.deliver_to(addressed, lineage.as_ref(), message, idempotency, effects))
            }
            Target::Path(mailboxes) => {
                let (deliveries, message) = (deliveries(&message, &mailboxes, &[]), Arc::new(message));
                let is_dead = deliveries.is_empty();
                let posted = put_message(message.clone(), deliveries, idempotency, effects);
                if is_dead {
                    effects.change(MailChange::DeadLetter { message, reason: NO_SUBSCRIBERS });
                }
                Ok(posted)
            }
        }
    }
}

/// The sender with its name in a room, the recipients there, and the chain that the message continues. A source cannot
/// be a member of a room, and agents do not post in a frozen room.
fn in_room(
    route: &Route,
    sender: Option<&Agent>,
    room: &Room,
    view: &mut WriterView<'_>,
) -> Result<(Arc<Agent>, Recipients, SenderChain), PermitError> {
    let named = match sender {
        Some(sender) => view.agent_named_in(&room.id, &sender.id)?,
        None => None,
    };
    let named = named.ok_or(Refusal::NotAMember { room: room.id.clone() })?;
    if room.is_frozen() {
        return Err(Refusal::Forbidden.into());
    }
    let text = route.text.as_deref().unwrap_or_default();
    let recipients = Recipients::of_agent_message(text, &[], &named.id, room, view)?;
    // Only a message that addresses members can start runs, so the other ones cost no read.
    let standing = match recipients.mentions.is_empty() {
        true => StandingChain::None,
        false => StandingChain::load_of_program(&named.id, &room.id, view)?,
    };
    let open = match &standing {
        StandingChain::Open(lineage) => Some(lineage),
        StandingChain::Refused | StandingChain::None => None,
    };
    let chain = Chain::load(open, &[], room, view)?;
    Ok((named, recipients, SenderChain { chain, standing }))
}

/// The mailboxes that subscribe to the path and that the sender may reach. `behind` is the account that
/// sends the message.
pub fn reachable_mailboxes(
    path: &Path,
    sender: Option<&Agent>,
    behind: &UserId,
    view: &mut WriterView<'_>,
) -> Result<Vec<Recipient>, Fault> {
    let broadcast = sender.is_some() && path.has_wildcard();
    let addressed = match path.strip_domain("agent").filter(|_| !broadcast) {
        Some(id) => Some(addressed_agent(id, sender, view)?),
        None => None,
    };
    let found = match broadcast {
        true => view.routes.matching_broadcast(path),
        false => view.routes.matching(path),
    };
    let mut reached = Vec::with_capacity(found.len());
    for recipient in found {
        let Some(agent) = view.agent(&recipient.mailbox.agent)? else { continue };
        let is_recipient = match (&addressed, sender) {
            // A message to an agent is delivered to it and to the subscribed agents of the same owner.
            (Some(addressed), _) => {
                addressed.as_ref().is_some_and(|addressed| addressed.owner == agent.owner)
            }
            (None, Some(sender)) => view.may_reach(sender, &agent)?,
            (None, None) => {
                let owner = view.user(&agent.owner)?;
                owner.is_some_and(|owner| may_receive_from_source(&owner, behind, path))
            }
        };
        if is_recipient {
            reached.push(recipient);
        }
    }
    Ok(reached)
}

/// The agent that the path `agent/{id}` addresses, if the sender may reach it.
fn addressed_agent(
    id: &str,
    sender: Option<&Agent>,
    view: &mut WriterView<'_>,
) -> Result<Option<Arc<Agent>>, Fault> {
    let Ok(id) = AgentId::parse(id) else { return Ok(None) };
    let Some(agent) = view.routed_agent(&id)? else { return Ok(None) };
    let reaches = match sender {
        Some(sender) => view.may_reach(sender, &agent)?,
        // A source may send to any agent whose id it knows.
        None => true,
    };
    Ok(reaches.then_some(agent))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::changes::Change;
    use crate::commands::test_fixtures::decide;
    use crate::commands::test_fixtures::{agent, name, recipients, user};
    use parlor_model::{DeliveryState, MemberId, Mention, Payload, RoomKind, RoomRole, Time};

    fn route(from: &str, path: &str) -> Route {
        Route {
            from: from.into(),
            path: Path::parse(path).unwrap(),
            command: "say".into(),
            payload: Payload("{}".into()),
            text: Some("hello".into()),
            source: "internal".into(),
            external_id: None,
        }
    }

    /// Facts for a message from the caller's agent, or from the source `bridge`, with the mailboxes that it
    /// may reach.
    fn given(from: &str, found: &[&str]) -> Facts {
        let sender = (from != "bridge").then(|| Arc::new(agent(from)));
        Facts { sender, target: Target::Path(recipients(found)), idempotency: None }
    }

    /// Facts for a message of an agent to a room.
    fn given_in_room(from: &str, mentioned: &[&str], found: &[&str]) -> Facts {
        let mention = |id: &&str| Mention { member: MemberId::Agent(agent(id).id), name: (*id).into() };
        let mentions = mentioned.iter().map(mention).collect();
        let recipients = Recipients { mentions, mailboxes: recipients(found), ..Recipients::default() };
        let chain = SenderChain { chain: Chain::default(), standing: StandingChain::None };
        Facts { target: Target::Room(Arc::new(lobby()), recipients, chain), ..given(from, &[]) }
    }

    fn lobby() -> Room {
        Room {
            id: RoomId::stored("lobby"),
            name: "Lobby".into(),
            kind: RoomKind::Group,
            policy: Default::default(),
            system_prompt: None,
            agent_command_role: RoomRole::Member,
            approve_role: RoomRole::Member,
            router: None,
            frozen: None,
            project_root: None,
            description: None,
            created_by: user("ann").id,
            created_at: Time(1),
            updated_at: Time(1),
        }
    }

    /// The recipients in order, each agent with the sessions that received the message.
    fn reached(command: Route, facts: Facts) -> Vec<String> {
        let (posted, _) = decide(command, facts).unwrap();
        let copies = posted.deliveries.iter().map(|copy| {
            assert_eq!((copy.state, copy.attempts), (DeliveryState::Pending, 0));
            let takers =
                copy.handled_by.iter().map(|session| format!("{}:{}", session.agent, session.session));
            let takers: Vec<String> = takers.collect();
            match &takers[..] {
                [] => name(&copy.mailbox),
                _ => format!("{} by {}", name(&copy.mailbox), takers.join(" ")),
            }
        });
        copies.collect()
    }

    #[track_caller]
    fn check(from: &str, path: &str, found: &[&str], expected: &[&str]) {
        assert_eq!(reached(route(from, path), given(from, found)), expected);
    }

    #[test]
    fn a_session_that_matches_brings_its_agent_whose_copy_names_it() {
        check("bridge", "slack/team", &["coder:main"], &["coder:main", "coder by coder:main"]);
    }

    #[test]
    fn an_agent_gets_one_copy_however_it_was_found() {
        check(
            "bridge",
            "slack/team",
            &["coder", "coder:a", "coder:b", "coder"],
            &["coder:a", "coder:b", "coder by coder:a coder:b"],
        );
    }

    #[test]
    fn an_agents_copy_names_its_own_sessions_only_and_sessions_come_first() {
        check(
            "bridge",
            "slack/team",
            &["zed", "writer:main", "coder/sub:main", "coder"],
            &[
                "coder/sub:main",
                "writer:main",
                "coder",
                "coder/sub by coder/sub:main",
                "writer by writer:main",
                "zed",
            ],
        );
    }

    #[test]
    fn neither_an_agent_nor_its_sessions_receive_its_own_broadcast() {
        check(
            "coder",
            "agent/**",
            &["coder", "coder:main", "coder/sub", "writer:main"],
            &["writer:main", "coder/sub", "writer by writer:main"],
        );
        check("coder", "agent/*", &["coder", "coder:main"], &[]);
    }

    #[test]
    fn an_agent_does_not_receive_its_messages_to_another_agent() {
        check("coder", "agent/writer", &["writer", "coder", "coder:main"], &["writer"]);
    }

    #[test]
    fn an_agent_may_write_to_itself() {
        check("coder", "agent/coder", &["coder", "coder:main"], &["coder:main", "coder by coder:main"]);
    }

    #[test]
    fn outside_of_agents_and_rooms_a_subscribed_sender_receives_its_own_message() {
        check("coder", "slack/team", &["coder", "coder:main"], &["coder:main", "coder by coder:main"]);
    }

    #[test]
    fn in_a_room_neither_an_agent_nor_its_sessions_receive_its_own_message() {
        let facts = given_in_room("coder", &["coder", "zed"], &["coder", "coder:main", "writer"]);
        let reached = reached(route("coder", "room/lobby"), facts);
        assert_eq!(reached, ["writer", "zed"], "also not by mentioning itself");
    }

    #[test]
    fn an_agent_may_use_wildcards_only_below_agent() {
        for path in ["**", "slack/**", "*/coder", "room/*", "email/*/x"] {
            let refused = decide(route("coder", path), given("coder", &["writer"])).map(|(posted, _)| posted);
            let rule = "may contain wildcards only below agent/";
            assert_eq!(refused.unwrap_err(), Refusal::invalid(Field::Path, rule), "{path}");
        }
        for path in ["agent/**", "agent/*", "agent/coder/**", "agent/**/sub"] {
            check("coder", path, &["writer"], &["writer"]);
        }
    }

    #[test]
    fn from_a_source_a_wildcard_is_plain_text() {
        for path in ["**", "slack/**", "agent/*"] {
            let (posted, _) = decide(route("bridge", path), given("bridge", &["coder"])).unwrap();
            assert_eq!(posted.message.unwrap().destination, Destination::Path(Path::stored(path)));
        }
    }

    #[test]
    fn a_message_without_recipients_is_a_dead_letter_unless_it_is_in_a_room() {
        let letters = |path: &str, facts: Facts| {
            let (_, effects) = decide(route("coder", path), facts).unwrap();
            let reasons = effects.changes.into_iter().filter_map(|change| match change {
                Change::Mail(MailChange::DeadLetter { reason, .. }) => Some(reason),
                _ => None,
            });
            reasons.collect::<Vec<_>>()
        };
        assert_eq!(letters("slack/team", given("coder", &[])), ["no_subscribers"]);
        assert_eq!(
            letters("agent/**", given("coder", &["coder"])),
            ["no_subscribers"],
            "the sender is its only subscriber"
        );
        assert_eq!(letters("slack/team", given("coder", &["writer"])), [""; 0]);
        assert_eq!(letters("room/lobby", given_in_room("coder", &[], &[])), [""; 0]);
    }
}
