//! The columns of the permission table: every kind of caller, with its rows in the store.

use parlor_engine::changes::{AccountChange, Change, CredentialChange, RoomChange};
use parlor_engine::permission::AuthContext;
use parlor_model::{
    AgentId, ApiKey, Caller, KeyId, Member, MemberId, Room, RoomId, RoomKind, RoomRole, Scope, SecretHash,
    Seq, SignIn, SignInId, SiteRole, Time, User, UserId,
};
use std::sync::Arc;

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CallerKind {
    /// A caller that is not signed in.
    Anonymous,
    /// The owner of the room, with a sign-in or key that has been revoked.
    Revoked,
    /// A signed-in user who is not a member of any room.
    NonMember,
    Member,
    RoomAdmin,
    RoomOwner,
    /// A site admin who is not a member of the room.
    SiteAdmin,
    /// Owns the agent `coder`; not a member of the room.
    AgentOwner,
    /// Owns another agent; not a member of the room.
    OtherAgentOwner,
    /// A key with every scope except the required one. Its owner has all permissions.
    KeyWithout,
    /// A key with only the required scope, or with all scopes if keys are not allowed. Its owner has all
    /// permissions.
    KeyWith,
    Operator,
    /// The hub's authentication code.
    Authenticator,
}

pub const COLUMNS: [CallerKind; 13] = [
    CallerKind::Anonymous,
    CallerKind::Revoked,
    CallerKind::NonMember,
    CallerKind::Member,
    CallerKind::RoomAdmin,
    CallerKind::RoomOwner,
    CallerKind::SiteAdmin,
    CallerKind::AgentOwner,
    CallerKind::OtherAgentOwner,
    CallerKind::KeyWithout,
    CallerKind::KeyWith,
    CallerKind::Operator,
    CallerKind::Authenticator,
];

/// Owns the agent `coder`. As the owner of the keys, this user is also site admin and room owner.
const AGENT_OWNER: &str = "agent-owner";

impl CallerKind {
    pub fn user(self) -> Option<UserId> {
        let id = match self {
            Self::Anonymous | Self::Operator | Self::Authenticator => return None,
            Self::AgentOwner | Self::KeyWithout | Self::KeyWith => AGENT_OWNER,
            Self::Revoked => "revoked",
            Self::NonMember => "non-member",
            Self::Member => "member",
            Self::RoomAdmin => "admin",
            Self::RoomOwner => "owner",
            Self::SiteAdmin => "site-admin",
            Self::OtherAgentOwner => "other-agent-owner",
        };
        Some(UserId::stored(id))
    }

    pub fn caller(self) -> Caller {
        match (self, self.user()) {
            (Self::Operator, _) => Caller::OPERATOR,
            (Self::Authenticator, _) => Caller::AUTHENTICATOR,
            (Self::KeyWithout | Self::KeyWith, Some(user)) => Caller::program(user, KeyId::stored("key")),
            (_, Some(user)) => Caller::person(user, SignInId::stored("device")),
            (_, None) => Caller::ANONYMOUS,
        }
    }

    /// Rows of the store about this caller, before the row adds the entities that its command names.
    pub fn changes(self, needed: Option<Scope>) -> Vec<Change> {
        let mut changes = vec![
            put_user(&other_user(), SiteRole::User),
            Change::Room(RoomChange::PutRoom(Arc::new(room()))),
        ];
        let Some(id) = self.user() else { return changes };
        changes.push(put_user(&id, self.site_role()));
        match self.standing(needed).map(|standing| standing.scopes) {
            Some(Some(scopes)) => {
                let (key, owner, created_at) = (KeyId::stored("key"), id.clone(), Time(1));
                let key = ApiKey { id: key, owner, name: "script".into(), scopes, grant: None, created_at };
                changes
                    .push(Change::Credential(CredentialChange::PutKey(Arc::new(key), SecretHash([1; 32]))));
            }
            Some(None) => {
                let sign_in = SignIn {
                    id: SignInId::stored("device"),
                    user: id.clone(),
                    device: "phone".into(),
                    address: "127.0.0.1".into(),
                    created_at: Time(1),
                    used_at: Time(1),
                    expires_at: Time(9_000),
                    generation: 1,
                };
                changes.push(Change::Credential(CredentialChange::PutSignIn(
                    Arc::new(sign_in),
                    SecretHash([2; 32]),
                )));
            }
            None => {}
        }
        changes.extend(self.own_member().map(|own| Change::Room(RoomChange::PutMember(Arc::new(own)))));
        changes
    }

    /// The caller's membership in the room.
    pub fn own_member(self) -> Option<Member> {
        self.user().zip(self.role()).map(|(user, role)| member(MemberId::User(user), role))
    }

    fn site_role(self) -> SiteRole {
        let site_admin = matches!(self, Self::SiteAdmin | Self::KeyWithout | Self::KeyWith);
        if site_admin { SiteRole::Admin } else { SiteRole::User }
    }

    fn standing(self, needed: Option<Scope>) -> Option<AuthContext> {
        let scopes = match (self, needed) {
            (Self::Anonymous | Self::Revoked | Self::Operator | Self::Authenticator, _) => return None,
            (Self::KeyWithout, Some(scope)) => {
                Some(Scope::ALL.into_iter().filter(|other| !other.covers(scope)).collect())
            }
            (Self::KeyWithout, None) => Some(Vec::new()),
            (Self::KeyWith, Some(scope)) => Some(vec![scope]),
            (Self::KeyWith, None) => Some(Scope::ALL.to_vec()),
            _ => None,
        };
        Some(AuthContext { user: user(&self.user()?, self.site_role()).into(), scopes, grants: Vec::new() })
    }

    fn role(self) -> Option<RoomRole> {
        match self {
            Self::Member => Some(RoomRole::Member),
            Self::RoomAdmin => Some(RoomRole::Admin),
            Self::RoomOwner | Self::Revoked | Self::KeyWithout | Self::KeyWith => Some(RoomRole::Owner),
            _ => None,
        }
    }
}

fn put_user(id: &UserId, role: SiteRole) -> Change {
    Change::Account(AccountChange::PutUser(Arc::new(user(id, role))))
}

pub fn user(id: &UserId, role: SiteRole) -> User {
    User {
        id: id.clone(),
        username: id.as_str().into(),
        display_name: id.as_str().into(),
        role,
        avatar_url: None,
        password_hash: "hash".into(),
        second_factor: false,
        failed_sign_ins: 0,
        locked_until: None,
        max_connections: None,
        source_patterns: Vec::new(),
        agent_tokens_valid_from: Time(0),
        created_at: Time(1),
        updated_at: Time(1),
    }
}

pub fn lobby() -> RoomId {
    RoomId::stored("lobby")
}

pub fn room() -> Room {
    Room {
        id: lobby(),
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
        created_by: UserId::stored("owner"),
        created_at: Time(1),
        updated_at: Time(1),
    }
}

pub fn member(member: MemberId, role: RoomRole) -> Member {
    let (name, handle) = (member.as_str().into(), member.as_str().into());
    Member {
        room: lobby(),
        member,
        role,
        role_description: None,
        name,
        handle,
        joined_at: Time(2),
        read_through: Seq(0),
        read_at: None,
        room_preferences: Default::default(),
    }
}

/// A user who is not one of the callers.
pub fn other_user() -> UserId {
    UserId::stored("other_user")
}

pub fn other_member() -> MemberId {
    MemberId::User(other_user())
}

pub fn person(id: &str) -> MemberId {
    MemberId::User(UserId::stored(id))
}

pub fn coder_member() -> MemberId {
    MemberId::Agent(AgentId::stored("coder"))
}
