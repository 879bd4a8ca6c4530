//! Grants: places and operations to which a credential is limited, besides the rights of its account.
//!
//! Owns: whether a grant permits an operation on a place. A grant only limits: the account must have the right as well.
//! The engine decides which command and query needs which operation.

use crate::{AgentId, Mailbox, Path, SessionId};
use serde::{Deserialize, Serialize};
use std::sync::Arc;

/// Operation on a place (a room or a path) that a grant permits.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Operation {
    /// Receive live messages, and see the members of the presence set.
    Subscribe,
    Publish,
    /// Enter, update and leave the presence set.
    Presence,
    /// Read stored messages and earlier members of the presence set.
    History,
    /// Read the state of the place, such as the number of its subscribers.
    Metadata,
    Statistics,
}

impl Operation {
    pub const ALL: [Self; 6] =
        [Self::Subscribe, Self::Publish, Self::Presence, Self::History, Self::Metadata, Self::Statistics];
}

/// A set of operations.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default, Serialize, Deserialize)]
pub struct Operations(u8);

impl Operations {
    pub const NONE: Self = Self(0);
    pub const ALL: Self = Self((1 << Operation::ALL.len()) - 1);

    pub const fn with(self, operation: Operation) -> Self {
        Self(self.0 | 1 << operation as u8)
    }

    pub const fn contains(self, operation: Operation) -> bool {
        self.0 & (1 << operation as u8) != 0
    }
}

impl FromIterator<Operation> for Operations {
    fn from_iter<I: IntoIterator<Item = Operation>>(operations: I) -> Self {
        operations.into_iter().fold(Self::NONE, Self::with)
    }
}

/// Places that an entry of a grant covers. A room is covered as its path, `room/{id}`.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub enum Resource {
    Everything,
    /// Every longer path that begins with this text, which may end within a segment.
    Below(Box<str>),
    Exactly(Path),
}

impl Resource {
    pub fn covers(&self, place: &Path) -> bool {
        match self {
            Self::Everything => true,
            Self::Below(prefix) => {
                place.as_str().len() > prefix.len() && place.as_str().starts_with(&**prefix)
            }
            Self::Exactly(path) => path == place,
        }
    }
}

#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct GrantEntry {
    pub resource: Resource,
    pub operations: Operations,
}

/// Places and operations to which a credential is limited, besides the rights of its account. Without entries it
/// permits no operation.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct Grant {
    entries: Box<[GrantEntry]>,
    /// Agent as which alone the credential acts; `None` if the grant does not limit it to an agent.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    agent: Option<AgentLimit>,
}

/// Agent to which a credential is limited, with one of its sessions.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct AgentLimit {
    pub agent: AgentId,
    pub session: Option<SessionId>,
}

impl AgentLimit {
    /// Whether the credential may read this mailbox: that of the agent itself or that of the session.
    pub fn covers(&self, mailbox: &Mailbox) -> bool {
        mailbox.agent == self.agent && (mailbox.session.is_none() || mailbox.session == self.session)
    }
}

impl Grant {
    pub fn new(entries: impl IntoIterator<Item = GrantEntry>) -> Self {
        Self { entries: entries.into_iter().collect(), agent: None }
    }

    /// No operation on any place; the credential acts as this agent, in this session if it has one.
    pub fn of_agent(agent: AgentId, session: Option<SessionId>) -> Self {
        Self { entries: Box::default(), agent: Some(AgentLimit { agent, session }) }
    }

    /// Every operation on every place.
    pub fn everything() -> Self {
        Self::new([GrantEntry { resource: Resource::Everything, operations: Operations::ALL }])
    }

    pub fn permits(&self, operation: Operation, place: &Path) -> bool {
        self.entries.iter().any(|entry| entry.operations.contains(operation) && entry.resource.covers(place))
    }

    pub fn entries(&self) -> &[GrantEntry] {
        &self.entries
    }

    pub fn agent(&self) -> Option<&AgentLimit> {
        self.agent.as_ref()
    }
}

/// Grant of a stored key.
#[derive(Debug, Clone, PartialEq, Eq, Hash, Serialize, Deserialize)]
pub struct KeyGrant {
    pub places: Arc<Grant>,
    /// The grant as text in the notation of the client's protocol, for display. Opaque to the engine.
    pub notation: Box<str>,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::RoomId;

    fn grant(resource: Resource, operations: &[Operation]) -> Grant {
        Grant::new([GrantEntry { resource, operations: operations.iter().copied().collect() }])
    }

    #[track_caller]
    fn check(resource: Resource, place: &str, expected: bool) {
        let place = Path::parse(place).unwrap();
        assert_eq!(resource.covers(&place), expected, "{resource:?} covers {place}");
    }

    #[test]
    fn a_resource_covers_places() {
        let below = |prefix: &str| Resource::Below(prefix.into());
        let exactly = |path: &str| Resource::Exactly(Path::parse(path).unwrap());
        check(Resource::Everything, "a/b", true);
        check(below("room/"), "room/lobby", true);
        check(below("room/"), "room", false);
        check(below("x/a:"), "x/a:b", true);
        check(below("x/a:"), "x/a:", false);
        check(below("x/a:"), "x/ab", false);
        check(exactly("room/a"), "room/a", true);
        check(exactly("room/a"), "room/a/b", false);
        check(exactly("room/*"), "room/a", false);
    }

    #[test]
    fn a_grant_permits_the_operations_of_the_entries_that_cover_the_place() {
        let room = Path::of_room(&RoomId::stored("lobby"));
        let limited = grant(Resource::Exactly(room.clone()), &[Operation::Publish, Operation::History]);
        for operation in Operation::ALL {
            let expected = matches!(operation, Operation::Publish | Operation::History);
            assert_eq!(limited.permits(operation, &room), expected, "{operation:?}");
            assert!(Grant::everything().permits(operation, &room));
            assert!(!Grant::new([]).permits(operation, &room));
            assert!(!limited.permits(operation, &Path::parse("room/other").unwrap()));
        }
    }

    #[test]
    fn a_grant_of_an_agent_permits_no_place_and_covers_two_mailboxes() {
        let (agent, main) = (AgentId::stored("coder"), SessionId::main());
        let mailbox = |agent: &str, session: Option<&str>| Mailbox {
            agent: AgentId::stored(agent),
            session: session.map(SessionId::stored),
        };
        for (session, of_main) in [(Some(main), true), (None, false)] {
            let grant = Grant::of_agent(agent.clone(), session);
            assert!(!grant.permits(Operation::Publish, &Path::of_agent(&agent)));
            let limit = grant.agent().unwrap();
            assert!(limit.covers(&mailbox("coder", None)));
            assert_eq!(limit.covers(&mailbox("coder", Some("main"))), of_main);
            assert!(!limit.covers(&mailbox("coder", Some("other"))));
            assert!(
                !limit.covers(&mailbox("coder/sub", None)) && !limit.covers(&mailbox("writer", Some("main")))
            );
        }
    }

    #[test]
    fn two_entries_do_not_combine_their_operations_on_other_places() {
        let entry = |prefix: &str, operation| GrantEntry {
            resource: Resource::Below(prefix.into()),
            operations: Operations::NONE.with(operation),
        };
        let both = Grant::new([entry("a/", Operation::Publish), entry("b/", Operation::Subscribe)]);
        let (a, b) = (Path::parse("a/x").unwrap(), Path::parse("b/x").unwrap());
        assert!(both.permits(Operation::Publish, &a) && both.permits(Operation::Subscribe, &b));
        assert!(!both.permits(Operation::Publish, &b) && !both.permits(Operation::Subscribe, &a));
    }
}
