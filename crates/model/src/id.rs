//! Ids as types, so that a room can never be passed where a user is meant.
//!
//! A segment is `[A-Za-z0-9_-]{1,64}`: nothing in an id can climb a directory, end a line or split a key.

use std::fmt;
use std::sync::Arc;

/// The text is not an id of the wanted kind.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct InvalidId;

fn is_segment(text: &str) -> bool {
    (1..=64).contains(&text.len())
        && text.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_' || b == b'-')
}

macro_rules! id {
    ($(#[$doc:meta])* $name:ident, $valid:expr) => {
        $(#[$doc])*
        #[derive(Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub struct $name(Arc<str>);

        impl $name {
            pub fn parse(text: &str) -> Result<Self, InvalidId> {
                let valid: fn(&str) -> bool = $valid;
                if valid(text) { Ok(Self(text.into())) } else { Err(InvalidId) }
            }

            /// Takes text that was an id when it was stored.
            pub fn stored(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Debug for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, "{}({})", stringify!($name), self.0)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }
    };
}

id!(/// A person's account.
    UserId, is_segment);
id!(/// A room: one conversation, whatever a door calls it.
    RoomId, is_segment);
id!(/// A message, on whichever path it lives.
    MessageId, is_segment);
id!(/// One signed-in device of a person.
    SignInId, is_segment);
id!(/// An API key; not its secret.
    KeyId, is_segment);
id!(/// A file that somebody sent.
    UploadId, is_segment);
id!(/// An invitation; not its secret.
    InvitationId, is_segment);
id!(/// A model that picks which agents answer.
    RouterId, is_segment);
id!(/// What agents are to pursue by themselves.
    MissionId, is_segment);
id!(/// A session of an agent, such as `main`.
    SessionId, is_segment);
id!(/// One turn of an agent.
    RunId, is_segment);
id!(/// What one message set off, through however many agents.
    ConversationId, is_segment);
id!(/// A question to people that an agent waits for.
    ApprovalId, is_segment);
id!(/// Something to be done, by a person or an agent.
    TaskId, is_segment);
id!(/// A program that hosts agents on some machine.
    GatewayId, is_segment);
id!(/// An agent: up to eight segments joined by `/`, such as `researcher/analyzer`.
    AgentId, |text| { let segments = text.split('/'); segments.clone().count() <= 8 && segments.clone().all(is_segment) });

impl SessionId {
    /// The session every agent has.
    pub fn main() -> Self {
        Self("main".into())
    }
}

impl AgentId {
    /// The ids that this one lies below, nearest first.
    pub fn ancestors(&self) -> impl Iterator<Item = AgentId> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            rest = rest.rsplit_once('/')?.0;
            Some(AgentId(rest.into()))
        })
    }
}

/// Who can be a member of a room.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum MemberId {
    User(UserId),
    Agent(AgentId),
}

impl MemberId {
    pub fn as_str(&self) -> &str {
        match self {
            Self::User(id) => id.as_str(),
            Self::Agent(id) => id.as_str(),
        }
    }

    pub fn user(&self) -> Option<&UserId> {
        match self {
            Self::User(id) => Some(id),
            Self::Agent(_) => None,
        }
    }

    pub fn agent(&self) -> Option<&AgentId> {
        match self {
            Self::Agent(id) => Some(id),
            Self::User(_) => None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_id_cannot_climb_split_or_end_a_line() {
        for bad in ["", ".", "..", "a/b", "a:b", "a\nb", "é", "a b", &"x".repeat(65)] {
            assert_eq!(RoomId::parse(bad), Err(InvalidId), "{bad:?}");
        }
        assert!(RoomId::parse("0190-a_B").is_ok());
    }

    #[test]
    fn an_agent_id_joins_up_to_eight_segments() {
        for bad in ["", "/", "a/", "/a", "a//b", "a/../b", "1/2/3/4/5/6/7/8/9"] {
            assert_eq!(AgentId::parse(bad), Err(InvalidId), "{bad:?}");
        }
        assert!(AgentId::parse("researcher/analyzer").is_ok());
        assert!(AgentId::parse("1/2/3/4/5/6/7/8").is_ok());
    }
}
