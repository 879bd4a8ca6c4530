//! A separate type for each kind of id, so that a room id cannot be passed where a user id is expected.
//!
//! An id segment matches `[A-Za-z0-9_-]{1,64}`. An id therefore cannot traverse directories, break a line or
//! contain a key separator.

use serde::{Deserialize, Serialize};
use std::fmt;
use std::sync::Arc;

/// The text is not a valid id of the requested kind.
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

            /// Wraps text from the store without validation. The text was validated before it was stored.
            pub fn stored(text: impl Into<Arc<str>>) -> Self {
                Self(text.into())
            }

            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        encode_as_text!($name, |text: &str| Self::parse(text).map_err(|_| concat!("invalid ", stringify!($name))));

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

id!(/// Id of a user account.
    UserId, is_segment);
id!(/// Id of a room, the same in every protocol.
    RoomId, is_segment);
id!(/// Id of a message in a room or on a path.
    MessageId, is_segment);
id!(/// Id of a user's sign-in.
    SignInId, is_segment);
id!(/// Id of an API key, not its secret.
    KeyId, is_segment);
id!(/// Id of an uploaded file.
    UploadId, is_segment);
id!(/// Id of an invitation, not its secret.
    InvitationId, is_segment);
id!(/// Id of a router: a model that selects which agents answer.
    RouterId, is_segment);
id!(/// Id of a mission.
    MissionId, is_segment);
id!(/// Id of an agent's session, such as `main`.
    SessionId, is_segment);
id!(/// Id of a run of an agent.
    RunId, is_segment);
id!(/// Id shared by all runs that one trigger caused, directly or through other agents.
    ConversationId, is_segment);
id!(/// Id of an approval.
    ApprovalId, is_segment);
id!(/// Id of a task.
    TaskId, is_segment);
id!(/// Id of a gateway.
    GatewayId, is_segment);
id!(/// Id of an agent: up to eight segments joined by `/`, such as `researcher/analyzer`.
    AgentId, |text| { let segments = text.split('/'); segments.clone().count() <= 8 && segments.clone().all(is_segment) });

impl SessionId {
    /// Returns the id of the session that every agent has.
    pub fn main() -> Self {
        Self("main".into())
    }
}

impl AgentId {
    /// Returns the ids of all ancestors, nearest first: `a/b`, then `a` for `a/b/c`.
    pub fn ancestors(&self) -> impl Iterator<Item = AgentId> {
        let mut rest = &*self.0;
        std::iter::from_fn(move || {
            rest = rest.rsplit_once('/')?.0;
            Some(AgentId(rest.into()))
        })
    }
}

/// Id of a member of a room: a user or an agent.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
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
    fn an_id_has_no_separators_line_breaks_or_dots() {
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
