//! Channel names, their qualifiers, and the destinations that they name in the hub.

use super::codes::{self, ErrorInfo};
use parlor_model::{Destination, Path, RoomId};
use std::collections::BTreeMap;
use std::time::Duration;

const PROJECT_PREFIX: &str = "jaibber:project:";
pub const GLOBAL_PRESENCE: &str = "jaibber:presence";
/// First segment of the paths of channels that are no rooms.
const DOMAIN: &str = "ably";

/// Maximum number of messages of a `rewind`.
const MAX_REWIND: usize = 100;
const MAX_REWIND_TIME: Duration = Duration::from_secs(2 * 60);
/// Maximum bytes of the parameters before a name.
const MAX_QUALIFIER_BYTES: usize = 1024;

#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Channel {
    /// `jaibber:project:{id}`: the room with that id.
    Project(RoomId),
    /// `jaibber:presence`: presence of all users in all rooms.
    GlobalPresence,
    /// Any other name: messages on the path `ably/{name}`.
    Other(Path),
}

impl Channel {
    /// Parses a channel name without a qualifier.
    pub fn parse(name: &str) -> Result<Self, ErrorInfo> {
        if name.is_empty() || name.starts_with(':') || name.starts_with('[') {
            return Err(invalid(name));
        }
        if name == GLOBAL_PRESENCE {
            return Ok(Self::GlobalPresence);
        }
        if let Some(id) = name.strip_prefix(PROJECT_PREFIX) {
            return RoomId::parse(id).map(Self::Project).map_err(|_| invalid(name));
        }
        Path::parse(&path_text(name)).map(Self::Other).map_err(|_| invalid(name))
    }

    /// Returns the name of the channel that shows a destination; `None` if no channel shows it.
    pub fn name_of(destination: &Destination) -> Option<String> {
        match destination {
            Destination::Room(room) => Some(format!("{PROJECT_PREFIX}{room}")),
            Destination::Path(path) => {
                let name = unescape(path.strip_domain(DOMAIN)?)?;
                // Paths that are not the path of a channel name, such as `ably/a/b`, have no channel.
                (Self::parse(&name).ok()?.destination() == *destination).then_some(name)
            }
        }
    }

    /// Returns the channel of a place with a presence set; `None` if no channel shows it.
    pub fn of_place(place: &Path) -> Option<Self> {
        let destination = match place.strip_domain("room").and_then(|room| RoomId::parse(room).ok()) {
            Some(room) => Destination::Room(room),
            None => Destination::Path(place.clone()),
        };
        Self::parse(&Self::name_of(&destination)?).ok()
    }

    pub fn name(&self) -> String {
        Self::name_of(&self.destination()).expect("the destination of a channel has its name")
    }

    /// Returns where messages of the channel are stored.
    pub fn destination(&self) -> Destination {
        match self {
            Self::Project(room) => Destination::Room(room.clone()),
            Self::GlobalPresence => Destination::Path(Path::stored(path_text(GLOBAL_PRESENCE))),
            Self::Other(path) => Destination::Path(path.clone()),
        }
    }
}

fn invalid(name: &str) -> ErrorInfo {
    let shown: String = name.chars().filter(|c| !c.is_control()).take(100).collect();
    ErrorInfo::new(codes::INVALID_CHANNEL, format!("Invalid channel name: {shown}"))
}

/// Percent-encodes the characters that paths split at, match with or reject, and `%` itself, so that two names
/// never share a path.
fn path_text(name: &str) -> String {
    let mut text = format!("{DOMAIN}/");
    for character in name.chars() {
        if matches!(character, '/' | '%' | '*') || character.is_control() {
            let mut buffer = [0; 4];
            for byte in character.encode_utf8(&mut buffer).bytes() {
                text.push_str(&format!("%{byte:02X}"));
            }
        } else {
            text.push(character);
        }
    }
    text
}

/// Prefixes of the paths of all channels in a namespace, which ends with `:`. They include the prefix of rooms if the
/// namespace contains project channels.
pub(super) fn prefixes(namespace: &str) -> Vec<String> {
    let mut prefixes = vec![path_text(namespace)];
    if let Some(rest) = namespace.strip_prefix(PROJECT_PREFIX) {
        return vec![format!("room/{rest}")];
    }
    if PROJECT_PREFIX.starts_with(namespace) {
        prefixes.push("room/".to_owned());
    }
    prefixes
}

fn unescape(text: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(text.len());
    let mut rest = text.bytes();
    while let Some(byte) = rest.next() {
        if byte != b'%' {
            bytes.push(byte);
            continue;
        }
        let mut digit = || char::from(rest.next()?).to_digit(16);
        bytes.push((digit()? * 16 + digit()?) as u8);
    }
    String::from_utf8(bytes).ok()
}

/// A channel name as a client writes it: `name`, or `[?rewind=1]name` with parameters.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct QualifiedChannel {
    pub channel: Channel,
    pub params: BTreeMap<String, String>,
}

impl QualifiedChannel {
    /// Parses a name with an optional qualifier. Qualifiers other than parameters, such as `[meta]`, are not
    /// supported.
    pub fn parse(text: &str) -> Result<Self, ErrorInfo> {
        let Some(rest) = text.strip_prefix('[') else {
            return Ok(Self { channel: Channel::parse(text)?, params: BTreeMap::new() });
        };
        let (qualifier, name) = rest.split_once(']').ok_or_else(|| invalid(text))?;
        if qualifier.len() > MAX_QUALIFIER_BYTES {
            return Err(invalid(text));
        }
        let query = qualifier.strip_prefix('?').ok_or_else(|| invalid(text))?;
        let mut params = BTreeMap::new();
        for pair in query.split('&').filter(|pair| !pair.is_empty()) {
            let (key, value) = pair.split_once('=').ok_or_else(|| invalid(text))?;
            let value = unescape(value).ok_or_else(|| invalid(text))?;
            if params.insert(key.to_owned(), value).is_some() {
                return Err(invalid(text));
            }
        }
        Ok(Self { channel: Channel::parse(name)?, params })
    }
}

/// Messages before the attachment that a client requests with `rewind`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Rewind {
    Newest(usize),
    Since(Duration),
}

impl Rewind {
    /// Parses `3`, `15s`, `2m` or `1h`. Larger values than the limits become the limits.
    pub fn parse(text: &str) -> Result<Self, ErrorInfo> {
        let error = || {
            ErrorInfo::new(codes::INVALID_PARAMETER, "rewind must be a number, or a time such as 15s or 2m")
        };
        let (digits, unit) = match text.bytes().last() {
            Some(b's') => (&text[..text.len() - 1], Some(1)),
            Some(b'm') => (&text[..text.len() - 1], Some(60)),
            Some(b'h') => (&text[..text.len() - 1], Some(3600)),
            _ => (text, None),
        };
        if digits.is_empty() || digits.len() > 9 || !digits.bytes().all(|b| b.is_ascii_digit()) {
            return Err(error());
        }
        let number: u64 = digits.parse().map_err(|_| error())?;
        Ok(match unit {
            None => Self::Newest((number as usize).min(MAX_REWIND)),
            Some(seconds) => Self::Since(Duration::from_secs(number * seconds).min(MAX_REWIND_TIME)),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[track_caller]
    fn check(name: &str, path: &str) {
        let channel = Channel::parse(name).unwrap();
        assert_eq!(channel.destination().path().as_str(), path);
        assert_eq!(channel.name(), name);
    }

    #[test]
    fn names_lead_to_paths_and_back() {
        check("jaibber:project:p1", "room/p1");
        check("jaibber:presence", "ably/jaibber:presence");
        check("chat", "ably/chat");
        check("a/b", "ably/a%2Fb");
        check("a%2Fb", "ably/a%252Fb");
        check("**", "ably/%2A%2A");
        check("a\nb\u{85}", "ably/a%0Ab%C2%85");
        check("né w", "ably/né w");
        assert_eq!(Channel::name_of(&Destination::Path(Path::stored("ably/a/b"))), None);
        assert_eq!(Channel::name_of(&Destination::Path(Path::stored("slack/a"))), None);
        assert_eq!(Channel::name_of(&Destination::Path(Path::stored("ably/%6a"))), None);
    }

    #[test]
    fn names_that_are_no_channels_are_rejected() {
        for bad in [
            "",
            ":",
            ":a",
            "[",
            "[a",
            "[meta]a",
            "[?rewind]a",
            "[?a=1&a=2]b",
            "jaibber:project:",
            "jaibber:project:a/b",
            &"x".repeat(2000),
        ] {
            assert_eq!(QualifiedChannel::parse(bad).unwrap_err().code, 40010, "{bad}");
        }
    }

    #[test]
    fn a_qualifier_contains_parameters() {
        let parsed = QualifiedChannel::parse("[?rewind=2m&delta=vcdiff]a").unwrap();
        assert_eq!(parsed.channel.name(), "a");
        assert_eq!(parsed.params["rewind"], "2m");
        assert_eq!(Rewind::parse("3").unwrap(), Rewind::Newest(3));
        assert_eq!(Rewind::parse("15s").unwrap(), Rewind::Since(Duration::from_secs(15)));
        assert_eq!(Rewind::parse("999999999h").unwrap(), Rewind::Since(MAX_REWIND_TIME));
        for bad in ["", "s", "-1", "1d", "1.5m", "99999999999"] {
            assert_eq!(Rewind::parse(bad).unwrap_err().code, 40003, "{bad}");
        }
    }

    proptest! {
        #![proptest_config(parlor_seed::proptest_config())]
        #[test]
        fn every_valid_name_is_restored_from_its_path(name in "\\PC{0,20}|[a-b/%*\u{0}-\u{1f}]{1,8}") {
            if let Ok(channel) = Channel::parse(&name) {
                prop_assert_eq!(channel.name(), name);
            }
        }
    }
}
