//! Rooms and who is in them.

use crate::{MemberId, RoomId, RouterId, Seq, Time, UserId};

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum RoomKind {
    Group,
    Private,
}

impl RoomKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Group => "group",
            Self::Private => "private",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Group, Self::Private].into_iter().find(|kind| kind.as_str() == text)
    }
}

/// Ordered by power.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum RoomRole {
    Member,
    Admin,
    Owner,
}

impl RoomRole {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Member => "member",
            Self::Admin => "admin",
            Self::Owner => "owner",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::Member, Self::Admin, Self::Owner].into_iter().find(|role| role.as_str() == text)
    }
}

/// Which agents answer what was said to none of them by name.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum AnswerPolicy {
    /// None.
    #[default]
    Mention,
    /// Those that somebody picks.
    Triage,
    All,
}

impl AnswerPolicy {
    const ALL: [Self; 3] = [Self::Mention, Self::Triage, Self::All];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Mention => "mention",
            Self::Triage => "triage",
            Self::All => "all",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|policy| policy.as_str() == text)
    }
}

/// Since when agents are silent in a room, and by whom; by whoever runs the hub, if by no member.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Frozen {
    pub by: Option<UserId>,
    pub at: Time,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Room {
    pub id: RoomId,
    pub name: Box<str>,
    pub kind: RoomKind,
    pub policy: AnswerPolicy,
    pub system_prompt: Option<Box<str>>,
    /// The least role that may address agents.
    pub agent_command_role: RoomRole,
    /// The least role that may let an agent use a tool.
    pub approve_role: RoomRole,
    /// Who picks the agents that answer, where somebody picks them; else whoever does so for the whole hub.
    pub router: Option<RouterId>,
    /// While it is, no agent says or does anything in it.
    pub frozen: Option<Frozen>,
    /// The folder on the hub's machine that it is about, without any link in its way.
    pub project_root: Option<Box<str>>,
    pub created_by: UserId,
    pub created_at: Time,
    pub updated_at: Time,
}

impl Room {
    /// Whether somebody is asked which agents answer what was said to none of them by name.
    pub fn uses_triage(&self) -> bool {
        self.policy == AnswerPolicy::Triage
    }

    /// Whether agents are to be silent in it.
    pub fn is_frozen(&self) -> bool {
        self.frozen.is_some()
    }
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Member {
    pub room: RoomId,
    pub member: MemberId,
    pub role: RoomRole,
    /// What they are there for, in the words of the room's admins.
    pub role_description: Option<Box<str>>,
    /// The name shown and mentioned: the user's or the agent's own, not stored with the membership.
    pub name: Box<str>,
    /// What else they can be mentioned by: the user's sign-in name or the agent's id. Not stored either.
    pub handle: Box<str>,
    pub joined_at: Time,
    pub read_through: Seq,
    pub read_at: Option<Time>,
    /// How they keep the room for themselves; nobody else is told.
    pub room_preferences: RoomPreferences,
}

impl Member {
    /// As the others in the room see them.
    pub fn seen_by_others(&self) -> Self {
        Self { room_preferences: RoomPreferences::default(), ..self.clone() }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct RoomPreferences {
    pub pinned_at: Option<Time>,
    pub archived_at: Option<Time>,
    pub cleared_at: Option<Time>,
    /// What was said up to here is no longer shown to them.
    pub cleared_through: Seq,
    pub notifications: Notifications,
}

/// What somebody wants to be called for.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Notifications {
    #[default]
    All,
    Mentions,
    None,
}

impl Notifications {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::All => "all",
            Self::Mentions => "mentions",
            Self::None => "none",
        }
    }

    pub fn parse(text: &str) -> Option<Self> {
        [Self::All, Self::Mentions, Self::None].into_iter().find(|wanted| wanted.as_str() == text)
    }
}
