//! Presence actions, the key of a member, and the rule that decides which of two states of a member is newer.

use super::frames::PresenceMessage;
use serde::de::Error;
use serde::{Deserialize, Deserializer, Serialize, Serializer};

#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PresenceAction {
    Absent,
    Present,
    Enter,
    Leave,
    Update,
}

impl PresenceAction {
    /// In the order of their numbers.
    pub const ALL: [Self; 5] = [Self::Absent, Self::Present, Self::Enter, Self::Leave, Self::Update];
}

impl Serialize for PresenceAction {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_u8(*self as u8)
    }
}

impl<'de> Deserialize<'de> for PresenceAction {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let number = usize::from(u8::deserialize(deserializer)?);
        Self::ALL.get(number).copied().ok_or_else(|| D::Error::custom("unknown presence action"))
    }
}

/// Identifies a member of a presence set: one client id of one connection.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct MemberKey {
    pub connection: Box<str>,
    pub client: Box<str>,
}

impl MemberKey {
    /// Returns the key of a message that names both; the hub completes messages of clients before.
    pub fn of(message: &PresenceMessage<'_>) -> Option<Self> {
        Some(Self {
            connection: message.connection_id.as_deref()?.into(),
            client: message.client_id.as_deref()?.into(),
        })
    }
}

/// Id of a presence message: `<connectionId>:<msgSerial>:<index>`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PresenceId<'a> {
    pub connection: &'a str,
    pub msg_serial: u64,
    pub index: u64,
}

impl<'a> PresenceId<'a> {
    pub fn parse(text: &'a str) -> Option<Self> {
        let (rest, index) = text.rsplit_once(':')?;
        let (connection, msg_serial) = rest.rsplit_once(':')?;
        Some(Self { connection, msg_serial: number(msg_serial)?, index: number(index)? })
    }
}

impl std::fmt::Display for PresenceId<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{}:{}:{}", self.connection, self.msg_serial, self.index)
    }
}

fn number(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|b| b.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

/// Returns whether `incoming` replaces `current`, a state of the same member.
///
/// Messages of the member's own connection are ordered by msgSerial and index. If one of them was made by the
/// hub (its id does not begin with the connection id), the later timestamp is newer, and `incoming` if equal.
pub fn is_newer(incoming: &PresenceMessage<'_>, current: &PresenceMessage<'_>) -> bool {
    match (own_id(incoming), own_id(current)) {
        (Some(incoming), Some(current)) => {
            (incoming.msg_serial, incoming.index) > (current.msg_serial, current.index)
        }
        _ => incoming.timestamp >= current.timestamp,
    }
}

fn own_id<'a>(message: &'a PresenceMessage<'_>) -> Option<PresenceId<'a>> {
    let id = PresenceId::parse(message.id.as_deref()?)?;
    (message.connection_id.as_deref() == Some(id.connection)).then_some(id)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn state(id: &str, timestamp: i64) -> PresenceMessage<'_> {
        PresenceMessage {
            id: Some(id.into()),
            client_id: Some("ann".into()),
            connection_id: Some("c1".into()),
            timestamp: Some(timestamp),
            encoding: None,
            data: None,
            extras: None,
            action: PresenceAction::Enter,
        }
    }

    #[track_caller]
    fn check(incoming: (&str, i64), current: (&str, i64), newer: bool) {
        assert_eq!(is_newer(&state(incoming.0, incoming.1), &state(current.0, current.1)), newer);
    }

    #[test]
    fn states_of_the_own_connection_are_ordered_by_serial_and_index() {
        check(("c1:10:0", 1), ("c1:9:5", 2), true);
        check(("c1:9:1", 1), ("c1:9:0", 2), true);
        check(("c1:9:0", 3), ("c1:9:0", 2), false);
        check(("c1:8:9", 3), ("c1:9:0", 2), false);
    }

    #[test]
    fn states_that_the_hub_made_are_ordered_by_time() {
        check(("hub-x:0:0", 5), ("c1:9:0", 5), true);
        check(("hub-x:0:0", 4), ("c1:9:0", 5), false);
        check(("c1:1:0", 6), ("hub-x:0:0", 5), true);
    }

    #[test]
    fn ids_parse_their_own_form() {
        let id = PresenceId { connection: "c1", msg_serial: 3, index: 0 };
        assert_eq!(PresenceId::parse(&id.to_string()), Some(id));
        for bad in ["", "c1", "c1:1", "c1:x:0", "c1:1:-1", "c1:99999999999999999999:0"] {
            assert_eq!(PresenceId::parse(bad), None, "{bad}");
        }
    }
}
