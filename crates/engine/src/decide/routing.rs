//! Decides who receives a routed message.
//!
//! Owns: cascade, sender exclusion, dead letters. Never: reads a store or sends a byte.

use super::{Change, Effects, EffectsBuilder, messages};
use parlor_model::{
    Destination, Message, MessageId, MessageKind, Receipt, Refusal, RoomId, Route, Sender, mention,
};
use std::sync::Arc;

pub fn decide(route: &Route, mut effects_builder: EffectsBuilder) -> Result<Effects, Refusal> {
    if let Some(repeated) = messages::first_receipt(&effects_builder)? {
        return effects_builder.done(Receipt::Posted(repeated));
    }
    let (sender, sender_name) = match &effects_builder.facts.agent {
        Some(agent) => (Sender::Agent(agent.id.clone()), agent.name.clone()),
        None => (Sender::Source(route.from.clone()), route.from.clone()),
    };
    // A wildcard in a path from an agent is a broadcast, which is allowed only to agents. From a source it is
    // plain text.
    let to_agents = route.path.segments().next() == Some("agent");
    if effects_builder.facts.agent.is_some() && route.path.has_wildcard() && !to_agents {
        return Err(Refusal::invalid("path", "may contain wildcards only below agent/"));
    }
    let destination = match route.path.strip_domain("room").map(RoomId::parse) {
        Some(Ok(room)) if effects_builder.facts.room.is_some() => Destination::Room(room),
        _ => Destination::Path(route.path.clone()),
    };
    let to_room = destination.room().is_some();
    // Messages on a path show only the payload, so the text is not stored a second time.
    let text: Arc<str> = match (&route.text, to_room) {
        (Some(text), true) => text.clone(),
        (None, true) => return Err(Refusal::invalid("payload", "a message to a room needs payload.text")),
        (_, false) => Arc::default(),
    };
    let message = Message {
        id: MessageId::stored(effects_builder.decide_context.ids.next()),
        seq: effects_builder.next_seq(),
        at: effects_builder.facts.now,
        destination,
        sender,
        sender_name,
        kind: if to_room { MessageKind::AgentResponse } else { MessageKind::Text },
        mentions: mention::resolve(&text, &[], &effects_builder.facts.members),
        text,
        reply_to: None,
        thread: None,
        reactions: Vec::new(),
        forwarded: None,
        attachments: Vec::new(),
        client_message_id: None,
        command: Some(route.command.clone()),
        payload: Some(route.payload.clone()),
        source: route.source.clone(),
        external_id: route.external_id.clone(),
        edited_at: None,
        run_output: None,
        relayed: None,
    };
    let posted = messages::post_and_start_runs(message, &mut effects_builder);
    if !to_room
        && posted.deliveries.is_empty()
        && let Some(message) = &posted.message
    {
        effects_builder.change(Change::DeadLetter { message: message.clone(), reason: "no_subscribers" });
    }
    effects_builder.done(Receipt::Posted(posted))
}

#[cfg(test)]
mod tests {
    use super::super::test_fixtures::{agent, decide_with, facts, name, recipients, user};
    use super::*;
    use crate::facts::Facts;
    use parlor_model::{
        Command, DeliveryState, Member, MemberId, Path, Payload, Room, RoomKind, RoomRole, Seq, Time,
    };

    fn route(from: &str, path: &str) -> Command {
        Command::Route(Route {
            from: from.into(),
            path: Path::parse(path).unwrap(),
            command: "say".into(),
            payload: Payload("{}".into()),
            text: Some("hello".into()),
            source: "internal".into(),
            external_id: None,
        })
    }

    /// Facts for a message from the caller's agent, or from a source, with the recipients from the routing
    /// index.
    fn given(from_agent: bool, from: &str, found: &[&str]) -> Facts {
        let mut facts = facts();
        facts.agent = from_agent.then(|| agent(from));
        facts.recipients = recipients(found);
        facts
    }

    /// The recipients in order, each agent with the sessions that received the message.
    fn reached(facts: &Facts, command: &Command) -> Vec<String> {
        let Receipt::Posted(posted) = decide_with(command, facts).unwrap().receipt else {
            panic!("not posted")
        };
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
        let is_agent = from != "bridge";
        assert_eq!(reached(&given(is_agent, from, found), &route(from, path)), expected);
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
        let mut facts = given(true, "coder", &["coder", "coder:main", "writer"]);
        facts.room = Some(Arc::new(room()));
        facts.members = [member("coder"), member("zed")].into();
        let Command::Route(plain) = route("coder", "room/lobby") else { unreachable!() };
        let mention = Command::Route(Route { text: Some("@coder and @zed".into()), ..plain });
        assert_eq!(reached(&facts, &mention), ["writer", "zed"], "also not by mentioning itself");
    }

    #[test]
    fn an_agent_may_use_wildcards_only_below_agent() {
        for path in ["**", "slack/**", "*/coder", "room/*", "email/*/x"] {
            let facts = given(true, "coder", &["writer"]);
            let refused = decide_with(&route("coder", path), &facts).map(|plan| plan.receipt);
            let rule = "may contain wildcards only below agent/";
            assert_eq!(refused.unwrap_err(), Refusal::invalid("path", rule), "{path}");
        }
        for path in ["agent/**", "agent/*", "agent/coder/**", "agent/**/sub"] {
            check("coder", path, &["writer"], &["writer"]);
        }
    }

    #[test]
    fn from_a_source_a_wildcard_is_plain_text() {
        for path in ["**", "slack/**", "agent/*"] {
            let facts = given(false, "bridge", &["coder"]);
            let Receipt::Posted(posted) = decide_with(&route("bridge", path), &facts).unwrap().receipt else {
                panic!("not posted")
            };
            assert_eq!(posted.message.unwrap().destination, Destination::Path(Path::stored(path)));
        }
    }

    #[test]
    fn a_message_without_recipients_is_a_dead_letter_unless_it_is_in_a_room() {
        let letters = |facts: &Facts, path: &str| {
            let plan = decide_with(&route("coder", path), facts).unwrap();
            let reasons = plan.changes.into_iter().filter_map(|change| match change {
                Change::DeadLetter { reason, .. } => Some(reason),
                _ => None,
            });
            reasons.collect::<Vec<_>>()
        };
        assert_eq!(letters(&given(true, "coder", &[]), "slack/team"), ["no_subscribers"]);
        assert_eq!(
            letters(&given(true, "coder", &["coder"]), "agent/**"),
            ["no_subscribers"],
            "the sender is its only subscriber"
        );
        assert_eq!(letters(&given(true, "coder", &["writer"]), "slack/team"), [""; 0]);
        let mut in_room = given(true, "coder", &[]);
        in_room.room = Some(Arc::new(room()));
        assert_eq!(letters(&in_room, "room/lobby"), [""; 0]);
    }

    fn room() -> Room {
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
            created_by: user("ann").id,
            created_at: Time(1),
            updated_at: Time(1),
        }
    }

    fn member(id: &str) -> Member {
        Member {
            room: RoomId::stored("lobby"),
            member: MemberId::Agent(agent(id).id),
            role: RoomRole::Member,
            role_description: None,
            name: id.into(),
            handle: id.into(),
            joined_at: Time(2),
            read_through: Seq(0),
            read_at: None,
            room_preferences: Default::default(),
        }
    }
}
