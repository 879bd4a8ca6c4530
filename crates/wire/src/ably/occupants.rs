//! Members of presence sets: between the messages of clients and the members that the hub keeps.

use super::channel::Channel;
use super::data::Data;
use super::frames::{Action, Format, Frame, PresenceMessage};
use super::jaibber::{AgentEntry, GlobalMember, ProjectMember};
use super::presence::PresenceAction;
use parlor_model::{Occupant, OccupantChange, OccupantSource, Path, Payload, PresentUser};
use std::borrow::Cow;

/// Returns the part of a presence message that the hub keeps: data, encoding and extras in Ably's JSON form.
pub fn stored(message: &PresenceMessage<'_>) -> Option<Payload> {
    if message.data.is_none() && message.encoding.is_none() && message.extras.is_none() {
        return None;
    }
    let stored = PresenceMessage {
        id: None,
        client_id: None,
        connection_id: None,
        timestamp: None,
        action: PresenceAction::Present,
        ..message.clone()
    };
    Some(Payload(serde_json::to_string(&stored).expect("a message consists of strings and JSON").into()))
}

/// Presence message of a member of a channel.
pub fn message<'a>(occupant: &'a Occupant, action: PresenceAction, channel: &Channel) -> PresenceMessage<'a> {
    let kept = match &occupant.source {
        OccupantSource::Client { data } => {
            data.as_ref().and_then(|data| serde_json::from_str::<PresenceMessage<'static>>(&data.0).ok())
        }
        OccupantSource::Derived(user) => Some(derived(user, channel)),
    };
    let (data, encoding, extras) =
        kept.map_or((None, None, None), |kept| (kept.data, kept.encoding, kept.extras));
    PresenceMessage {
        id: Some(Cow::Borrowed(&*occupant.id)),
        client_id: Some(Cow::Borrowed(&*occupant.client)),
        connection_id: Some(Cow::Borrowed(&*occupant.connection)),
        timestamp: Some(occupant.at.millis()),
        encoding,
        data,
        extras,
        action,
    }
}

/// Data of a derived member: a user who is online through another protocol, or only the user's agents.
fn derived(user: &PresentUser, channel: &Channel) -> PresenceMessage<'static> {
    let only_agent = user.agents.first().filter(|_| !user.online);
    let username = only_agent.map_or(&user.username, |agent| &agent.name).to_string();
    let user_id = user.user.as_str().to_owned();
    let text = match channel {
        Channel::Project(_) => {
            let agents: Vec<AgentEntry> = user
                .agents
                .iter()
                .map(|agent| AgentEntry {
                    agent_name: agent.name.to_string(),
                    agent_instructions: Some(agent.description.to_string()).filter(|text| !text.is_empty()),
                })
                .collect();
            let first = agents.first().cloned();
            serde_json::to_string(&ProjectMember {
                user_id,
                username,
                is_agent: first.is_some(),
                agent_instructions: first.as_ref().and_then(|agent| agent.agent_instructions.clone()),
                agent_name: first.map(|agent| agent.agent_name),
                agents,
                machine_name: None,
            })
        }
        Channel::GlobalPresence | Channel::Other(_) => {
            let project_ids = user.rooms.iter().map(|room| room.to_string()).collect();
            serde_json::to_string(&GlobalMember { user_id, username, project_ids })
        }
    };
    PresenceMessage {
        id: None,
        client_id: None,
        connection_id: None,
        timestamp: None,
        encoding: Some("json".into()),
        data: Some(Data::Text(text.expect("a member consists of strings").into())),
        extras: None,
        action: PresenceAction::Present,
    }
}

/// PRESENCE frame of a change. `None` if no channel shows the place.
pub fn change(place: &Path, change: OccupantChange, occupant: &Occupant, format: Format) -> Option<Vec<u8>> {
    let channel = Channel::of_place(place)?;
    let name = channel.name();
    let action = match change {
        OccupantChange::Entered => PresenceAction::Enter,
        OccupantChange::Updated => PresenceAction::Update,
        OccupantChange::Left => PresenceAction::Leave,
    };
    let id = occupant.id.rsplit_once(':').map_or(&*occupant.id, |(id, _)| id);
    let frame = Frame {
        id: Some(id.into()),
        connection_id: Some(Cow::Borrowed(&*occupant.connection)),
        timestamp: Some(occupant.at.millis()),
        presence: Some(vec![message(occupant, action, &channel)]),
        ..Frame::of_channel(Action::Presence, &name)
    };
    Some(format.encode(&frame))
}

/// Size that counts against `maxMessageSize`.
pub fn size(message: &PresenceMessage<'_>) -> usize {
    message.client_id.as_ref().map_or(0, |id| id.len())
        + message.data.as_ref().map_or(0, Data::length)
        + message.extras.as_ref().map_or(0, |extras| extras.text().len())
}

#[cfg(test)]
mod tests {
    use super::*;
    use parlor_model::{AgentId, PresentAgent, RoomId, Time, UserId};

    const RECORDED: &str = include_str!("../../tests/fixtures/ably-recorded.txt");
    const FORMATS: [Format; 2] = [Format::Json, Format::Msgpack];

    fn client(id: &str, data: Option<Payload>) -> Occupant {
        let source = OccupantSource::Client { data };
        let (connection, client) = ("c1".into(), "ann".into());
        Occupant { connection, client, id: id.into(), order: None, at: Time(5_000), source }
    }

    fn derived_member(online: bool, agents: &[(&str, &str)]) -> Occupant {
        let agent = |(name, description): &(&str, &str)| PresentAgent {
            id: AgentId::stored(*name),
            name: (*name).into(),
            description: (*description).into(),
        };
        let user = PresentUser {
            user: UserId::stored("u1"),
            username: "ann".into(),
            online,
            rooms: vec![RoomId::stored("p1"), RoomId::stored("p2")],
            agents: agents.iter().map(agent).collect(),
        };
        Occupant { source: OccupantSource::Derived(user), ..client("hub:7:0", None) }
    }

    /// Text of the data that a client receives.
    fn data_of(occupant: &Occupant, channel: &Channel) -> String {
        let message = message(occupant, PresenceAction::Present, channel);
        assert_eq!(message.encoding.as_deref(), Some("json"));
        match message.data {
            Some(Data::Text(text)) => text.into_owned(),
            data => panic!("{data:?}"),
        }
    }

    #[test]
    fn recorded_changes_are_written_from_the_members_that_are_kept() {
        let mut count = 0;
        for line in RECORDED.lines().filter_map(|line| line.strip_prefix("S>C PRESENCE ")) {
            let recorded = Frame::decode(line.as_bytes(), Format::Json).unwrap();
            let message = &recorded.presence.as_ref().unwrap()[0];
            let made = match message.action {
                PresenceAction::Enter => OccupantChange::Entered,
                PresenceAction::Update => OccupantChange::Updated,
                PresenceAction::Leave => OccupantChange::Left,
                other => panic!("{other:?}"),
            };
            let occupant = Occupant {
                connection: message.connection_id.as_deref().unwrap().into(),
                client: message.client_id.as_deref().unwrap().into(),
                id: message.id.as_deref().unwrap().into(),
                order: None,
                at: Time(message.timestamp.unwrap() * 1000),
                source: OccupantSource::Client { data: stored(message) },
            };
            let place = Channel::parse(recorded.channel.as_deref().unwrap()).unwrap().destination().path();
            for format in FORMATS {
                let written = change(&place, made, &occupant, format).unwrap();
                let written = Frame::decode(&written, format).unwrap();
                assert_eq!(written.presence, recorded.presence, "{line}");
                assert_eq!(written.channel, recorded.channel);
                assert_eq!(written.timestamp, recorded.timestamp);
            }
            count += 1;
        }
        assert!(count > 10, "{count}");
    }

    #[test]
    fn binary_data_is_kept_and_written_for_both_formats() {
        let text =
            r#"{"action":14,"presence":[{"action":2,"data":"AQL6","encoding":"base64","extras":{"a":1}}]}"#;
        let frame = Frame::decode(text.as_bytes(), Format::Json).unwrap();
        let occupant = client("c1:1:0", stored(&frame.presence.unwrap()[0]));
        let place = Path::parse("ably/a").unwrap();
        let json = change(&place, OccupantChange::Entered, &occupant, Format::Json).unwrap();
        let json = String::from_utf8(json).unwrap();
        assert!(json.contains(r#""encoding":"base64","data":"AQL6""#), "{json}");
        assert!(json.contains(r#""extras":{"a":1}"#), "{json}");
        let packed = change(&place, OccupantChange::Entered, &occupant, Format::Msgpack).unwrap();
        assert!(packed.windows(5).any(|bytes| bytes == [0xc4, 3, 1, 2, 250]), "raw binary");
    }

    #[test]
    fn a_member_without_data_is_kept_without_data() {
        let frame = Frame::decode(br#"{"action":14,"presence":[{"action":2}]}"#, Format::Json).unwrap();
        let data = stored(&frame.presence.unwrap()[0]);
        assert_eq!(data, None);
        let channel = Channel::parse("a").unwrap();
        assert_eq!(message(&client("c1:1:0", data), PresenceAction::Enter, &channel).data, None);
    }

    #[test]
    fn derived_members_have_the_data_of_a_project_channel() {
        let project = Channel::parse("jaibber:project:p1").unwrap();
        let alone = data_of(&derived_member(true, &[]), &project);
        assert_eq!(alone, r#"{"userId":"u1","username":"ann","isAgent":false}"#);
        let agents = [("Coder", "be nice"), ("Tester", "")];
        let with_agents = data_of(&derived_member(true, &agents), &project);
        assert_eq!(
            with_agents,
            r#"{"userId":"u1","username":"ann","isAgent":true,"agentName":"Coder","agentInstructions":"be nice","#
                .to_owned()
                + r#""agents":[{"agentName":"Coder","agentInstructions":"be nice"},{"agentName":"Tester"}]}"#
        );
        let only_agent = data_of(&derived_member(false, &agents[..1]), &project);
        assert!(
            only_agent.starts_with(r#"{"userId":"u1","username":"Coder","isAgent":true,"#),
            "{only_agent}"
        );
    }

    #[test]
    fn derived_members_have_the_data_of_the_global_channel() {
        let data = data_of(&derived_member(true, &[]), &Channel::GlobalPresence);
        assert_eq!(data, r#"{"userId":"u1","username":"ann","projectIds":["p1","p2"]}"#);
    }

    #[test]
    fn the_departure_of_a_lost_connection_is_ordered_by_time() {
        let kept = client("c1:9:0", None);
        let left = Occupant { at: Time(6_000), ..client("hub:7:0", None) };
        let channel = Channel::parse("a").unwrap();
        let [kept, left] = [&kept, &left].map(|state| message(state, PresenceAction::Leave, &channel));
        assert!(
            super::super::presence::is_newer(&left, &kept) && !super::super::presence::is_newer(&kept, &left)
        );
    }
}
