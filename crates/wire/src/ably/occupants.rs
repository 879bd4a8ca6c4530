//! Members of presence sets: between the messages of clients and the members that the hub keeps.

use super::channel::Channel;
use super::data::Data;
use super::frames::{Action, Format, Frame, PresenceMessage};
use super::jaibber::{AgentEntry, GlobalMember, ProjectMember};
use super::presence::PresenceAction;
use parlor_model::{Occupant, OccupantChange, OccupantSource, Path, Payload, PresentUser};
use std::borrow::Cow;

/// Returns what the hub keeps of a presence message: data, encoding and extras, as Ably writes them in JSON.
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

/// Data of a user who is present through another protocol.
fn derived(user: &PresentUser, channel: &Channel) -> PresenceMessage<'static> {
    let (user_id, username) = (user.user.as_str().to_owned(), user.username.to_string());
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
